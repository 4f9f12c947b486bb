"""The build stage: a candidate's extensions are built before a referee sees it.

So compilers run while a GPU is busy with another candidate, and a candidate that does not compile never gets
near one. It runs in a sandbox without a GPU, and its calls reach the builder, whose cache the referee uses
later. It runs with a stub of torch first (`stub_builds`), in a tenth of a second instead of seconds. Where
that does not show all of its builds, and where something does not compile that it may never ask for, it is
imported with torch, and rehearsed.

What the stub run says is untrusted. It decides whether the candidate is run once more, with torch, and
nothing else: a candidate that lies gets its builds later, or a failure that is its own.
"""

from __future__ import annotations

import ast
import re
import site
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from kernelproof.backends import backend
from kernelproof.errors import SandboxError
from kernelproof.hashing import sha256_json, sha256_text
from kernelproof.pysource import parse
from kernelproof.types import Build, BuildRequest, BuildState, Problem, SandboxReport, VerifySettings
from kernelproof.types.record import FrozenRecord
from kernelproof.verifier.build import KEY_FORMAT, Builder, BuildIndex, Toolchain
from kernelproof.verifier.sandbox import Group
from kernelproof.verifier.workers.client import Contestant, ContestantFailed, ContestantGone

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


class StubBuilds(FrozenRecord):
    """What was built in a run that showed enough."""

    builds: tuple[Build, ...]
    contents: dict[str, Build]
    """The builds, by the requests' `content_sha256`."""
    sandbox: SandboxReport
    trouble: str = ""
    """The traceback of the failed build that ended it, if one did."""
    raised: str = ""
    """The message of that."""


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
) -> StubBuilds | None:
    """Has built what the candidate asks for where a stub stands in torch's place.

    None where that does not show all of its builds, or not what comes of one that failed.
    """
    message = {
        "source": source,
        "class": MODEL,
        "problem": problem.source,
        "sizes": problem.sizes.get(settings.size, {}),
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
    return StubBuilds(
        builds=builds,
        contents=dict(zip(contestant.contents, builds, strict=True)),
        sandbox=contestant.sandbox,
        trouble=run.traceback if failed else "",
        raised=run.message if failed else "",
    )


REHEARSAL_SECONDS = 30.0
"""Most seconds for constructing and calling the model without a GPU, builds not counted."""


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

    def build(request: BuildRequest) -> Build:
        return builder.build(request, seconds=settings.build_seconds)

    quick = stub_builds(build, builder.toolchain, source, settings, problem, jobs) if shows else None
    if quick is not None and (quick.builds or runs_here):
        if not quick.trouble:
            _note(index, entry, quick.contents)
        return Prebuilt(quick.builds, quick.sandbox, quick.trouble, quick.raised, quick.contents)
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
    contents = dict(zip(contestant.contents, builds, strict=True))
    if not trouble and all(b.state is BuildState.OK for b in builds):
        _note(index, entry, contents)
    return Prebuilt(builds, report, trouble, raised, contents)


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
    plug = backend(settings.backend)
    first = plug.first_call.message(interpret=False) if plug.first_call is not None else None
    hello: dict[str, Any] = {"op": "hello", "device": "cpu", "threads": 1, "flush_bytes": 0}
    request = {"op": "pretend", "device": plug.pretended, "capability": builder.toolchain.capability}
    try:
        contestant.wait_ready()
        contestant.ask({**hello, "first_calls": first}, seconds=settings.load_seconds)
        contestant.ask(request, seconds=settings.load_seconds)
    except (ContestantFailed, ContestantGone) as error:
        if isinstance(error, ContestantGone) and error.is_ours:
            raise
        raise SandboxError(f"a sandboxed Python did not start: {error}") from None


def _rehearse(contestant: Contestant, settings: VerifySettings, problem: Problem) -> None:
    """Has the candidate construct and call its model, with tensors that have no memory. Extensions that it
    asks for only then are built now. The end of that call decides nothing, as there is no GPU."""
    sizes = problem.sizes.get(settings.size, {})
    message = {"op": "rehearse", "class": MODEL, "problem": problem.source, "sizes": sizes}
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
