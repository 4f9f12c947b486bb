"""Builds: what a compiler was asked for, what came of it, and what the cache of builds holds."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import PurePosixPath

from pydantic import Field, field_validator, model_validator

from kernelproof.hashing import sha256_json
from kernelproof.types.record import FrozenRecord

MAX_SOURCE_CHARS = 4_000_000
MAX_FLAGS = 200
MAX_FILES = 500
OWN = "own"
"""Folder, in the build's directory, of the files that a candidate wrote for its extension."""
CUDA_SUFFIXES = (".cu", ".cuh")
_PATH = re.compile(rf"{OWN}(?:/[A-Za-z0-9_+-][A-Za-z0-9_.+-]{{0,199}}){{1,20}}")


class BuildRequest(FrozenRecord):
    """One extension to compile, as a candidate asked for it. Comes from untrusted code."""

    name: str = Field(pattern=r"^[A-Za-z0-9_]{1,200}$")
    """The extension's (Python module's) name."""
    cpp_sources: tuple[str, ...] = ()
    cuda_sources: tuple[str, ...] = ()
    files: dict[str, str] = Field(default={}, max_length=MAX_FILES)
    """Path below `OWN` to text: the candidate's own headers, and the sources that are files."""
    units: tuple[str, ...] = Field(default=(), max_length=MAX_FLAGS)
    """The entries of `files` that are compiled, each by itself; nvcc compiles those that end in .cu or
    .cuh."""
    functions: dict[str, str] | None = None
    """Function name to docstring: bindings to generate. None: the sources hold their own PYBIND11_MODULE."""
    extra_cflags: tuple[str, ...] = Field(default=(), max_length=MAX_FLAGS)
    extra_cuda_cflags: tuple[str, ...] = Field(default=(), max_length=MAX_FLAGS)
    extra_ldflags: tuple[str, ...] = Field(default=(), max_length=MAX_FLAGS)
    extra_include_paths: tuple[str, ...] = Field(default=(), max_length=MAX_FLAGS)
    """Folders of the machine, or relative ones: folders of `files`."""
    with_cuda: bool = False
    """True when there are CUDA sources or the caller asked for the CUDA libraries."""
    is_python_module: bool = True
    """False: a plain shared library that registers torch operators (`TORCH_LIBRARY`)."""
    no_implicit_headers: bool = False
    with_pytorch_error_handling: bool = True

    @field_validator("cpp_sources", "cuda_sources")
    @classmethod
    def _bounded(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if sum(map(len, value)) > MAX_SOURCE_CHARS:
            raise ValueError(f"sources exceed {MAX_SOURCE_CHARS} characters")
        return value

    @field_validator("files")
    @classmethod
    def _placed(cls, value: dict[str, str]) -> dict[str, str]:
        if sum(map(len, value.values())) > MAX_SOURCE_CHARS:
            raise ValueError(f"files exceed {MAX_SOURCE_CHARS} characters")
        folders = {str(parent) for path in value for parent in PurePosixPath(path).parents}
        for path in value:
            if _PATH.fullmatch(path) is None or path in folders:
                raise ValueError(f"no usable path for a file: {path[:200]!a}")
        return value

    @model_validator(mode="after")
    def _there(self) -> BuildRequest:
        if not set(self.units) <= self.files.keys() or len(set(self.units)) < len(self.units):
            raise ValueError("units are files, each named once")
        return self

    @property
    def content_sha256(self) -> str:
        """A hash over all but the name: some candidates name their extension anew in each process."""
        return sha256_json(self.model_dump(mode="json", exclude={"name"}))

    @property
    def cuda_units(self) -> tuple[str, ...]:
        return tuple(unit for unit in self.units if unit.endswith(CUDA_SUFFIXES))


class BuildState(StrEnum):
    """How a build ended."""

    OK = "ok"
    ERROR = "error"
    TIMEOUT = "timeout"
    """Stopped at its time or memory limit."""
    UNAVAILABLE = "unavailable"
    """This machine lacks a compiler the request needs; `log` says which and how to get it."""
    INFRASTRUCTURE = "infrastructure"
    """Our side failed: full disk, sandbox, killed worker."""


class Route(StrEnum):
    """Which headers a library was compiled with."""

    FULL = "full"
    """Those that torch's own `load_inline` takes."""
    SLIM = "slim"
    """Only what the sources use of them, for one source at least."""


class Build(FrozenRecord):
    """The outcome of one build request."""

    key: str
    """SHA-256 over sources, flags, compilers, torch and architecture: the cache's address."""
    state: BuildState
    name: str
    """The module name the library was compiled for."""
    library: str | None = None
    """Absolute path of the shared library in the cache; None unless `state` is ok."""
    library_sha256: str | None = None
    cached: bool = False
    """True when nothing was compiled now."""
    duration_s: float = 0.0
    """Wall seconds of the compilation itself (of the original one, when cached)."""
    cpu_s: float = 0.0
    """Processor seconds of it, of both routes where both were tried."""
    route: Route = Route.FULL
    fallback: str = ""
    """Why a source was compiled again in full after the slim route: the first error there."""
    commands: tuple[str, ...] = ()
    """The compiler and linker command lines."""
    log: str = ""
    """The compilers' output, ANSI and control characters removed, at most 200,000 characters."""


class CacheSurvey(FrozenRecord):
    """What lies in the cache directory."""

    path: str
    builds: int
    """Entries, damaged ones too."""
    bytes: int
    """Room of the builds on the disk, in blocks of 4 KiB."""
    bound_bytes: int
    """Most room: least recently used builds are removed beyond it."""
    ok: int
    error: int
    damaged: int
    """Entries whose record cannot be read; they are built again when they are asked for."""
    oldest_use: str | None
    """When the least recently used build was stored or last loaded, ISO 8601 in UTC; None without builds."""
    newest_use: str | None
    toolchains: tuple[str, ...]
    """Compilers and torch that facts are remembered of."""
    prebuilt: int
    """Sources that are known to be built, and whose builds are all there."""
    folders: dict[str, int]
    """Bytes of the files in each folder beside the builds."""


class Removal(FrozenRecord):
    """What was removed from the cache, and what is left."""

    builds: int
    bytes: int
    left_builds: int
    left_bytes: int
    index_entries: int = 0
    """Removed entries of the build index: sources whose builds were known."""
    trouble: str = ""
    """Why a build could not be removed, of the first where it was so."""
