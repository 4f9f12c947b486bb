"""Opening a database: transactions, patience where another process holds the lock, the schema."""

from __future__ import annotations

import random
import sqlite3
import threading
import time
from collections.abc import Callable
from functools import wraps
from inspect import getdoc
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from kernelproof.db.backend import (
    ACCESS,
    PATIENCE_S,
    WARN_S,
    Access,
    DatabaseBackend,
    Listener,
    NotFree,
    warn_waiting,
)
from kernelproof.db.counting import follow_policy, is_policy_followed
from kernelproof.db.sql_views import drop_views, make_views
from kernelproof.errors import MachineError, NothingStored, StoreError, install_command
from kernelproof.workspace import DatabasePlace

if TYPE_CHECKING:  # a question about scores needs none of them, and they take their time
    from sqlalchemy.orm import Session

HEAD = "0019_changed_samples"
"""The newest migration: what this program reads and writes."""

_MIGRATING = threading.Lock()  # alembic's context is one for the process

P = ParamSpec("P")
S = TypeVar("S", bound="HasDatabase")
T = TypeVar("T")


class Database:
    """One open database. Threads may share it; writes queue here instead of in the database."""

    def __init__(self, backend: DatabaseBackend) -> None:
        self._backend = backend
        self._writer = backend.engine.execution_options(**{ACCESS: Access.WRITE})
        self._changer = backend.engine.execution_options(**{ACCESS: Access.CHANGE})
        self._turn = threading.Lock()

    @property
    def place(self) -> DatabasePlace:
        return self._backend.place

    def read(self, work: Callable[[Session], T]) -> T:
        """`work` within one read transaction: it sees one state of the database."""
        return self._in_session(self._backend.engine, work)

    def ask(self, work: Callable[[Connection], T]) -> T:
        """As `read`, for a `work` that needs no session."""

        def once() -> T:
            with self._backend.engine.connect() as connection:
                return work(connection)

        with self._backend.explained():
            return self._patiently(once)

    def write(self, work: Callable[[Session], T]) -> T:
        """`work` within one transaction: all of it is stored, or nothing. No other process writes meanwhile.

        `work` runs again from its start when another process held the lock, or the server was lost before it
        was asked to commit.
        """
        with self._backend.explained(), self._turn:
            try:
                done = self._in_session(self._writer, work)
            except (DBAPIError, sqlite3.Error, StoreError):
                self.require()  # where it is gone, that says more
                raise
            self.require()  # afterwards: a file that was moved has got it
            return done

    def change(self, work: Callable[[Session], T]) -> T:
        """`work` within one transaction that changes rows which its own locks or unique keys protect.

        On a server others change and write at the same time; `take_turn` ends that, and comes before evidence
        is stored. On a file it is a `write`.
        """
        if isinstance(self.place, Path):
            return self.write(work)
        return self._in_session(self._changer, work)

    def _in_session(self, engine: Engine, work: Callable[[Session], T]) -> T:
        """`work` in a session of its own, and what it changed committed; again where that may help."""
        from sqlalchemy.orm import Session

        def once() -> T:
            with Session(engine, expire_on_commit=False) as session:
                done = work(session)
                if engine is not self._backend.engine:
                    session.commit()
                return done

        with self._backend.explained():
            return self._patiently(once)

    def take_turn(self, session: Session) -> None:
        """Within `change`: nobody else writes until the transaction ends."""
        self._backend.take_turn(session.connection())

    def notify(self, channel: str) -> None:
        """Wakes all listeners of a channel, in whichever process. Call it after the commit. Never fails."""
        self._backend.notify(channel)

    def listener(self, channel: str) -> Listener:
        """A listener of a channel, for one thread. On a file each commit notifies every channel."""
        return self._backend.listener(channel)

    def write_if_free(self, work: Callable[[Connection], bool]) -> bool:
        """The answer of `work`, within one transaction. For caches.

        False, and nothing is stored, where the database cannot be written now: locked, or read-only.
        """
        if self._backend.fixed or not self._turn.acquire(blocking=False):
            return False
        engine = self._backend.engine.execution_options(**{ACCESS: Access.WRITE_IF_FREE})
        try:
            with engine.begin() as connection:
                return work(connection)
        except (DBAPIError, sqlite3.OperationalError, NotFree):
            return False
        finally:
            self._turn.release()

    def schema(self) -> str | None:
        """The database's migration; None for an empty one. Raises StoreError for another program's."""
        return self.ask(self._backend.version)

    def prepare(self, *, create: bool = True) -> None:
        """Brings the database to the newest schema; two processes may do so at once.

        Raises NothingStored for an empty one that is not to be filled; StoreError for another program's
        database and for a schema newer than this program knows; of a fixed one for each other schema.
        """
        with self._backend.explained():
            self._patiently(lambda: self._prepare_once(create))
            self._backend.opened()
        if not self.ask(is_policy_followed):
            self.write_if_free(follow_policy)

    def _prepare_once(self, create: bool) -> None:
        with self._backend.engine.connect() as connection:
            found = self._backend.version(connection)
        if found == HEAD:
            return
        if found is None and not create:
            raise NothingStored(
                f"no attempts are stored in {self.place} yet; make some first: kernelproof generate, or "
                "kernelproof verify FILE --problem P (or choose the right --db)"
            )
        steps_from(found, self.place)  # of a newer schema nothing else is to be said
        if self._backend.fixed:
            raise StoreError(
                f"database {self.place} has schema {found or 'none'} and this kernelproof reads {HEAD}: in a "
                "read-only directory it cannot be brought up; copy it to a writable --workspace"
            )
        self._backend.before_migrating()
        with _MIGRATING, self._writer.connect() as connection, connection.begin():
            # The lock is held: a process that waited for it finds the work done.
            if self._backend.version(connection) != HEAD:
                _migrate(connection, self._backend)

    def require(self) -> None:
        """Raises StoreError where the file that was opened is no longer at its path."""
        self._backend.require()

    def _patiently(self, work: Callable[[], T]) -> T:
        """`work`, again while something is in the way that may pass, as long as PATIENCE_S."""
        began = time.monotonic()
        while True:
            try:
                return work()
            except (DBAPIError, sqlite3.OperationalError) as error:
                now, obstacle = time.monotonic(), self._backend.obstacle(error)
                if obstacle is None or now - began > PATIENCE_S:
                    raise
            if now - began >= WARN_S:
                warn_waiting(self.place, obstacle)
            time.sleep(random.uniform(0.01, 0.1))

    def close(self) -> None:
        """Closes the connections; the last one to close folds SQLite's write-ahead log into the file."""
        self._backend.engine.dispose()


class HasDatabase:
    """A part of the store, whose methods are transactions."""

    def __init__(self, database: Database) -> None:
        self._database = database


class Transaction(Protocol):
    """Decorates a method that takes a session after `self`: its callers leave the session out, and the whole
    method is one transaction. It runs again from its start where that of `Database` does."""

    def __call__(
        self, method: Callable[Concatenate[S, Session, P], T], /
    ) -> Callable[Concatenate[S, P], T]: ...


def _transaction(of: Callable[[Database, Callable[[Session], Any]], Any]) -> Transaction:
    def decorate(method: Callable[Concatenate[S, Session, P], T]) -> Callable[Concatenate[S, P], T]:
        @wraps(method)
        def run(self: S, /, *args: P.args, **named: P.kwargs) -> T:
            done: T = of(self._database, lambda session: method(self, session, *args, **named))
            return done

        return run

    return decorate


def reading(work: Callable[Concatenate[Session, P], T]) -> Callable[Concatenate[HasDatabase, P], T]:
    """The method that does `work` within one read transaction."""
    return read_transaction(_without_self(work))


def writing(work: Callable[Concatenate[Session, P], T]) -> Callable[Concatenate[HasDatabase, P], T]:
    """The method that does `work` within one transaction."""
    return write_transaction(_without_self(work))


def _without_self(
    work: Callable[Concatenate[Session, P], T],
) -> Callable[Concatenate[HasDatabase, Session, P], T]:
    @wraps(work)
    def method(_: HasDatabase, session: Session, /, *args: P.args, **named: P.kwargs) -> T:
        return work(session, *args, **named)

    return method


read_transaction = _transaction(Database.read)
write_transaction = _transaction(Database.write)
change_transaction = _transaction(Database.change)


def open_database(place: DatabasePlace, *, create: bool, only_read: bool = False) -> Database:
    """The database at `place` in the newest schema; with `only_read` in a read-only directory, too.

    Raises NothingStored when it is missing and `create` is false, StoreError when it cannot be used.
    """
    database = Database(_backend_at(place, create, only_read))
    try:
        database.prepare(create=create or isinstance(place, Path))
    except BaseException:
        database.close()
        raise
    return database


def open_as_it_is(place: DatabasePlace, *, any_text: bool = False) -> Database:
    """The database at `place`, to read, in whichever schema it has.

    `any_text`: texts that are not UTF-8, as an edited SQLite file may hold them, are read with surrogates.
    """
    return Database(_backend_at(place, False, True, any_text))


def _backend_at(
    place: DatabasePlace, create: bool, only_read: bool, any_text: bool = False
) -> DatabaseBackend:
    if isinstance(place, Path):
        from kernelproof.db.sqlite import sqlite_file

        return sqlite_file(place, create=create, only_read=only_read, any_text=any_text)
    try:
        from kernelproof.db.postgresql import Server
    except ImportError:
        raise MachineError(f"PostgreSQL needs its driver: {install_command('postgresql')}") from None
    return Server(place)


def steps_from(version: str | None, place: DatabasePlace) -> list[str]:
    """The migrations that a database of this schema lacks, the first one first: name and sentence of each.

    Raises StoreError for a schema newer than this program knows.
    """
    from kernelproof.db.migrations import later_than

    try:
        missing = later_than(version)
    except ValueError:
        raise StoreError(
            f"database {place} has schema {version}, newer than this kernelproof knows ({HEAD}); "
            "upgrade kernelproof (pip install --upgrade kernelproof), or choose another --workspace"
        ) from None
    return [f"{name}: {(getdoc(step) or '').splitlines()[0]}" for name, step in missing.items()]


def _migrate(connection: Connection, backend: DatabaseBackend) -> None:
    """All missing migrations, in the transaction that `connection` is in."""
    from kernelproof.db.migrations import migrate

    found = backend.version(connection)
    steps_from(found, backend.place)
    backend.mark(connection)
    drop_views(connection)
    migrate(connection, found, HEAD)
    make_views(connection)
