"""Compiling one extension: cache, sandbox, verdict. A failure is a state of the `Build`, not an exception."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelproof.errors import MachineError
from kernelproof.hashing import sha256_json
from kernelproof.types.build import Build, BuildRequest, BuildState
from kernelproof.verifier.build.cache import LASTING, LockTimeout, open_cache
from kernelproof.verifier.build.compiling import MEMORY_BYTES, Compiler
from kernelproof.verifier.build.glue import Glue
from kernelproof.verifier.build.ninja_file import FlagError, Plan, make_plan, needs_cuda
from kernelproof.verifier.build.routes import Routes
from kernelproof.verifier.build.toolchain import Toolchain, learn_toolchain
from kernelproof.verifier.sandbox import Group

KEY_FORMAT = 2
"""Raise it when a build's meaning changes without its files changing: every entry is then made anew."""


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

    def lookup(self, request: BuildRequest) -> Build | None:
        """The finished build of this request, if the cache holds it; compiles nothing."""
        return self._cache.load(self.key(request))

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
        return self._address(material)

    def kept(self, key: str) -> Build | None:
        """What `keep` has stored under this key."""
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
        routes = Routes(self._compiler, self._glue, prepared.request, seconds, memory_bytes)
        build, library = routes.compile(prepared.key, prepared.plan, slim=self._slim)
        return self._cache.store(build, library) if build.state in LASTING else build


def _failure(prepared: _Prepared, state: BuildState, log: str) -> Build:
    return Build(key=prepared.key, state=state, name=prepared.request.name, log=log)
