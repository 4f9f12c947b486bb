"""The build stage of an engine: a candidate's extensions are built before a referee sees it, for this machine
or for another that judges.

So compilers run while a GPU is busy with another candidate, and a candidate that does not compile never gets
near one. It runs in a sandbox without a GPU, and its calls reach the builder, whose cache the referee uses
later (`prebuild`). It runs with a stub of torch first (`stub_builds`), in a tenth of a second instead of
seconds. Where that does not show all of its builds, and where something does not compile that it may never
ask for, it is imported with torch, and rehearsed.

What the stub run says is untrusted. It decides whether the candidate is run once more, with torch, and
nothing else: a candidate that lies gets its builds later, or a failure that is its own.

Where kernels are compiled when they are first called (`compile_ahead`), the candidate is imported and called
in a sandbox without a GPU, on tensors without memory. A driver that launches nothing stands in for CUDA's,
so its kernels are compiled for this machine's GPU while another candidate is on it. The compiler's output is
kept by the source's content, and handed to the process that is judged. No other source ever gets it: a
candidate that writes other things there harms only itself.
"""

from __future__ import annotations

import ast
import base64
import re
import site
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from kernelproof.backends import FirstCall, backend
from kernelproof.errors import MachineError, SandboxError
from kernelproof.hashing import sha256_json, sha256_text
from kernelproof.pysource import parse
from kernelproof.types import Build, BuildRequest, BuildState, Problem, SandboxReport, VerifySettings
from kernelproof.types.record import FrozenRecord
from kernelproof.verifier.build import KEY_FORMAT, Builder, BuildIndex, Toolchain
from kernelproof.verifier.build.compiler_output import refusal
from kernelproof.verifier.devices.discovery import device_for, interprets
from kernelproof.verifier.engine.core_sharing import Cores
from kernelproof.verifier.engine.referee_process import OnStage
from kernelproof.verifier.engine.stop import Stop
from kernelproof.verifier.policy import review
from kernelproof.verifier.sandbox import Group, on_cores
from kernelproof.verifier.status_rules import ended_by_review
from kernelproof.verifier.workers.client import Contestant, ContestantFailed, ContestantGone, hello

MODEL = "ModelNew"
STUB_SECONDS = 10.0
"""Most seconds for the run, builds not counted."""
_LOADERS = frozenset({"load_inline", "load"})
_BUILDS = re.compile(
    r"load_inline|cpp_extension|setuptools|_compile_kernel|\b(?:exec|eval|__import__|import_module|runpy)\b"
)
_NOTICES = re.compile(r"\b(?:try|suppress|hasattr|getattr|__dict__)\b|\b(?:vars|dir)\(")
"""By these a source may notice that a stub has what torch has not: what it does then is not certain."""
Text = Annotated[str, Field(max_length=20_000)]


@dataclass(frozen=True)
class Prebuilt:
    """The result of the build stage."""

    builds: tuple[Build, ...]
    sandbox: SandboxReport | None
    trouble: str = ""
    """Why the import ended early, if it did; without a GPU that need not be the candidate's fault."""
    raised: str = ""
    """The message of what it raised then."""
    contents: Mapping[str, Build] = field(default_factory=dict)
    """The builds, by the requests' `content_sha256`."""
    first_calls: Build | None = None
    """The build that represents kernels which are compiled when they are first called."""
    refused: str = ""
    """Why such a kernel is not there, where its compiler refused it or took too long."""


class StubRun(FrozenRecord):
    """What the runner says of its run."""

    stage: Literal["load", "construct", "call", "end"]
    """The stage that raised; `end` where none did."""
    called: Annotated[frozenset[int], Field(max_length=10_000)]
    """Lines of the source that called a loader."""
    guessed: bool
    """Whether the candidate wanted to know something that only torch knows."""
    unknown: bool
    """Whether it wanted a build that is not known without torch."""
    message: Text
    """Of what it raised."""
    traceback: Text

    def is_complete(self, source: str) -> bool:
        """Whether a run with torch would hardly ask for more. An error costs time only: a build that is
        missed is made when the candidate is judged."""
        if self.stage == "load" or self.unknown:
            return False
        return (self.stage == "end" and not self.guessed) or lines_of_loaders(source) <= self.called

    def ended_by(self, build: Build, source: str) -> bool:
        """Whether the failure of this build ended it, as it would with torch."""
        named = self.message.startswith(f"Error building extension '{build.name}'")
        certain = self.stage in ("load", "construct") and not self.guessed and not self.unknown
        return named and certain and _NOTICES.search(source) is None


def names_builds(source: str) -> bool:
    """Whether a source names anything by which extensions are built."""
    return _BUILDS.search(source) is not None


def lines_of_loaders(source: str) -> set[int]:
    """Lines of a source that name a function which builds extensions."""
    tree = parse(source)
    return {
        node.lineno
        for node in (ast.walk(tree) if isinstance(tree, ast.Module) else ())
        if (isinstance(node, ast.Name) and node.id in _LOADERS and isinstance(node.ctx, ast.Load))
        or (isinstance(node, ast.Attribute) and node.attr in _LOADERS and not _reads_files(node.value))
    }


def _reads_files(module: ast.expr) -> bool:
    """Whether the `load` of this module reads a file, and builds nothing."""
    return isinstance(module, ast.Name) and module.id in ("torch", "json", "np")


def stub_builds(
    build: Callable[[BuildRequest], Build],
    toolchain: Toolchain,
    source: str,
    settings: VerifySettings,
    problem: Problem,
    jobs: Group,
) -> Prebuilt | None:
    """Has built what the candidate asks for where a stub stands in torch's place.

    None where that does not show all of its builds, or not what comes of one that failed.
    """
    message = as_problem_says("run", problem, settings) | {
        "source": source,
        "device": "cuda" if backend(settings.backend).on_gpu else "cpu",
        "capability": toolchain.capability,
        "torch": toolchain.torch,
        "torch_cuda": toolchain.torch_cuda,
        # Its runner reads no `.pth` file, by which an environment may borrow the torch of another.
        "path": [*site.getsitepackages(), str(Path(toolchain.torch_root).parent)],
        "machine": ["/usr", sys.prefix, sys.base_prefix, toolchain.torch_root, str(toolchain.cuda_home)],
    }
    memory, unsafe = settings.memory_bytes, settings.unsafe
    with Contestant(build, memory_bytes=memory, unsafe=unsafe, jobs=jobs, runner="stub_runner") as contestant:
        try:
            contestant.wait_ready()
            run = StubRun.model_validate(contestant.ask(message, seconds=STUB_SECONDS))
        except (ContestantFailed, ContestantGone, ValidationError):
            return None
    builds = tuple(contestant.builds)
    failed = any(made.state is not BuildState.OK for made in builds)
    if not (run.ended_by(builds[-1], source) if failed else run.is_complete(source)):
        return None
    trouble, raised = (run.traceback, run.message) if failed else ("", "")
    return Prebuilt(builds, contestant.sandbox, trouble, raised, contestant.contents)


def as_problem_says(op: str, problem: Problem, settings: VerifySettings) -> dict[str, Any]:
    """A request to construct and call the model with the problem's own arguments."""
    sizes = problem.sizes.get(settings.size, {})
    return {"op": op, "class": MODEL, "problem": problem.source, "sizes": sizes}


REHEARSAL_SECONDS = 30.0
"""Most seconds for constructing and calling the model without a GPU, builds not counted."""


def prebuild(
    builder: Builder,
    cache: Path,
    source: str,
    settings: VerifySettings,
    jobs: Group,
    problem: Problem,
    *,
    runs_here: bool = True,
) -> Prebuilt:
    """Makes the builds that `source` asks for when it runs. It does not run where the build index knows them
    and the cache holds them.

    `jobs`: the group of the sandbox in which it runs. `problem`: what it is for. `runs_here`: whether this
    machine has the device; if not, a source without builds is imported to see whether it loads.
    """
    shows = names_builds(source)
    if runs_here and not shows:
        return Prebuilt((), None)
    index, entry = BuildIndex(cache), _index_name(builder, source, problem, settings.size)
    held = builder.held(index.keys(entry))
    if held is not None:
        return Prebuilt(tuple(held.values()), None, contents=held)

    build = partial(builder.build, seconds=settings.build_seconds)
    quick = stub_builds(build, builder.toolchain, source, settings, problem, jobs) if shows else None
    if quick is not None and (quick.builds or runs_here):
        if not quick.trouble:
            _note(index, entry, quick.contents)
        return quick
    contestant = Contestant(build, memory_bytes=settings.memory_bytes, unsafe=settings.unsafe, jobs=jobs)
    with contestant:
        report = contestant.sandbox
        try:
            trouble, raised = _import(contestant, source, settings, builder)
        except ContestantGone as error:
            log = f"Its process was {error.outcome.reason}."
            lost = Build(key="", state=BuildState.INFRASTRUCTURE, name="what it asks for", log=log)
            return Prebuilt((lost,), report)
        if not trouble:
            _rehearse(contestant, settings, problem)
    builds = tuple(contestant.builds)
    if not trouble and all(b.state is BuildState.OK for b in builds):
        _note(index, entry, contestant.contents)
    return Prebuilt(builds, report, trouble, raised, contestant.contents)


def _import(
    contestant: Contestant, source: str, settings: VerifySettings, builder: Builder
) -> tuple[str, str]:
    """Why it ended early, and the message of what it raised; empty where it did not."""
    greet(contestant, settings, builder)
    try:
        contestant.ask({"op": "load", "source": source, "seed": 0}, seconds=settings.load_seconds)
    except ContestantFailed as error:
        return error.traceback or str(error), error.message
    except ContestantGone as error:
        if error.is_ours:
            raise
        return str(error), ""
    return "", ""


def greet(contestant: Contestant, settings: VerifySettings, builder: Builder) -> None:
    """Waits for a process, and lets it pretend to have the device. Raises SandboxError, and ContestantGone
    where it was killed from outside."""
    device, capability = backend(settings.backend).pretended, builder.toolchain.capability
    request = {"op": "pretend", "device": device, "capability": capability}
    try:
        contestant.wait_ready()
        contestant.ask(hello(settings) | {"threads": 1}, seconds=settings.load_seconds)
        contestant.ask(request, seconds=settings.load_seconds)
    except (ContestantFailed, ContestantGone) as error:
        if isinstance(error, ContestantGone) and error.is_ours:
            raise
        raise SandboxError(f"a sandboxed Python did not start: {error}") from None


def _rehearse(contestant: Contestant, settings: VerifySettings, problem: Problem) -> None:
    """Has the candidate construct and call its model, with tensors that have no memory. Extensions that it
    asks for only then are built now. The end of that call decides nothing, as there is no GPU."""
    message = as_problem_says("rehearse", problem, settings)
    with suppress(ContestantFailed, ContestantGone):
        contestant.ask(message, seconds=min(REHEARSAL_SECONDS, settings.load_seconds))


def _note(index: BuildIndex, entry: str, contents: Mapping[str, Build]) -> None:
    """Says in the index that these are the builds. Without an entry the source runs again."""
    with suppress(OSError):  # the disk is full, say
        index.set(entry, {content: build.key for content, build in contents.items()})


def _index_name(builder: Builder, source: str, problem: Problem, size: str) -> str:
    """The name, in the build index, of this source for this problem with this toolchain.

    An entry is only a hint that saves a run: the referee asks the builder again, which checks its cache.
    """
    toolchain = builder.toolchain.model_dump(mode="json")
    return sha256_json([KEY_FORMAT, sha256_text(source), problem.sha256, size, toolchain])


PACK_SECONDS = 60.0
MAX_LOG = 100_000
WITHOUT_GPU = "Without a GPU its first call ended early; what that call compiles besides is not known."


def compile_ahead(
    builder: Builder, source: str, settings: VerifySettings, jobs: Group, problem: Problem
) -> Prebuilt:
    """Compiles what the candidate's first call compiles; `first_calls` is the build that stands for it.

    Where the compiler refuses a kernel, `refused` says so. Other failures decide nothing, as there is no
    GPU: the candidate is then judged as it is.
    """
    first = backend(settings.backend).first_call
    assert first is not None
    key = builder.address(_material(first, source, settings, problem))
    known = builder.kept(key)
    if known is not None:
        return _prebuilt(known)
    stands = Build(key=key, state=BuildState.OK, name=f"{first.package} kernels")
    with Contestant(
        partial(builder.build, seconds=settings.build_seconds),
        memory_bytes=settings.memory_bytes,
        unsafe=settings.unsafe,
        jobs=jobs,
    ) as it:
        made, content = _compiled(it, builder, source, settings, problem, stands)
        report, builds = it.sandbox, tuple(it.builds)
    if content is not None or made.state is BuildState.ERROR:
        made = builder.keep(made, content)
    found = _prebuilt(made)
    return Prebuilt(
        builds,
        report,
        found.trouble,
        contents=it.contents,
        first_calls=made,
        refused=found.refused,
    )


def _compiled(
    contestant: Contestant,
    builder: Builder,
    source: str,
    settings: VerifySettings,
    problem: Problem,
    stands: Build,
) -> tuple[Build, bytes | None]:
    """Has the candidate loaded and called. The build that `stands` for what was compiled, and what the
    compiler left, if all of that is to be kept."""
    began, log = time.monotonic(), ""

    def result(state: BuildState, log: str) -> Build:
        seconds = round(time.monotonic() - began, 3)
        return stands.model_copy(update={"state": state, "duration_s": seconds, "log": log[:MAX_LOG]})

    try:
        greet(contestant, settings, builder)
        began = time.monotonic()
        load = {"op": "load", "source": source, "seed": 0}
        for message in (load, as_problem_says("rehearse", problem, settings)):
            contestant.ask(message, seconds=settings.build_seconds)
    except ContestantFailed as error:
        if error.kind == "compile":
            said = f"{refusal(error.type, error.message)}\n{error.traceback}"
            return result(BuildState.ERROR, said), None
        # Without a GPU that need not be the candidate's fault. The kernels compiled by then are of use.
        log = f"{WITHOUT_GPU}\n{error.traceback}"
    except ContestantGone as error:
        if error.timed_out:
            said = f"Stopped after {time.monotonic() - began:.0f} s."
            return result(BuildState.TIMEOUT, said), None
        if error.is_ours:
            return result(BuildState.INFRASTRUCTURE, f"Its process was {error.outcome.reason}."), None
        return result(BuildState.OK, f"{WITHOUT_GPU}\n{error}"), None
    content = None
    with suppress(ContestantFailed, ContestantGone, ValueError, TypeError):
        reply = contestant.ask({"op": "pack"}, seconds=PACK_SECONDS)
        content = base64.b64decode(reply["packed"], validate=True)
    return result(BuildState.OK, log), content


def _prebuilt(build: Build) -> Prebuilt:
    """The result of the build stage by the build that represents kernels compiled at their first call."""
    refused = build.log.partition("\n")[0] if build.state is not BuildState.OK else ""
    return Prebuilt((), None, build.log, first_calls=build, refused=refused)


def _material(first: FirstCall, source: str, settings: VerifySettings, problem: Problem) -> dict[str, object]:
    """All that decides what is compiled, beside the toolchain."""
    try:
        installed = version(first.package)
    except PackageNotFoundError:
        installed = ""
    return {
        "source": sha256_text(source),
        "problem": problem.sha256,
        "sizes": problem.sizes.get(settings.size, {}),
        "text": sha256_text(first.text),
        "package": [first.package, installed],
    }


class BuildStage:
    """Builds candidates below one cache directory. Thread-safe."""

    def __init__(
        self, cache: Path, jobs: Group, cores: Cores, others: tuple[int, ...], *, unsafe: bool
    ) -> None:
        """`others`: the processors that compilers keep to."""
        self._cache, self._jobs, self._cores, self._unsafe = cache, jobs, cores, unsafe
        self._others = others
        self._lock = threading.Lock()
        self._builder: Builder | None = None

    @property
    def builder(self) -> Builder:
        """The compilers and their cache. Raises MachineError."""
        with self._lock:
            if self._builder is None:
                self._builder = Builder(self._cache, unsafe=self._unsafe, group=self._jobs)
            return self._builder

    @property
    def toolchain(self) -> Toolchain:
        """The compilers of this machine. Raises MachineError."""
        self.require_cache()
        return self.builder.toolchain

    @contextmanager
    def place(self, on_stage: OnStage, stop: Stop) -> Iterator[None]:
        """A place for a build, whose compilers end when `stop` is asked. Raises RefereeLost, Stopped."""
        # The threads that watch the compilers stay off the cores kept for measurements, as the compilers do.
        with self._cores.building(stop), on_cores(self._others), self._jobs.part() as mine:
            on_stage("build")
            try:
                with stop.by(mine.close):
                    yield
            finally:
                stop.check()  # whatever else came of compilers that were killed

    def build(self, source: str, problem: Problem, settings: VerifySettings) -> Prebuilt:
        """The build stage of a candidate that is judged here."""
        here = device_for(settings.backend) is not None
        if backend(settings.backend).first_call is not None:
            if interprets(settings.backend):
                return Prebuilt((), None)
            return compile_ahead(self.builder, source, settings, self._jobs, problem)
        return prebuild(self.builder, self._cache, source, settings, self._jobs, problem, runs_here=here)

    def build_for_others(
        self, source: str, problem: Problem, settings: VerifySettings, stop: Stop
    ) -> Prebuilt | None:
        """The build stage of a candidate that another machine judges: all its libraries are among the builds.

        None where nothing has to be built: its text alone decides. Raises MachineError for what this machine
        lacks, RefereeLost when the engine is closed, Stopped.
        """
        if ended_by_review(review(source, problem, settings.backend)) is not None:
            return None
        self.require_cache()
        stage = (self.builder, self._cache, source, settings, self._jobs, problem)
        with self.place(lambda _: None, stop):
            found = prebuild(*stage, runs_here=True)
        self.require_compilers(found.builds, settings)
        return found

    def adopt(self, build: Build, library: bytes) -> Build:
        """A build of another machine with an equal toolchain, with its library in this machine's cache.

        Raises MachineError where that cannot be written.
        """
        here = self.builder.kept(build.key)
        if here is None or here.library_sha256 != build.library_sha256:
            here = self.builder.keep(build, library)
        if here.library is None:
            raise MachineError(f"the build cache {self._cache} cannot be written; make room there")
        return here

    def require_compilers(self, builds: Sequence[Build], settings: VerifySettings) -> None:
        """Raises MachineError where a build found no compiler, and no other candidate's would find one.

        A C++ candidate that asks for nvcc, or one for a library this toolkit lacks, is judged by itself.
        """
        if not any(build.state is BuildState.UNAVAILABLE for build in builds):
            return
        missing = self.builder.toolchain.lacks(cuda=backend(settings.backend).needs_nvcc)
        if missing is not None:
            raise MachineError(missing)

    def require_cache(self) -> None:
        """Raises MachineError where the cache's directory cannot be made."""
        try:
            self._cache.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            why = f"the cache {self._cache} cannot be made ({error.strerror})"
            raise MachineError(f"{why}; set KERNELPROOF_CACHE to a directory that can") from None
