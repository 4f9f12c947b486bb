"""Compiling one extension: cache, sandbox, verdict. A failure is a state of the `Build`, not an exception."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.build.cache import LASTING, LockTimeout, open_cache
from pipeline.build.compile_log import clean_log, first_error, shorten
from pipeline.build.glue import Glue
from pipeline.build.ninja_file import LIBRARY, FlagError, Plan, make_plan, needs_cuda
from pipeline.build.slim import GLUE, slim_route
from pipeline.build.toolchain import Toolchain, learn_toolchain
from pipeline.errors import MachineError
from pipeline.hashing import sha256_json
from pipeline.nouns.build import Build, BuildRequest, BuildState, Route
from pipeline.sandbox import Group, Limits, Outcome, read_result

KEY_FORMAT = 2
"""Raise it when a build's meaning changes without its files changing: every entry is then made anew."""

MEMORY_BYTES = 8 << 30
LIBRARY_BYTES = 1 << 30
SCRATCH_BYTES = 4 << 30
OUTPUT_BYTES = 2 << 20
PROCESSES = 128
"""Limits of one compilation; docs/builds.md lists them."""

_DISK_RESERVE_BYTES = 64 << 20

_OUT_OF_MEMORY = re.compile(
    r"Killed signal terminated program|virtual memory exhausted|out of memory allocating|std::bad_alloc"
    r"|[Cc]annot allocate memory"
)
_DISK_FULL = re.compile(r"No space left on device|Disk quota exceeded")
_ABSENT_FROM_TOOLKIT = re.compile(
    r"fatal error: (?P<header>(?:cu(?:blas|sparse|solver|rand|fft|dnn)|nvrtc|nccl)[\w./]*): No such file"
    r'|identifier "(?P<name>cu(?:blas|sparse|solver)\w+)" is undefined'
)


@dataclass(frozen=True)
class _Prepared:
    """A request with its address, and either the plan or the reason why there is none."""

    request: BuildRequest
    key: str
    plan: Plan | None = None
    refusal: str = ""
    """The request's own fault: flags that cannot be put on a command line."""
    missing: str = ""
    """This machine's fault: what it lacks."""


class Builder:
    """Compiles requests in a sandbox and keeps the results below `cache_dir`. Thread-safe."""

    def __init__(
        self,
        cache_dir: Path,
        *,
        toolchain: Toolchain | None = None,
        jobs: int = 2,
        unsafe: bool = False,
        group: Group | None = None,
        slim: bool = True,
    ) -> None:
        """`jobs`: compilers at one time within one build. `unsafe`: accept the weakest sandbox.

        `slim`: try the slim route first, where a request fits it; without, all are compiled in full.

        `group`: whoever closes it ends the builds under way, which then are INFRASTRUCTURE failures.

        Raises MachineError when the cache cannot be written or torch is missing, UsageError for a malformed
        KERNELPROOF_CACHE_BYTES.
        """
        self.toolchain = toolchain or learn_toolchain(cache_dir)
        self._jobs = jobs
        self._unsafe = unsafe
        self._group = group or Group()
        self._slim = slim
        self._cache = open_cache(cache_dir)
        self._glue = Glue(self.toolchain, self._cache, self._group, unsafe=unsafe)

    def key(self, request: BuildRequest) -> str:
        """The request's address: SHA-256 over every file written, the command lines, compilers and torch."""
        return self._prepare(request).key

    def lookup(self, request: BuildRequest) -> Build | None:
        """The finished build of this request, if the cache holds it; compiles nothing."""
        return self._cache.load(self.key(request))

    def holds(self, keys: Iterable[str]) -> bool:
        """Whether the cache holds a library for each of these keys. They count as used now."""
        found = (self._cache.load(key) for key in keys)
        return all(build is not None and build.state is BuildState.OK for build in found)

    def build(
        self, request: BuildRequest, *, seconds: float = 600.0, memory_bytes: int = MEMORY_BYTES
    ) -> Build:
        """This request's build: from the cache, else compiled now within `seconds` and `memory_bytes`."""
        prepared = self._prepare(request)
        found = self._cache.load(prepared.key)
        if found is not None:
            return found
        if prepared.missing:
            return _failure(prepared, BuildState.UNAVAILABLE, prepared.missing)
        try:
            with self._cache.lock(prepared.key, 2 * seconds + 60, lambda: self._group.closed):
                return self._cache.load(prepared.key) or self._make(prepared, seconds, memory_bytes)
        except LockTimeout as error:
            return _failure(prepared, BuildState.INFRASTRUCTURE, str(error))
        except (OSError, MachineError) as error:
            return _failure(
                prepared, BuildState.INFRASTRUCTURE, f"The build could not be carried out: {error}"
            )

    def _prepare(self, request: BuildRequest) -> _Prepared:
        asked = request.model_dump(mode="json")
        missing = self.toolchain.lacks(cuda=needs_cuda(request))
        if missing:
            address = self._address({"missing": missing, "request": asked})
            return _Prepared(request, address, missing=missing)
        try:
            plan = make_plan(request, self.toolchain)
        except FlagError as error:
            return _Prepared(
                request, self._address({"refused": str(error), "request": asked}), refusal=str(error)
            )
        # The plan is the whole input of the compilers; `native` alone refers to something outside of it.
        native = any("native" in command for command in plan.commands)
        material: dict[str, Any] = {
            "files": plan.files,
            "cpu": self.toolchain.cpu if native else None,
            "name": request.name,
        }
        return _Prepared(request, self._address(material), plan=plan)

    def _address(self, material: dict[str, Any]) -> str:
        return sha256_json([KEY_FORMAT, self.toolchain.identity, material])

    def _make(self, prepared: _Prepared, seconds: float, memory_bytes: int) -> Build:
        """Compile and store. Raises OSError or MachineError when this machine fails."""
        if prepared.plan is None:
            return self._cache.store(_failure(prepared, BuildState.ERROR, prepared.refusal), None)
        began, fallback, cpu_s = time.monotonic(), "", 0.0
        slim = slim_route(prepared.request, self.toolchain) if self._slim else None
        glue = self._glue.object() if slim is not None and slim.bindings else None
        if slim is not None and (glue is not None or not slim.bindings):
            plan = make_plan(prepared.request, self.toolchain, slim)
            build, library = self._compiled(prepared, plan, glue, seconds, memory_bytes)
            if build.state is not BuildState.ERROR:
                return self._kept(build.model_copy(update={"route": Route.SLIM}), library)
            fallback, cpu_s = first_error(build.log), build.cpu_s
            seconds = max(1.0, seconds - (time.monotonic() - began))
        build, library = self._compiled(prepared, prepared.plan, None, seconds, memory_bytes)
        changes = {
            "fallback": fallback,
            "duration_s": time.monotonic() - began,
            "cpu_s": build.cpu_s + cpu_s,
        }
        return self._kept(build.model_copy(update=changes), library)

    def _kept(self, build: Build, library: bytes | None) -> Build:
        return self._cache.store(build, library) if build.state in LASTING else build

    def _compiled(
        self, prepared: _Prepared, plan: Plan, glue: bytes | None, seconds: float, memory_bytes: int
    ) -> tuple[Build, bytes | None]:
        """One route's build and library."""
        with self._cache.scratch() as scratch:
            plan.write(scratch)
            if glue is not None:
                (scratch / GLUE).write_bytes(glue)
            outcome = self._compile(scratch, seconds, memory_bytes)
            log = clean_log(outcome.stdout + outcome.stderr, scratch)
            state, reason = _judge(outcome, log, scratch, self.toolchain)
            library = None
            if state is BuildState.OK:
                try:
                    library = read_result(scratch, LIBRARY, LIBRARY_BYTES)
                except (OSError, ValueError) as error:
                    state, reason = BuildState.ERROR, f"The compilers left no usable library: {error}"
        build = Build(
            key=prepared.key,
            state=state,
            name=prepared.request.name,
            duration_s=outcome.wall_s,
            cpu_s=outcome.cpu_s,
            commands=plan.commands,
            log=shorten(f"{reason}\n{log}") if reason else log,
        )
        return build, library

    def _compile(self, scratch: Path, seconds: float, memory_bytes: int) -> Outcome:
        """Run ninja over `scratch` in a sandbox that sees the compilers and torch's headers, nothing else."""
        chain = self.toolchain
        # Without -k ninja stops at the first failure, and which of two failing files that is depends on
        # who finishes first: the log would differ from run to run.
        command = (str(chain.ninja), "-k", "0", "-j", str(self._jobs))
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
        return self._group.run(chain.job(command, scratch, limits), unsafe=self._unsafe)


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
    if _OUT_OF_MEMORY.search(log):
        return BuildState.TIMEOUT, "The compilers ran out of the memory a build may use."
    absent = _ABSENT_FROM_TOOLKIT.search(log) if toolchain.absent_headers else None
    if absent:
        what = absent["header"] or absent["name"]
        return BuildState.UNAVAILABLE, f"This machine's CUDA toolkit lacks {what}: install the full toolkit."
    return BuildState.ERROR, ""


def _failure(prepared: _Prepared, state: BuildState, log: str) -> Build:
    return Build(key=prepared.key, state=state, name=prepared.request.name, log=log)
