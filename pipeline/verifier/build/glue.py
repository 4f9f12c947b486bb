"""The glue between our bindings and torch's Python side: one object file, made once for an environment."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from kernelproof.hashing import sha256_json
from kernelproof.types.build import Build, BuildState
from kernelproof.verifier.build.cache import LASTING, BuildCache
from kernelproof.verifier.build.compile_log import clean_log, killed
from kernelproof.verifier.build.slim import GLUE, GLUE_FOLDER, headers
from kernelproof.verifier.build.toolchain import Toolchain
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
