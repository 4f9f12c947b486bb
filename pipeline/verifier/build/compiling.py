"""One run of the compilers over one plan, in a sandbox, and what its end means."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path

from kernelproof.types.build import Build, BuildState
from kernelproof.verifier.build.build_cache import BuildCache
from kernelproof.verifier.build.compiler_output import clean_log, killed, shorten
from kernelproof.verifier.build.ninja_file import LIBRARY, BuildPlan
from kernelproof.verifier.build.slim_headers import GLUE
from kernelproof.verifier.build.toolchain import Toolchain
from kernelproof.verifier.sandbox import Group, Limits, Outcome, read_result

MEMORY_BYTES = 8 << 30
LIBRARY_BYTES = 1 << 30
"""Of a library, and of an object."""
SCRATCH_BYTES = 4 << 30
OUTPUT_BYTES = 2 << 20
PROCESSES = 128
"""Limits of one compilation; docs/reference/builds.md lists them."""

_DISK_RESERVE_BYTES = 64 << 20

_OUT_OF_MEMORY = re.compile(
    r"virtual memory exhausted|out of memory allocating|std::bad_alloc|[Cc]annot allocate memory"
)
_DISK_FULL = re.compile(r"No space left on device|Disk quota exceeded")
_ABSENT_FROM_TOOLKIT = re.compile(
    r"fatal error: (?P<header>(?:cu(?:blas|sparse|solver|rand|fft|dnn)|nvrtc|nccl)[\w./]*): No such file"
    r'|identifier "(?P<name>cu(?:blas|sparse|solver)\w+)" is undefined'
)


@dataclass(frozen=True)
class Compiled:
    """What one run of the compilers yielded."""

    state: BuildState
    log: str
    wall_s: float
    cpu_s: float
    files: Mapping[str, bytes] = field(default_factory=dict)
    """What was to be made, by name, when the state is OK."""
    lost: bool = False
    """Whether a compiler was killed from outside, or its log says so."""
    proven: bool = False
    """Whether that is more than words, which a source can have a compiler write."""

    @property
    def library(self) -> bytes | None:
        """There when the state is OK."""
        return self.files.get(LIBRARY)

    def after(self, first: Compiled) -> Compiled:
        """Both runs as one."""
        log = "\n".join(filter(None, (first.log, self.log)))
        return replace(self, log=log, wall_s=first.wall_s + self.wall_s, cpu_s=first.cpu_s + self.cpu_s)

    def build(self, key: str, name: str, plan: BuildPlan) -> Build:
        """The record of it."""
        return Build(
            key=key,
            state=self.state,
            name=name,
            duration_s=self.wall_s,
            cpu_s=self.cpu_s,
            commands=plan.commands,
            log=self.log,
        )


class NoGlue(Exception):
    """The glue does not compile with this torch: no build can have it."""


class Compiler:
    """Runs ninja in a sandbox that sees compilers and torch's headers, nothing else. Thread-safe."""

    def __init__(
        self, toolchain: Toolchain, cache: BuildCache, group: Group, *, jobs: int, unsafe: bool
    ) -> None:
        self.toolchain = toolchain
        self._cache, self._group, self._jobs, self._unsafe = cache, group, jobs, unsafe

    def compile(
        self, plan: BuildPlan, glue: Future[bytes | None] | None, seconds: float, memory_bytes: int
    ) -> Compiled:
        """The library of a plan. `glue`: what is linked in; only the linker waits for it.

        Raises NoGlue, OSError or MachineError when this machine fails.
        """
        if glue is None:
            return self._make(plan, {}, (LIBRARY,), seconds, memory_bytes)
        if glue.done():
            return self._make(plan, {GLUE: _bytes_of(glue)}, (LIBRARY,), seconds, memory_bytes)
        first = self._make(plan, {}, plan.objects, seconds, memory_bytes)
        if first.state is not BuildState.OK:
            return first
        # Linked in another folder: nothing is written where the compilers of a candidate have been.
        given = {**first.files, GLUE: _bytes_of(glue)}
        left = max(1.0, seconds - first.wall_s)
        return self._make(plan.linking(), given, (LIBRARY,), left, memory_bytes).after(first)

    def _make(
        self,
        plan: BuildPlan,
        extra_files: Mapping[str, bytes],
        wanted: Sequence[str],
        seconds: float,
        memory_bytes: int,
    ) -> Compiled:
        """The files `wanted` of a plan, with those `extra_files` beside its own."""
        with self._cache.scratch() as scratch:
            plan.write(scratch)
            for name, data in extra_files.items():
                (scratch / name).write_bytes(data)
            outcome = self._run(scratch, wanted, seconds, memory_bytes)
            log = clean_log(outcome.stdout + outcome.stderr, scratch)
            state, reason = _judge(outcome, log, scratch, self.toolchain)
            made = {}
            if state is BuildState.OK:
                try:
                    made = {name: read_result(scratch, name, LIBRARY_BYTES) for name in wanted}
                except (OSError, ValueError) as error:
                    state, reason = BuildState.ERROR, f"The compilers left no usable library: {error}"
        said = shorten(f"{reason}\n{log}") if reason else log
        lost = outcome.state == "lost" or (state is BuildState.INFRASTRUCTURE and bool(killed(log)))
        proven = outcome.state == "lost" or outcome.shortage
        return Compiled(state, said, outcome.wall_s, outcome.cpu_s, made, lost, proven)

    def _run(self, scratch: Path, wanted: Sequence[str], seconds: float, memory_bytes: int) -> Outcome:
        # Without -k ninja stops at the first failure, and which of two failing files that is depends on the
        # compiler that finishes first: the log would differ from run to run.
        command = (str(self.toolchain.ninja), "-k", "0", "-j", str(self._jobs), *wanted)
        limits = Limits(
            wall_s=seconds,
            cpu_s=seconds * self._jobs,
            memory_bytes=memory_bytes,
            processes=PROCESSES,
            file_bytes=LIBRARY_BYTES,
            output_bytes=OUTPUT_BYTES,
            scratch_bytes=SCRATCH_BYTES,
            address_space_bytes=memory_bytes,
        )
        return self._group.run(self.toolchain.job(command, scratch, limits), unsafe=self._unsafe)


def _bytes_of(glue: Future[bytes | None]) -> bytes:
    found = glue.result()
    if found is None:
        raise NoGlue
    return found


def _judge(outcome: Outcome, log: str, scratch: Path, toolchain: Toolchain) -> tuple[BuildState, str]:
    """The state an outcome means; a first line for the log where the compilers' own words do not say it."""
    if outcome.state == "ok":
        return BuildState.OK, ""
    if outcome.state in ("timeout", "cpu", "memory", "output"):
        return BuildState.TIMEOUT, f"Stopped after {outcome.wall_s:.0f} s: {outcome.reason or outcome.state}."
    if outcome.state != "error":
        detail = outcome.reason or outcome.signal or ""
        return BuildState.INFRASTRUCTURE, f"The build's worker was lost ({outcome.state} {detail})."
    if _DISK_FULL.search(log):
        if shutil.disk_usage(scratch).free < _DISK_RESERVE_BYTES:
            return BuildState.INFRASTRUCTURE, "The disk that holds temporary files is full."
        return BuildState.TIMEOUT, f"The compilation wrote more than {SCRATCH_BYTES >> 30} GiB."
    if line := killed(log):
        if outcome.used_it_up:
            return BuildState.TIMEOUT, f"The compilers used up this machine's memory: {line}"
        return BuildState.INFRASTRUCTURE, f"A compiler was killed from outside: {line}"
    if _OUT_OF_MEMORY.search(log):
        return BuildState.TIMEOUT, "The compilers ran out of the memory a build may use."
    absent = _ABSENT_FROM_TOOLKIT.search(log) if toolchain.absent_headers else None
    if absent:
        what = absent["header"] or absent["name"]
        return BuildState.UNAVAILABLE, f"This machine's CUDA toolkit lacks {what}: install the full toolkit."
    return BuildState.ERROR, ""
