"""How many bytes the entries of a store take, known without looking at them, for all its processes."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

_MOST_BYTES = 1000


@dataclass(frozen=True)
class Count:
    """What is known of the entries' bytes."""

    bytes: int
    """At the last walk, and stored since. A replaced entry counts twice until the next walk."""
    walked_bytes: int
    """At the last walk over all entries."""
    walked_at: float
    """When that was, in seconds since 1970."""


class StoreSize:
    """The count in its file, read and written under a `flock` of microseconds.

    The bytes of an entry are added before it appears, so a process killed in between makes the count too
    high, and the next walk puts it right. A file that is missing or damaged means that nothing is known.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> Count | None:
        """The count; None when it is not known."""
        with self._held() as descriptor:
            return _read(descriptor)

    def add(self, count: int) -> Count | None:
        """Adds bytes; the new count, None when it is not known."""
        with self._held() as descriptor:
            known = _read(descriptor)
            if known is None:
                return None
            return _write(descriptor, Count(known.bytes + count, known.walked_bytes, known.walked_at))

    def correct(self, walked: int, before: Count | None) -> Count:
        """Puts in what a walk found. `before`: the count at its start; bytes added since are kept."""
        with self._held() as descriptor:
            known = _read(descriptor)
            added = known.bytes - before.bytes if known is not None and before is not None else 0
            return _write(descriptor, Count(walked + max(added, 0), walked, time.time()))

    @contextmanager
    def _held(self) -> Iterator[int]:
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield descriptor
        finally:
            os.close(descriptor)


def _read(descriptor: int) -> Count | None:
    try:
        found = json.loads(os.pread(descriptor, _MOST_BYTES, 0))
        return Count(int(found["bytes"]), int(found["walked_bytes"]), float(found["walked_at"]))
    except (ValueError, TypeError, KeyError, OverflowError):
        return None


def _write(descriptor: int, count: Count) -> Count:
    text = json.dumps(asdict(count)).encode()
    os.ftruncate(descriptor, 0)  # a kill after this leaves an empty file: nothing is known then
    os.pwrite(descriptor, text, 0)
    return count
