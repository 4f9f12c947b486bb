"""SQLite's failures in words: what is wrong with the file and what to do about it."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy.exc import DBAPIError

from kernelproof.errors import StoreError

ROOM_BYTES = 64 << 10
"""Less than this is a full disk: the files beside a database in use take as much."""
LOCKED = "is locked by another process; wait for it (or end it), then run the same command again"
_ADVICE = {
    "SQLITE_NOTADB": "is not a SQLite database; move it away, or choose another --workspace",
    "SQLITE_CORRUPT": "is damaged; keep it, restore a backup or try `sqlite3 FILE .recover | sqlite3 NEW`",
    "SQLITE_FULL": "could not grow: the disk is full or a quota is reached; free space and run the same "
    "command again, finished attempts are kept",
    "SQLITE_IOERR": "could not be read or written (disk error, quota or file size limit); check the disk, "
    "then run the same command again",
    "SQLITE_READONLY": "or its directory is read-only; make both writable (a database in use needs "
    "files beside it), or copy it to a writable --workspace",
    "SQLITE_CANTOPEN": "cannot be opened; check that you may read and write it and its directory, or copy "
    "that directory to a writable --workspace",
    "SQLITE_PERM": "cannot be opened; check that you may read and write it",
    "SQLITE_BUSY": LOCKED,
    "SQLITE_LOCKED": LOCKED,
}


def is_busy(error: BaseException) -> bool:
    """True when another process held a lock: trying again may help."""
    return _name(error).startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turns SQLite's and the file system's errors about `path` into StoreError; lets others pass."""
    try:
        yield
    except (DBAPIError, sqlite3.Error) as error:
        name = _name(error)
        if name.startswith(("SQLITE_IOERR", "SQLITE_CANTOPEN")) and _is_full(path):
            name = "SQLITE_FULL"  # for the files beside it there is no room
        advice = next((text for prefix, text in _ADVICE.items() if name.startswith(prefix)), None)
        if advice is None:
            raise
        raise StoreError(f"database {path} {advice} ({original(error)})") from error
    except OSError as error:
        raise StoreError(f"database {path} cannot be used: {error.strerror or error}") from error


def _is_full(path: Path) -> bool:
    try:
        found = os.statvfs(path.parent)
    except OSError:
        return False
    return found.f_bavail * found.f_frsize < ROOM_BYTES


def original(error: BaseException) -> BaseException | None:
    """The driver's error that SQLAlchemy wrapped, else the error itself."""
    return error.orig if isinstance(error, DBAPIError) else error


def _name(error: BaseException) -> str:
    return str(getattr(original(error), "sqlite_errorname", ""))
