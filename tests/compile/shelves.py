"""Filling a store of builds without compilers, and looking at it from outside."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

from kernelproof.types import Build, BuildState
from kernelproof.verifier.build.build_cache import BuildCache

BLOCK = 4096
FILES = {"lib.so", "build.json", "log.txt"}


def key_of(number: int) -> str:
    return hashlib.sha256(str(number).encode()).hexdigest()


def store(cache: BuildCache, number: int, blocks: int = 1) -> Build:
    """Stores a library of `blocks` blocks, as a builder does."""
    key = key_of(number)
    build = Build(key=key, state=BuildState.OK, name="ext", log="a line")
    with cache.lock(key, 60.0):
        return cache.store(build, bytes([number % 256]) * (blocks * BLOCK))


def room(blocks: int = 1) -> int:
    """Bytes that such an entry takes: the directory, the record and the log have a block each."""
    return (3 + blocks) * BLOCK


def folders(root: Path) -> dict[str, Path]:
    """Key to folder of the entries below `root`."""
    return {path.name: path for path in root.glob("[0-9a-f][0-9a-f]/*")}


def age(root: Path, number: int, seconds: float) -> None:
    """Makes an entry's last use `seconds` ago."""
    then = time.time() - seconds
    os.utime(folders(root)[key_of(number)] / "build.json", (then, then))


def is_half(folder: Path) -> bool:
    """Whether an entry that stays in its place lacks a file."""
    try:
        before = folder.stat().st_ino
        names = {path.name for path in folder.iterdir()}
        return names != FILES and folder.stat().st_ino == before
    except FileNotFoundError:
        return False
