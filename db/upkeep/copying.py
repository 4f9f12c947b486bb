"""`kernelproof db backup`: a copy of one state of the database, while others write to it."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from kernelproof.db.leases import is_gone, new_owner
from kernelproof.db.sqlite import explained, require_file
from kernelproof.errors import UsageError

_PARTIAL = ".partial"


def backup(path: Path, target: Path) -> int:
    """Writes the copy and returns its size in bytes.

    The copy has its name only when all of it is on the disk. Raises UsageError where something has that name
    already, StoreError where the database cannot be read or the copy cannot be written.
    """
    require_file(path)
    if target.is_dir():
        raise UsageError(f"{target} is a directory; name the file that is to be written in it")
    _refuse(target)
    with explained(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        _remove_left_over(target)
        partial = target.with_name(f".{target.name}.{new_owner()}{_PARTIAL}")
        try:
            partial.touch(0o600)
            _copy(path, partial)
            partial.chmod(path.stat().st_mode & 0o777)
            _sync(partial)
            _give_name(partial, target)
            _sync(target.parent)
        finally:
            partial.unlink(missing_ok=True)
    return target.stat().st_size


def _refuse(target: Path) -> None:
    if os.path.lexists(target):
        raise UsageError(f"{target} is there already, and a backup overwrites nothing; choose another name")


def _remove_left_over(target: Path) -> None:
    """Removes the halves that killed processes of this machine left."""
    start = f".{target.name}."
    for file in target.parent.iterdir():
        if file.name.startswith(start) and file.name.endswith(_PARTIAL):
            owner = file.name.removeprefix(start).removesuffix(_PARTIAL)
            if is_gone(owner):
                with suppress(OSError):
                    file.unlink()


def _copy(path: Path, partial: Path) -> None:
    """All pages in one step: writers go on beside it, and the copy is of the state at its start."""
    with explained(path), closing(sqlite3.connect(path, timeout=30.0)) as source:
        source.execute("PRAGMA query_only=ON")
        with closing(sqlite3.connect(partial)) as copy:
            source.backup(copy)
            # The copy keeps the mode of the original; a write-ahead log that is not folded in would be lost.
            copy.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    for ending in ("-wal", "-shm"):
        partial.with_name(partial.name + ending).unlink(missing_ok=True)


def _give_name(partial: Path, target: Path) -> None:
    """The name, unless somebody took it meanwhile."""
    try:
        target.hardlink_to(partial)
    except FileExistsError:
        _refuse(target)
    except OSError:  # a file system without hard links
        _refuse(target)
        partial.rename(target)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
