"""Whether a kernel is one of the libraries that torch brings: looked up in their files.

Libraries that launch through CUDA's runtime register their kernels by mangled names, which stand in the files
as text, also where the code is compressed. A name that no pattern knows is looked for there; a few of them
cost seconds, so patterns come first.
"""

from __future__ import annotations

import ctypes
import mmap
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from pipeline.contestant.profiling import MAX_NAME
from pipeline.referee.checks.names import kernel_name

_KERNELS = re.compile(r"lib(?:cublas|cudnn|cufft|cusolver|cusparse|curand|nccl|torch_cuda)\w*\.so(?:\.|$)")
"""Libraries with kernels in them."""
_MAPPED = re.compile(r"^\S+ \S+ \S+ \S+ \S+ +(/.+)$")
_MOST_HITS = 50_000
_LONGEST = 16 << 10
"""Bytes of a mangled name."""


@lru_cache(maxsize=1024)
def holds_kernel(name: str, files: tuple[Path, ...] | None = None) -> bool:
    """Whether one of these libraries has a kernel of exactly this demangled name, up to MAX_NAME characters.

    `files`: those beside the CUDA libraries that this process has loaded. Names without template arguments or
    parameters are not looked up: C names, as compilers at run time give them, may be anybody's.
    """
    path = kernel_name(name).path
    if not re.search("[<(]", name) or not path:
        return False
    piece = "".join(f"{len(part)}{part}" for part in path).encode()
    return any(_named(name, piece, file) for file in (_loaded() if files is None else files))


@lru_cache(maxsize=1)
def _loaded() -> tuple[Path, ...]:
    """Files with kernels, in the folders of those that are loaded: some are loaded only when used."""
    lines = Path("/proc/self/maps").read_text(errors="replace").splitlines()
    mapped = {Path(match[1]) for match in map(_MAPPED.match, lines) if match}
    folders = {file.parent for file in mapped if _KERNELS.match(file.name)}
    found = {f.resolve() for folder in folders for f in folder.iterdir() if _KERNELS.match(f.name)}
    return tuple(sorted(found, key=lambda file: ("cublas" not in file.name, file)))


def _named(name: str, piece: bytes, file: Path) -> bool:
    """Whether the file has a mangled name with this piece in it that is `name` in full."""
    try:
        with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as text:
            return any(_demangled(found)[:MAX_NAME] == name for found in _symbols(text, piece))
    except (OSError, ValueError):  # gone, or empty
        return False


def _symbols(text: mmap.mmap, piece: bytes) -> Iterator[bytes]:
    at = -1
    for _ in range(_MOST_HITS):
        at = text.find(piece, at + 1)
        if at < 0:
            return
        begins = text.rfind(b"\0", max(0, at - _LONGEST), at) + 1
        ends = text.find(b"\0", at, at + _LONGEST)
        if text[begins : begins + 2] == b"_Z" and ends > 0:
            yield text[begins:ends]


@lru_cache(maxsize=1)
def _library() -> tuple[ctypes.CDLL, ctypes.CDLL]:
    """The demangler that torch's profiler uses too, and what frees its results."""
    runtime, libc = ctypes.CDLL("libstdc++.so.6"), ctypes.CDLL(None)
    runtime.__cxa_demangle.argtypes = [ctypes.c_char_p] + [ctypes.c_void_p] * 3
    runtime.__cxa_demangle.restype = ctypes.c_void_p
    libc.free.argtypes = [ctypes.c_void_p]
    return runtime, libc


def _demangled(symbol: bytes) -> str:
    runtime, libc = _library()
    place = runtime.__cxa_demangle(symbol, None, None, None)
    if not place:
        return ""
    try:
        return ctypes.string_at(place).decode(errors="replace")
    finally:
        libc.free(place)
