"""A SQLite file as a backend: pragmas, transactions, another program's file, a file that is gone. And
SQLite's errors as messages that say what is wrong and what to do."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError

from kernelproof.db.backend import BUSY, BUSY_MS, Access, DatabaseBackend, Listener
from kernelproof.errors import NothingStored, StoreError

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


APPLICATION_ID = 0x6B707266
"""Marks the file as ours (`kprf`), so that another program's database is never migrated."""
LOOK_S = 0.005
"""Seconds between two looks of a listener, which take some microseconds each."""


class SqliteFile(DatabaseBackend):
    """A file with a write-ahead log. Transactions that write are `BEGIN IMMEDIATE`."""

    def __init__(self, path: Path, *, fixed: bool = False, any_text: bool = False) -> None:
        """`fixed`: the file is read as it is, without locks and without the files beside it.

        `any_text`: texts that are not UTF-8, as an edited file may hold them, are read with surrogates.
        """
        self.place: Path = path
        self.fixed = fixed
        self.engine = _engine(path, fixed)
        if any_text:
            event.listen(self.engine, "connect", _read_any_text)
        self._file: tuple[int, int] | None = None
        """Device and inode of the file that was opened."""

    def explained(self) -> AbstractContextManager[None]:
        return explained(self.place)

    def obstacle(self, error: BaseException) -> str | None:
        return BUSY if is_busy(error) else None

    def version(self, connection: Connection) -> str | None:
        names = connection.exec_driver_sql("SELECT name FROM sqlite_master WHERE type = 'table'").scalars()
        tables = set(names)
        if not tables:
            return None
        mark = connection.exec_driver_sql("PRAGMA application_id").scalar()
        if mark != APPLICATION_ID or "alembic_version" not in tables:
            raise StoreError(
                f"database {self.place} belongs to another program; move it away, or choose another "
                "--workspace"
            )
        return str(connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar())

    def before_migrating(self) -> None:
        """WAL mode, which is set outside a transaction, as SQLite demands; it stays set."""
        with self.engine.connect() as connection:
            driver = connection.connection.driver_connection
            assert isinstance(driver, sqlite3.Connection)
            driver.execute("PRAGMA journal_mode=WAL")

    def mark(self, connection: Connection) -> None:
        connection.exec_driver_sql(f"PRAGMA application_id={APPLICATION_ID}")

    def opened(self) -> None:
        self._file = _identity(self.place)

    def listener(self, channel: str) -> Listener:
        return _FileListener(self.place)

    def require(self) -> None:
        """Raises StoreError where the file that was opened is no longer at its path.

        SQLite would go on writing to one that nobody finds.
        """
        if self._file is not None and _identity(self.place) != self._file:
            raise StoreError(
                f"database {self.place} was removed, moved or replaced while it was in use; put it back, or "
                "make the workspace's directory anew, then run the same command again"
            )


class _FileListener:
    """Asks the file whether anybody committed, without a look at any table."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None, timeout=BUSY_MS / 1000)
        self._seen = self._version()

    def wait(self, seconds: float, stop: threading.Event) -> None:
        """Looks every LOOK_S."""
        ends = time.monotonic() + seconds
        while (seen := self._version()) == self._seen and time.monotonic() < ends:
            if stop.wait(LOOK_S):
                return
        self._seen = seen

    def close(self) -> None:
        self._connection.close()

    def _version(self) -> int:
        try:
            return int(self._connection.execute("PRAGMA data_version").fetchone()[0])
        except sqlite3.OperationalError:  # locked: somebody is at work
            return -1


def sqlite_file(path: Path, *, create: bool, only_read: bool, any_text: bool = False) -> SqliteFile:
    """The file at `path`; with `create` its directory is made. `any_text`: as `SqliteFile` has it.

    Raises NothingStored when it is missing and `create` is false, StoreError when it cannot be used.
    """
    with explained(path):
        if create and not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
        else:
            require_file(path)
        return SqliteFile(path, fixed=only_read and _at_rest(path), any_text=any_text)


def require_file(path: Path) -> None:
    """Raises NothingStored where there is no database, StoreError where a directory is in its place."""
    if path.is_dir():
        raise StoreError(f"database {path} is a directory; move it away, or choose another --workspace")
    if not path.exists():
        raise NothingStored(
            f"no attempts are stored in {path} yet; make some first: kernelproof generate, "
            "or kernelproof verify FILE --problem P (or choose the right --workspace)"
        )


def _at_rest(path: Path) -> bool:
    """Whether we cannot write beside the file, as WAL mode needs even to read, and nobody has it open.

    A process that has it open keeps a write-ahead log beside it; without such a log all that is stored is in
    the file.
    """
    return not os.access(path.parent, os.W_OK) and not path.with_name(f"{path.name}-wal").exists()


def _engine(path: Path, fixed: bool) -> Engine:
    url = URL.create("sqlite", database=str(path))
    if fixed:
        query = {"uri": "true", "mode": "ro", "immutable": "1"}
        url = URL.create("sqlite", database=f"file:{quote(os.fsencode(path))}", query=query)
    engine = create_engine(
        url,
        # Transactions are begun below, explicitly; the driver must not begin its own.
        connect_args={"isolation_level": None, "timeout": BUSY_MS / 1000},
        max_overflow=60,
    )
    event.listen(engine, "connect", _on_connect)
    event.listen(engine, "begin", _on_begin)
    return engine


def _on_connect(connection: sqlite3.Connection, _record: object) -> None:
    connection.execute(f"PRAGMA busy_timeout={BUSY_MS}")
    connection.execute("PRAGMA foreign_keys=ON")
    connection.execute("PRAGMA synchronous=NORMAL")


def _read_any_text(connection: sqlite3.Connection, _record: object) -> None:
    connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")


def _on_begin(connection: Connection) -> None:
    reads = Access.of(connection) is Access.READ
    connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")


def _identity(path: Path) -> tuple[int, int] | None:
    """Which file is at a path; None where there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino
