"""Reading, from outside and with more rights, everything that a traced process tree holds or can open.

What is not found this way is not there for the candidate either, which has fewer rights in its own tree.
"""

from __future__ import annotations

import mmap
import os
import re
import signal
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
import psutil
import torch

CHUNK = 1 << 22
_PIECE = 1 << 16
WINDOW = 32
"""Bytes of a window of numbers: 8 float32 or 4 float64 that are the expected ones by chance in no run."""
_NOTHING = bytes(CHUNK)
_SIEVE_BITS = 22
_LEAST_DIGITS, _MOST_DIGITS = 10, 40
_DIGITS = re.compile(rb"[0-9]{%d,%d}" % (_LEAST_DIGITS, _MOST_DIGITS))

Words = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Region:
    """A line of `/proc/PID/maps`."""

    start: int
    stop: int
    readable: bool
    writable: bool
    path: str


def regions(pid: int) -> Iterator[Region]:
    """The mappings of a process."""
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        span, mode, _, _, _, *path = line.split(maxsplit=5)
        start, stop = (int(part, 16) for part in span.split("-"))
        yield Region(start, stop, mode[0] == "r", mode[1] == "w", path[0] if path else "")


def may_trace(pid: int) -> bool:
    """Whether this process may read that one's memory."""
    try:
        with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
            memory.seek(next(r.start for r in regions(pid) if r.writable))
            return len(memory.read(16)) == 16
    except OSError:
        return False


def tree_of(pid: int, above: int) -> list[int]:
    """All processes of the job that `pid` belongs to, the outermost of which is a child of `above`."""
    process = psutil.Process(pid)
    while (parent := process.parent()) is not None and parent.pid != above:
        process = parent
    return [process.pid, *(child.pid for child in process.children(recursive=True))]


@contextmanager
def stopped(tree: list[int]) -> Iterator[None]:
    """Holds the processes still, so that memory and maps agree."""
    for pid in tree:
        os.kill(pid, signal.SIGSTOP)
    try:
        deadline = time.monotonic() + 10
        while any(psutil.Process(pid).status() != psutil.STATUS_STOPPED for pid in tree):
            assert time.monotonic() < deadline, "a traced process does not stop"
            time.sleep(0.005)
        yield
    finally:
        for pid in tree:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def snapshot(tree: list[int], since: float, target: Path) -> None:
    """Writes to `target` what the processes hold: memory, environment, command lines, open descriptors.

    Left out are mappings that cannot be written, of files older than `since` (libraries): they hold nothing
    of this run. A CUDA process maps device memory that the host cannot read: that is skipped.
    """
    with stopped(tree), target.open("wb") as sink:
        for pid in tree:
            for name in ("environ", "cmdline", "maps"):
                sink.write(Path(f"/proc/{pid}/{name}").read_bytes())
                _align(sink)
            _memory(pid, since, sink)
            _descriptors(pid, sink)


def _memory(pid: int, since: float, sink: BinaryIO) -> None:
    memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY)
    try:
        for region in regions(pid):
            if not region.readable or (not region.writable and _older(pid, region.path, since)):
                continue
            position = region.start
            while position < region.stop:
                try:
                    data = os.pread(memory, min(CHUNK, region.stop - position), position)
                except OSError:
                    break  # a device's memory, or the kernel's own page
                if not data:
                    break
                if data != _NOTHING[: len(data)]:
                    sink.write(data)
                    _align(sink)
                position += len(data)
    finally:
        os.close(memory)


def _descriptors(pid: int, sink: BinaryIO) -> None:
    for entry in sorted(Path(f"/proc/{pid}/fd").iterdir()):
        with suppress(OSError):
            sink.write(os.fsencode(entry.readlink()))
            _align(sink)
            if entry.is_file():  # memory files too; sockets, pipes and devices are no files
                sink.write(entry.read_bytes())
                _align(sink)


def _older(pid: int, path: str, since: float) -> bool:
    if not path.startswith("/") or path.startswith("/memfd:"):
        return False
    try:
        return Path(f"/proc/{pid}/root{path}").stat().st_mtime < since
    except OSError:
        return False


def _align(sink: BinaryIO) -> None:
    """What follows starts at a multiple of 8, as it did in memory."""
    sink.write(bytes(-sink.tell() % 8))


def finds(snap: Path, text: bytes) -> bool:
    """Whether the bytes occur anywhere."""
    with snap.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return data.find(text) >= 0


def found_integers(snap: Path, values: Iterable[int]) -> set[int]:
    """Which of these numbers (beyond 2^30) occur: as text, as 8 bytes, or as CPython keeps integers."""
    wanted = set(values)
    with snap.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        found = wanted & set(_numbers(data))
    forms = {form(value): value for value in wanted for form in (_eight_bytes, _as_cpython)}
    return found | {forms[seen] for seen in found_windows(snap, forms)}


def _numbers(data: mmap.mmap) -> Iterator[int]:
    """Those written in digits, and ends of some. An expression over all bytes takes ten times as long."""
    for start in range(0, len(data), _PIECE):
        held = data[start : start + _PIECE + _MOST_DIGITS]
        digit = np.frombuffer(held, dtype=np.uint8) - np.uint8(ord("0")) < 10
        run = digit  # where so many digits begin: 1, 2, 4, 8, and then all that it takes
        for step in (1, 2, 4, _LEAST_DIGITS - 8):
            run = run[:-step] & run[step:]
        if run.any():
            yield from (int(found[0]) for found in _DIGITS.finditer(held))


def _eight_bytes(value: int) -> bytes:
    return value.to_bytes(8, "little")


def _as_cpython(value: int) -> bytes:
    """30 bits in each 4 bytes, lowest first."""
    digits = [value >> shift & (1 << 30) - 1 for shift in range(0, value.bit_length(), 30)]
    return np.array(digits, dtype="<u4").tobytes()


def windows(values: torch.Tensor) -> list[bytes]:
    """Windows of WINDOW bytes all over the numbers, where neighbours differ: no padding, no constants."""
    flat = values.detach().cpu().contiguous().flatten()
    count = WINDOW // flat.element_size()
    rows = flat[: flat.numel() // count * count].view(-1, count)
    rows = rows[rows.isfinite().all(1) & (rows.diff(dim=1) != 0).all(1) & (rows != 0).all(1)]
    return [row.tobytes() for row in rows.numpy()]


def found_windows(snap: Path, wanted: Iterable[bytes]) -> set[bytes]:
    """Which of the windows, 8 to WINDOW bytes long, occur at a multiple of 4 bytes."""
    by_key: dict[int, list[bytes]] = {}
    for window in wanted:
        by_key.setdefault(int.from_bytes(window[:8], "little"), []).append(window)
    keys = np.array(sorted(by_key), dtype="<u8")
    sieve = np.zeros(1 << _SIEVE_BITS, dtype=bool)
    sieve[_hashed(keys)] = True
    found: set[bytes] = set()
    with snap.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        for phase in (0, 4):
            for start in range(phase, len(data) - 7, CHUNK):
                held = data[start : start + CHUNK + WINDOW]
                words = np.frombuffer(held, dtype="<u8", count=min(CHUNK, len(held)) // 8)
                for index in np.flatnonzero(sieve[_hashed(words)]):
                    seen = held[8 * int(index) : 8 * int(index) + WINDOW]
                    found.update(w for w in by_key.get(int(words[index]), ()) if seen.startswith(w))
    return found


def _hashed(words: Words) -> Words:
    """A place in the sieve for each word: few words that are no key share one with a key."""
    return (words * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(64 - _SIEVE_BITS)
