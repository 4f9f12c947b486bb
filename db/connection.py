"""Opening the database file: pragmas, transactions, retries when another process holds the lock, schema."""

from __future__ import annotations

import logging
import os
import random
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.orm import Session

from kernelproof.db.chain.linking import ChainedSession
from kernelproof.db.failures import explained, is_busy
from kernelproof.db.sql_views import drop_views, make_views
from kernelproof.errors import StoreError, UsageError

if TYPE_CHECKING:
    from alembic.config import Config

HEAD = "0009_hash_chain"
"""The newest migration: what this program reads and writes."""
APPLICATION_ID = 0x6B707266
"""Marks the file as ours (`kprf`), so that another program's database is never migrated."""
BUSY_MS = 3_000
"""How long SQLite itself waits for a lock before it says busy."""
PATIENCE_S = 120.0
"""How long a write is tried again before the user is told that the database is locked."""

SAY_S = 3.0
"""After so long a wait for a lock it is said that there is one."""

_LOG = logging.getLogger("kernelproof.db")
_WRITE = "kernelproof_write"
_MIGRATING = threading.Lock()  # alembic's context is one for the process

T = TypeVar("T")


class Database:
    """One open database file. Threads may share it; writes queue here instead of in SQLite's busy loop."""

    def __init__(self, path: Path, *, immutable: bool = False, any_text: bool = False) -> None:
        """`immutable`: the file is read as it is, without locks and without the files beside it.

        `any_text`: texts that are not UTF-8, as an edited file may hold them, are read with surrogates.
        """
        self.path = path
        self._immutable = immutable
        self._engine = _engine(path, immutable)
        if any_text:
            event.listen(self._engine, "connect", _read_any_text)
        self._writer = self._engine.execution_options(**{_WRITE: True})
        self._turn = threading.Lock()
        self._file: tuple[int, int] | None = None
        """Device and inode of the file that was opened."""
        self._said = -PATIENCE_S
        """When it was last said that the file is locked."""

    def read(self, work: Callable[[Session], T]) -> T:
        """`work` within one read transaction: it sees one state of the database."""

        def once() -> T:
            with Session(self._engine) as session:
                return work(session)

        with explained(self.path):
            return self._patiently(once)

    def write(self, work: Callable[[Session], T]) -> T:
        """`work` within one BEGIN IMMEDIATE transaction: all of it is stored, or nothing.

        `work` runs again from its start when another process held the lock.
        """

        def once() -> T:
            with ChainedSession(self._writer, expire_on_commit=False) as session, session.begin():
                return work(session)

        with explained(self.path), self._turn:
            try:
                done = self._patiently(once)
            except (DBAPIError, sqlite3.Error):
                self.require()  # where it is gone, that says more
                raise
            self.require()  # afterwards: a file that was moved has got it
            return done

    def write_if_free(self, work: Callable[[Session], bool]) -> bool:
        """The answer of `work`, within one transaction. For caches.

        False, and nothing is stored, where the file cannot be written now: it is locked, or read-only.
        """
        if self._immutable or not self._turn.acquire(blocking=False):
            return False
        try:
            with Session(self._writer) as session, session.begin():
                return work(session)
        except (DBAPIError, sqlite3.OperationalError):
            return False
        finally:
            self._turn.release()

    def prepare(self) -> None:
        """Brings the file to WAL mode and the newest schema; two processes may do so at once.

        Raises StoreError for another program's database and for a schema newer than this program knows;
        of an immutable one for each other schema.
        """
        with explained(self.path):
            self._patiently(self._prepare_once)
            self._file = _identity(self.path)

    def _prepare_once(self) -> None:
        with self._engine.connect() as connection:
            found = schema_of(connection, self.path)
        if found == HEAD:
            return
        if self._immutable:
            raise StoreError(
                f"database {self.path} has schema {found or 'none'} and this kernelproof reads {HEAD}: in a "
                "read-only directory it cannot be brought up; copy it to a writable --workspace"
            )
        with self._engine.connect() as connection:
            # Outside a transaction, as SQLite demands; persistent once set.
            driver = connection.connection.driver_connection
            assert isinstance(driver, sqlite3.Connection)
            driver.execute("PRAGMA journal_mode=WAL")
        with _MIGRATING, self._writer.connect() as connection, connection.begin():
            # The lock of BEGIN IMMEDIATE is held: a process that waited for it finds the work done.
            if schema_of(connection, self.path) != HEAD:
                _migrate(connection, self.path)

    def require(self) -> None:
        """Raises StoreError where the file that was opened is no longer at its path.

        SQLite would go on writing to one that nobody finds.
        """
        if self._file is not None and _identity(self.path) != self._file:
            raise StoreError(
                f"database {self.path} was removed, moved or replaced while it was in use; put it back, or "
                "make the workspace's directory anew, then run the same command again"
            )

    def _patiently(self, work: Callable[[], T]) -> T:
        """`work`, again while another process holds the lock, as long as PATIENCE_S."""
        began = time.monotonic()
        while True:
            try:
                return work()
            except (OperationalError, sqlite3.OperationalError) as error:
                now = time.monotonic()
                if not is_busy(error) or now - began > PATIENCE_S:
                    raise
            if now - began >= SAY_S and now - self._said >= PATIENCE_S:
                self._said = now
                _LOG.warning(
                    "kernelproof: database %s is locked by another process; waiting for it, %d s at most",
                    *(self.path, PATIENCE_S),
                )
            time.sleep(random.uniform(0.01, 0.1))

    def close(self) -> None:
        """Closes the connections; the last one to close folds the write-ahead log into the file."""
        self._engine.dispose()


def open_database(path: Path, *, create: bool, only_read: bool = False) -> Database:
    """The database at `path` in the newest schema; with `only_read` in a read-only directory, too.

    Raises UsageError when it is missing and `create` is false, StoreError when it cannot be used.
    """
    with explained(path):
        if create and not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
        else:
            require_file(path)
        immutable = only_read and at_rest(path)
    database = Database(path, immutable=immutable)
    try:
        database.prepare()
    except BaseException:
        database.close()
        raise
    return database


def require_file(path: Path) -> None:
    """Raises UsageError where there is no database, StoreError where a directory is in its place."""
    if path.is_dir():
        raise StoreError(f"database {path} is a directory; move it away, or choose another --workspace")
    if not path.exists():
        raise UsageError(
            f"no attempts are stored in {path} yet; make some first: kernelproof generate, "
            "or kernelproof verify FILE --problem P (or choose the right --workspace)"
        )


def at_rest(path: Path) -> bool:
    """Whether we cannot write beside the file, as WAL mode needs even to read, and nobody has it open.

    A process that has it open keeps a write-ahead log beside it; without such a log all that is stored is in
    the file.
    """
    return not os.access(path.parent, os.W_OK) and not path.with_name(f"{path.name}-wal").exists()


def _engine(path: Path, immutable: bool) -> Engine:
    url = URL.create("sqlite", database=str(path))
    if immutable:
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
    writes = connection.get_execution_options().get(_WRITE, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _identity(path: Path) -> tuple[int, int] | None:
    """Which file is at a path; None where there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def schema_of(connection: Connection, path: Path) -> str | None:
    """The migration the file is at; None for an empty file. Raises StoreError for another program's."""
    tables = set(connection.exec_driver_sql("SELECT name FROM sqlite_master WHERE type = 'table'").scalars())
    if not tables:
        return None
    mark = connection.exec_driver_sql("PRAGMA application_id").scalar()
    if mark != APPLICATION_ID or "alembic_version" not in tables:
        raise StoreError(
            f"database {path} belongs to another program; move it away, or choose another --workspace"
        )
    return str(connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar())


def steps_from(version: str | None, path: Path) -> list[str]:
    """The migrations that a file of this schema lacks, the first one first: name and sentence of each.

    Raises StoreError for a schema newer than this program knows.
    """
    from alembic.script import ScriptDirectory

    script = ScriptDirectory.from_config(_alembic())
    known = {revision.revision for revision in script.walk_revisions()}
    if version is not None and version not in known:
        raise StoreError(
            f"database {path} has schema {version}, newer than this kernelproof knows ({HEAD}); "
            "upgrade kernelproof (pip install --upgrade kernelproof), or choose another --workspace"
        )
    missing = script.iterate_revisions("head", version or "base")
    return [f"{step.revision}: {step.doc}" for step in reversed([*missing])]


def _alembic() -> Config:
    from alembic.config import Config

    config = Config()
    # Alembic reads `%` as interpolation; the package may lie anywhere.
    folder = str(Path(__file__).parent / "migrations").replace("%", "%%")
    config.set_main_option("script_location", folder)
    return config


def _migrate(connection: Connection, path: Path) -> None:
    """All missing migrations, in the transaction that `connection` is in."""
    from alembic import command

    steps_from(schema_of(connection, path), path)
    config = _alembic()
    config.attributes["connection"] = connection
    connection.exec_driver_sql(f"PRAGMA application_id={APPLICATION_ID}")
    drop_views(connection)
    command.upgrade(config, "head")
    make_views(connection)
