"""Building one extension: cache, compilers in a sandbox, result. A failure is a state of the `Build`, not an
exception.

`Builder.build` looks in the cache, then has `Routes` compile: with the slim headers where they suffice, and
with all of torch's where they do not. A source that fails with the slim headers is compiled again in full,
unless no header can mend it; the source beside it is not. `Glue` is the object file between our bindings and
torch's Python side, compiled once for an environment.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kernelproof.errors import MachineError
from kernelproof.hashing import sha256_json
from kernelproof.types.build import Build, BuildRequest, BuildState, Route
from kernelproof.verifier.build.build_cache import LASTING, BuildCache, LockTimeout, open_cache
from kernelproof.verifier.build.compiler_output import clean_log, failures, first_error, killed, shorten
from kernelproof.verifier.build.compiling import (
    CPP_OBJECT,
    CUDA_OBJECT,
    MEMORY_BYTES,
    BuildPlan,
    Compiled,
    Compiler,
    FlagError,
    NoGlue,
    make_plan,
    needs_cuda,
)
from kernelproof.verifier.build.slim_headers import (
    GLUE,
    GLUE_FOLDER,
    Slim,
    has_unfixable_errors,
    headers,
    slim_route,
)
from kernelproof.verifier.build.toolchain import Toolchain, learn_toolchain
from kernelproof.verifier.sandbox import Group, Limits, read_result

OBJECT_BYTES = 64 << 20
_LOCK = "glue"
"""Not its key: keys share lock files, and the process that makes the glue holds a build's lock already."""
_LIMITS = Limits(wall_s=600.0, cpu_s=600.0, memory_bytes=4 << 30, processes=32, file_bytes=OBJECT_BYTES)


class Glue:
    """Compiles the glue for one toolchain, and keeps it in the cache of builds. Thread-safe."""

    def __init__(self, toolchain: Toolchain, cache: BuildCache, group: Group, *, unsafe: bool) -> None:
        self._toolchain, self._cache, self._group, self._unsafe = toolchain, cache, group, unsafe
        self._sources = {"glue.cpp": (GLUE_FOLDER / "glue.cpp").read_text(), **headers()}
        self._key = sha256_json(["glue", toolchain.identity, self._sources])
        self._guard = threading.Lock()
        self._making: Future[bytes | None] | None = None

    def begun(self) -> Future[bytes | None]:
        """A future of `object()`. An object that is not there yet is compiled meanwhile, once for all
        callers."""
        with self._guard:
            if self._making is not None and not self._making.done():
                return self._making
            if self._cache.load(self._key) is not None:
                return _now(self.object)
            ahead = ThreadPoolExecutor(1, thread_name_prefix="glue")
            self._making = ahead.submit(self.object)
            ahead.shutdown(wait=False)
            return self._making

    def object(self) -> bytes | None:
        """The object file, compiled now if need be; None where it does not compile with this torch.

        Raises LockTimeout, OSError or MachineError when this machine fails.
        """
        try:
            return self._read()
        except FileNotFoundError:  # the cache was cleared between the look and the reading
            return self._read()

    def _read(self) -> bytes | None:
        build = self._cache.load(self._key)
        if build is None:
            with self._cache.lock(_LOCK, _LIMITS.wall_s or 600.0, lambda: self._group.closed):
                build = self._cache.load(self._key) or self._make()
        return Path(build.library).read_bytes() if build.library is not None else None

    def _make(self) -> Build:
        chain = self._toolchain
        includes = [
            word for path in (*chain.torch_includes, chain.python_include) for word in ("-isystem", path)
        ]
        command = (str(chain.cxx), *includes, "-DTORCH_API_INCLUDE_EXTENSION_H", f"-std={chain.cxx_standard}")
        command += ("-fPIC", "-O1", "-c", "glue.cpp", "-o", GLUE)
        with self._cache.scratch() as scratch:
            for name, text in self._sources.items():
                (scratch / name).write_text(text)
            outcome = self._group.run(chain.job(command, scratch, _LIMITS), unsafe=self._unsafe)
            log = clean_log(outcome.stdout + outcome.stderr, scratch)
            state = {"ok": BuildState.OK, "error": BuildState.ERROR}.get(outcome.state)
            state = None if state is BuildState.ERROR and killed(log) else state
            made = read_result(scratch, GLUE, OBJECT_BYTES) if state is BuildState.OK else None
        build = Build(
            key=self._key,
            state=state or BuildState.INFRASTRUCTURE,
            name="glue",
            duration_s=outcome.wall_s,
            cpu_s=outcome.cpu_s,
            commands=(" ".join(command),),
            log=log,
        )
        return self._cache.store(build, made) if build.state in LASTING else build


def _now(work: Callable[[], bytes | None]) -> Future[bytes | None]:
    done: Future[bytes | None] = Future()
    done.set_result(work())
    return done


TRIES = 3
"""Compilers that are killed from outside start again until they were killed so often."""


class Routes:
    """Compiles one request by the routes that fit it, within limits for all of them together."""

    def __init__(
        self, compiler: Compiler, glue: Glue, request: BuildRequest, seconds: float, memory_bytes: int
    ) -> None:
        self._compiler, self._glue, self._request = compiler, glue, request
        self._began, self._seconds, self._memory_bytes = time.monotonic(), seconds, memory_bytes
        self._cpu_s = 0.0

    def compile(self, key: str, full: BuildPlan, *, slim: bool) -> tuple[Build, bytes | None]:
        """The build and its library. `full`: the plan of the full route, which alone is gone without `slim`.

        Raises LockTimeout, OSError or MachineError when this machine fails.
        """
        route = slim_route(self._request, self._compiler.toolchain) if slim else None
        glue = self._glue.begun() if route is not None and route.bindings else None
        fallback = ""
        while route is not None:
            plan = make_plan(self._request, self._compiler.toolchain, route)
            try:
                done = self._run(plan, glue if route.bindings else None)
            except NoGlue:
                route = route.only(cuda=True, bindings=False)
                continue
            if done.state is not BuildState.ERROR:
                return self._build(done, key, plan, Route.SLIM, fallback), done.library
            rest = _rest(route, done)
            if rest == route or has_unfixable_errors(done.log, self._request, self._compiler.toolchain):
                # The source that failed had all headers, or no header would help.
                return self._build(done, key, plan, Route.SLIM, fallback), None
            fallback = fallback or first_error(done.log)
            route = rest
        done = self._run(full, None)
        return self._build(done, key, full, Route.FULL, fallback), done.library

    def _build(self, done: Compiled, key: str, plan: BuildPlan, route: Route, fallback: str) -> Build:
        changes = {
            "route": route,
            "fallback": fallback,
            "duration_s": time.monotonic() - self._began,
            "cpu_s": self._cpu_s,
        }
        return done.build(key, self._request.name, plan).model_copy(update=changes)

    def _run(self, plan: BuildPlan, glue: Future[bytes | None] | None) -> Compiled:
        left = max(1.0, self._seconds - (time.monotonic() - self._began))
        runs: list[Compiled] = []
        while not runs or (runs[-1].lost and len(runs) < TRIES):  # that took time which is not the source's
            runs.append(self._compiler.compile(plan, glue, left, self._memory_bytes))
            self._cpu_s += runs[-1].cpu_s
        done = runs[-1]
        if done.lost and not any(run.proven for run in runs):  # the source writes that: it does each time
            why = f"The compilers were killed {TRIES} times of {TRIES}, and this machine had memory left."
            return replace(done, state=BuildState.TIMEOUT, log=shorten(f"{why}\n{done.log}"))
        return done


def _rest(route: Slim, done: Compiled) -> Slim | None:
    """What of the slim route to go on with after this error; None where it was no source that failed."""
    failed = failures(done.log)
    if not failed or not failed <= {CPP_OBJECT, CUDA_OBJECT}:
        return None
    return route.only(cuda=CUDA_OBJECT not in failed, bindings=CPP_OBJECT not in failed)


KEY_FORMAT = 2
"""Raise it when a build's meaning changes without its files changing: every entry is then made anew."""


@dataclass(frozen=True)
class _Prepared:
    """A request with its address, and either the plan or the reason why there is none."""

    request: BuildRequest
    key: str
    plan: BuildPlan | None = None
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

        `group`: closing the group ends the builds under way, which then are INFRASTRUCTURE failures.

        Raises MachineError when the cache cannot be written or torch is missing, UsageError for a malformed
        KERNELPROOF_CACHE_BYTES.
        """
        self.toolchain = toolchain or learn_toolchain(cache_dir)
        self._group = group or Group()
        self._slim = slim
        self._cache = open_cache(cache_dir)
        self._compiler = Compiler(self.toolchain, self._cache, self._group, jobs=jobs, unsafe=unsafe)
        self._glue = Glue(self.toolchain, self._cache, self._group, unsafe=unsafe)

    def key(self, request: BuildRequest) -> str:
        """The request's address: SHA-256 over every file written, the command lines, compilers and torch."""
        return self._prepare(request).key

    def ready(self, request: BuildRequest) -> Build | None:
        """What `build` gives without a compiler: from the cache, or a failure for which none is asked."""
        prepared = self._prepare(request)
        found = self._cache.load(prepared.key)
        if found is not None or not (prepared.missing or prepared.refusal):
            return found
        if prepared.missing:
            return _failure(prepared, BuildState.UNAVAILABLE, prepared.missing)
        return _failure(prepared, BuildState.ERROR, prepared.refusal)

    def holds(self, keys: Iterable[str]) -> bool:
        """Whether the cache holds a library for each of these keys. They count as used now."""
        found = (self._cache.load(key) for key in keys)
        return all(build is not None and build.state is BuildState.OK for build in found)

    def held(self, keys: Mapping[str, str] | None) -> dict[str, Build] | None:
        """The builds with these keys, by what names the keys; None where the cache lacks a library of one.
        They count as used now."""
        found = {name: self._cache.load(key) for name, key in (keys or {}).items()}
        there = {name: b for name, b in found.items() if b is not None and b.state is BuildState.OK}
        return there if keys is not None and len(there) == len(keys) else None

    def address(self, material: dict[str, Any]) -> str:
        """The address of what this toolchain makes of `material`, which is all else that decides it."""
        return sha256_json([KEY_FORMAT, self.toolchain.identity, material])

    def kept(self, key: str) -> Build | None:
        """What is stored under this key; compiles nothing."""
        return self._cache.load(key)

    def keep(self, build: Build, content: bytes | None) -> Build:
        """Stores what another compiler made, under the build's key; returns it as it is where that fails."""
        try:
            with self._cache.lock(build.key, 60.0, lambda: self._group.closed):
                return self._cache.store(build, content)
        except (LockTimeout, OSError):
            return build

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
            address = self.address({"missing": missing, "request": asked})
            return _Prepared(request, address, missing=missing)
        try:
            plan = make_plan(request, self.toolchain)
        except FlagError as error:
            return _Prepared(
                request, self.address({"refused": str(error), "request": asked}), refusal=str(error)
            )
        # The plan is the whole input of the compilers; `native` alone refers to something outside of it.
        native = any("native" in command for command in plan.commands)
        material: dict[str, Any] = {
            "files": plan.files,
            "cpu": self.toolchain.cpu if native else None,
            "name": request.name,
        }
        return _Prepared(request, self.address(material), plan=plan)

    def _make(self, prepared: _Prepared, seconds: float, memory_bytes: int) -> Build:
        """Compile and store. Raises OSError or MachineError when this machine fails."""
        if prepared.plan is None:
            return self._cache.store(_failure(prepared, BuildState.ERROR, prepared.refusal), None)
        routes = Routes(self._compiler, self._glue, prepared.request, seconds, memory_bytes)
        build, library = routes.compile(prepared.key, prepared.plan, slim=self._slim)
        return self._cache.store(build, library) if build.state in LASTING else build


def _failure(prepared: _Prepared, state: BuildState, log: str) -> Build:
    return Build(key=prepared.key, state=state, name=prepared.request.name, log=log)
