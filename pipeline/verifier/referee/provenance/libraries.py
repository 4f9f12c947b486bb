"""Whether a kernel is one of the libraries that torch brings: looked up in their files.

Libraries that launch through CUDA's runtime register their kernels by mangled names, which stand in the files
as text, also where the code is compressed. A name that no pattern knows is looked for there. One that is in
none of them costs a second or two, so patterns come first, and few are looked for: a report may have any.
"""

from __future__ import annotations

import ctypes
import mmap
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path

from kernelproof.verifier.contestant.profiling import MAX_NAME
from kernelproof.verifier.referee.loaded_files import loaded_files
from kernelproof.verifier.referee.provenance.names import KernelName, kernel_name

_KERNELS = re.compile(r"lib(?:cublas|cudnn|cufft|cusolver|cusparse|curand|nccl|torch_cuda)\w*\.so(?:\.|$)")
"""Libraries with kernels in them."""
_MOST_HITS = 20_000
"""Most mangled names that one lookup takes apart: a few tenths of a second."""
_SHORTEST = 6
"""Bytes of a piece that may stand anywhere in a mangled name."""
_LONGEST = 4096
"""Bytes of a mangled name."""


@lru_cache(maxsize=1024)
def holds_kernel(name: str, files: tuple[Path, ...] | None = None) -> bool:
    """Whether one of these libraries has a kernel of exactly this demangled name, up to MAX_NAME characters.

    `files`: those beside the CUDA libraries that this process has loaded. Names without template arguments or
    parameters are not looked up: C names, as compilers at run time give them, may be anybody's.
    """
    known = kernel_name(name)
    if not re.search("[<(]", name) or not known.path:
        return False
    symbols = _symbols(_pieces(known), _loaded() if files is None else files)
    return any(_demangled(symbol)[:MAX_NAME] == name for symbol in islice(symbols, _MOST_HITS))


def _pieces(known: KernelName) -> list[bytes]:
    """What its mangled name must hold one of, by the rules of the Itanium C++ ABI; none if too many do."""
    piece = "".join(f"{len(part)}{part}" for part in known.path).encode()
    if not known.whole:
        return [piece] if len(piece) >= _SHORTEST else []
    return [b"_ZN" + piece] if len(known.path) > 1 else [b"_Z" + piece, b"_ZL" + piece]


@lru_cache(maxsize=1)
def _loaded() -> tuple[Path, ...]:
    """Files with kernels, in the folders of those that are loaded: some are loaded only when used."""
    folders = {file.parent for file in loaded_files() if _KERNELS.match(file.name)}
    found = {f.resolve() for folder in folders for f in folder.iterdir() if _KERNELS.match(f.name)}
    return tuple(sorted(found, key=lambda file: ("cublas" not in file.name, file)))


@lru_cache(maxsize=1)
def vendors() -> tuple[Path, ...]:
    """The loaded files that torch's own kernels are not in."""
    return tuple(file for file in _loaded() if not file.name.startswith("libtorch"))


def _symbols(pieces: Sequence[bytes], files: Iterable[Path]) -> Iterator[bytes]:
    """Mangled names in the files with one of these pieces in them."""
    for file in files:
        try:
            with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as text:
                for piece in pieces:
                    yield from _symbols_of(text, piece)
        except (OSError, ValueError):  # gone, or empty
            continue


def _symbols_of(text: mmap.mmap, piece: bytes) -> Iterator[bytes]:
    at = -1
    while (at := text.find(piece, at + 1)) >= 0:
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
