"""The build stage of an engine: candidates are built for this machine, or for another that judges."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from kernelproof.backends import backend
from kernelproof.errors import MachineError
from kernelproof.types import Build, BuildState, Problem, Severity, VerifySettings
from kernelproof.verifier.build import Builder, Toolchain
from kernelproof.verifier.devices.discovery import device_for, interprets
from kernelproof.verifier.engine.compile_ahead import compile_ahead
from kernelproof.verifier.engine.core_sharing import Cores
from kernelproof.verifier.engine.prebuild import Prebuilt, prebuild
from kernelproof.verifier.engine.referee_process import OnStage
from kernelproof.verifier.engine.stop import Stop
from kernelproof.verifier.policy import review
from kernelproof.verifier.sandbox import Group, on_cores


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

    def made(self, source: str, problem: Problem, settings: VerifySettings) -> Prebuilt:
        """The build stage of a candidate that is judged here."""
        here = device_for(settings.backend) is not None
        if backend(settings.backend).first_call is not None:
            if interprets(settings.backend):
                return Prebuilt((), None)
            return compile_ahead(self.builder, source, settings, self._jobs, problem)
        return prebuild(self.builder, self._cache, source, settings, self._jobs, problem, runs_here=here)

    def made_for_others(
        self, source: str, problem: Problem, settings: VerifySettings, stop: Stop
    ) -> Prebuilt | None:
        """The build stage of a candidate that another machine judges: all its libraries are among the builds.

        None where nothing has to be built: its text alone decides. Raises MachineError for what this machine
        lacks, RefereeLost when the engine is closed, Stopped.
        """
        if any(f.severity is Severity.ERROR and f.status for f in review(source, problem, settings.backend)):
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
