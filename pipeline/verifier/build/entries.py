"""What lies in the store of builds: its entries, the room that each takes, and when it was last used."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

RECORD, LOG = "build.json", "log.txt"

_BLOCK = 4096
_SHELF, _KEY = re.compile(r"[0-9a-f]{2}"), re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Entry:
    """One entry, as it was when it was looked at."""

    path: Path
    bytes: int
    """Room on the disk: each file, and the directory, in whole blocks of 4 KiB."""
    used_ns: int
    """When it was stored or last loaded: the record's modification time (the directory's, without one)."""

    @property
    def key(self) -> str:
        """The build's address."""
        return self.path.name


def entries(root: Path) -> list[Entry]:
    """All entries below `root`, least recently used first. A file that is no entry by its name is left
    out."""
    folders = (
        folder
        for ready_builds in _folders(root, _SHELF)
        for folder in _folders(ready_builds, _KEY)
        if folder.name.startswith(ready_builds.name)
    )
    found = (look_at(Path(folder)) for folder in folders)
    return sorted((entry for entry in found if entry is not None), key=lambda e: (e.used_ns, e.key))


def look_at(path: Path) -> Entry | None:
    """The entry at `path`; None when it is gone."""
    room = _BLOCK
    try:
        used = path.stat().st_mtime_ns
        with os.scandir(path) as files:
            for file in files:
                status = file.stat(follow_symlinks=False)
                room += -(-status.st_size // _BLOCK) * _BLOCK
                if file.name == RECORD:
                    used = status.st_mtime_ns
    except OSError:
        return None
    return Entry(path, room, used)


def mark_used(path: Path) -> None:
    """Note that the entry at `path` is used now. Nothing happens where that cannot be written."""
    now = time.time_ns()  # the kernel's own stamps are too coarse to order uses by
    with suppress(OSError):
        os.utime(path / RECORD, ns=(now, now))


def _folders(parent: Path | os.DirEntry[str], name: re.Pattern[str]) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(parent) as found:
            yield from (f for f in found if name.fullmatch(f.name) and f.is_dir(follow_symlinks=False))
    except OSError:
        return
