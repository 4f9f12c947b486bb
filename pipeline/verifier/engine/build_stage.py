"""The build stage of an engine: candidates are built for this machine, or for another that judges.

Where kernels are compiled when they are first called (`compile_ahead`), the candidate is imported and called
in a sandbox without a GPU, on tensors without memory. A driver that launches nothing stands in for CUDA's,
so its kernels are compiled for this machine's GPU while another candidate is on it. The compiler's output is
kept by the source's content, and handed to the process that is judged. No other source ever gets it: a
candidate that writes other things there harms only itself.
"""

from __future__ import annotations

import base64
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from kernelproof.backends import FirstCall, backend
from kernelproof.errors import MachineError
from kernelproof.hashing import sha256_text
from kernelproof.types import Build, BuildRequest, BuildState, Problem, VerifySettings
from kernelproof.verifier.build import Builder, Toolchain
from kernelproof.verifier.build.compiler_output import refusal
from kernelproof.verifier.devices.discovery import device_for, interprets
from kernelproof.verifier.engine.core_sharing import Cores
from kernelproof.verifier.engine.prebuild import MODEL, Prebuilt, greet, prebuild
from kernelproof.verifier.engine.referee_process import OnStage
from kernelproof.verifier.engine.stop import Stop
from kernelproof.verifier.policy import review
from kernelproof.verifier.sandbox import Group, on_cores
from kernelproof.verifier.status_rules import ended_by_review
from kernelproof.verifier.workers.client import Contestant, ContestantFailed, ContestantGone

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
    turn = _Turn(builder, first, source, settings, problem, key)
    with Contestant(turn.build, memory_bytes=settings.memory_bytes, unsafe=settings.unsafe, jobs=jobs) as it:
        made, content = turn.take(it)
        report, builds, contents = it.sandbox, tuple(it.builds), tuple(it.contents)
    if content is not None or made.state is BuildState.ERROR:
        made = builder.keep(made, content)
    found = _prebuilt(made)
    return Prebuilt(
        builds,
        report,
        found.trouble,
        contents=dict(zip(contents, builds, strict=True)),
        first_calls=made,
        refused=found.refused,
    )


class _Turn:
    """One candidate's compile-only turn."""

    def __init__(
        self,
        builder: Builder,
        first: FirstCall,
        source: str,
        settings: VerifySettings,
        problem: Problem,
        key: str,
    ) -> None:
        self._builder, self._first, self._source = builder, first, source
        self._settings, self._problem, self._key = settings, problem, key

    def build(self, request: BuildRequest) -> Build:
        """Serves the extensions that the candidate wants besides."""
        return self._builder.build(request, seconds=self._settings.build_seconds)

    def take(self, contestant: Contestant) -> tuple[Build, bytes | None]:
        """The build that stands for what was compiled, and what the compiler left, if all of that is to be
        kept."""
        began, log = time.monotonic(), ""
        try:
            greet(contestant, self._settings, self._builder)
            began = time.monotonic()
            self._call(contestant)
        except ContestantFailed as error:
            if error.kind == "compile":
                said = f"{refusal(error.type, error.message)}\n{error.traceback}"
                return self._result(BuildState.ERROR, began, said), None
            # Without a GPU that need not be the candidate's fault. The kernels compiled by then are of use.
            log = f"{WITHOUT_GPU}\n{error.traceback}"
        except ContestantGone as error:
            if error.timed_out:
                took = time.monotonic() - began
                return self._result(BuildState.TIMEOUT, began, f"Stopped after {took:.0f} s."), None
            if error.is_ours:
                said = f"Its process was {error.outcome.reason}."
                return self._result(BuildState.INFRASTRUCTURE, began, said), None
            return self._result(BuildState.OK, began, f"{WITHOUT_GPU}\n{error}"), None
        content = None
        with suppress(ContestantFailed, ContestantGone, ValueError, TypeError):
            reply = contestant.ask({"op": "pack"}, seconds=PACK_SECONDS)
            content = base64.b64decode(reply["packed"], validate=True)
        return self._result(BuildState.OK, began, log), content

    def _call(self, contestant: Contestant) -> None:
        """Has the candidate loaded and called. Raises what `Contestant.ask` raises."""
        settings, problem = self._settings, self._problem
        load = {"op": "load", "source": self._source, "seed": 0}
        contestant.ask(load, seconds=settings.build_seconds)
        sizes = problem.sizes.get(settings.size, {})
        call: dict[str, Any] = {"op": "rehearse", "class": MODEL, "problem": problem.source, "sizes": sizes}
        contestant.ask(call, seconds=settings.build_seconds)

    def _result(self, state: BuildState, began: float, log: str) -> Build:
        return Build(
            key=self._key,
            state=state,
            name=f"{self._first.package} kernels",
            duration_s=round(time.monotonic() - began, 3),
            log=log[:MAX_LOG],
        )


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
