"""`kernelproof db vacuum`: the file written anew, without the space that is free in it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from kernelproof.db.leases import is_free
from kernelproof.db.sqlite import explained, is_busy, require_file
from kernelproof.errors import StoreError
from kernelproof.types import FrozenRecord


class Vacuumed(FrozenRecord):
    """Sizes in bytes, of the file with its write-ahead log."""

    before: int
    after: int


def vacuum(path: Path) -> Vacuumed:
    """Writes the file anew.

    Raises StoreError where another process is at work on it: a vacuum holds the write lock all along, and
    others would wait for it until they give up.
    """
    require_file(path)
    before = _size(path)
    with explained(path), closing(sqlite3.connect(path, timeout=1.0, isolation_level=None)) as connection:
        try:
            _refuse_workers(connection, path)
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        except sqlite3.OperationalError as error:
            if is_busy(error):
                raise StoreError(_at_work(path)) from None
            raise
    return Vacuumed(before=before, after=_size(path))


def _at_work(path: Path) -> str:
    return (
        f"another process is writing to {path}; end it or wait for it, then run kernelproof db vacuum again"
    )


def _refuse_workers(connection: sqlite3.Connection, path: Path) -> None:
    """Raises StoreError where a living process holds a lease."""
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'leases'").fetchone():
        return
    for owner, renewed in connection.execute("SELECT DISTINCT owner, renewed FROM leases"):
        if not is_free(owner, renewed):
            raise StoreError(_at_work(path))


def _size(path: Path) -> int:
    files = (path, path.with_name(f"{path.name}-wal"))
    return sum(file.stat().st_size for file in files if file.exists())
