"""A PostgreSQL database as a backend: connections, transactions, another program's database, and
notifications: NOTIFY wakes all who LISTEN, on whichever machine.

A transaction that notifies takes a lock of the whole server while it commits. So a notification is a
transaction of its own, which a thread sends after the commit that it reports; several may be combined. It may
be lost with its process or connection, so the caller of a listener also looks now and then without one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, make_url

from kernelproof.db.backend import BUSY_MS, PATIENCE_S, Access, Listener, NotFree
from kernelproof.db.postgresql_errors import explained, obstacle
from kernelproof.errors import MachineError, StoreError, UsageError
from kernelproof.workspace import ServerDatabase

PREFIX = "kernelproof_"
LOOK_S = 0.2
"""Seconds between two looks of a listener whether it has to stop."""
AGAIN_S = 1.0
"""Between two attempts to connect."""

Connect = Callable[[], Any]


class Notifier:
    """Sends notifications. Thread-safe; the thread that sends starts with the first one."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._lock = threading.Lock()
        self._pending: set[str] = set()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None

    def notify(self, channel: str) -> None:
        """Returns at once; the notification is sent soon."""
        with self._lock:
            self._pending.add(channel)
            if self._thread is None:
                self._thread = threading.Thread(target=self._send, name="notifications", daemon=True)
                self._thread.start()
        self._wake.set()

    def _send(self) -> None:
        import psycopg

        connection: Any = None
        while self._wake.wait():
            self._wake.clear()
            with self._lock:
                pending, self._pending = self._pending, set()
            try:
                connection = connection or self._connect()
                for channel in pending:
                    connection.execute(f"NOTIFY {PREFIX}{channel}")
            except psycopg.Error:
                connection = None
                time.sleep(AGAIN_S)


class ServerListener:
    """Waits for a channel's notifications. A server that is away is looked for again."""

    def __init__(self, connect: Connect, channel: str) -> None:
        self._connect, self._channel = connect, channel
        self._connection: Any = None

    def wait(self, seconds: float, stop: threading.Event) -> None:
        """Also returns where the connection was lost or made: notifications may have been missed."""
        import psycopg

        ends = time.monotonic() + seconds
        try:
            if self._connection is None:
                self._connection = self._connect()
                self._connection.execute(f"LISTEN {PREFIX}{self._channel}")
                return
            while not stop.is_set() and (left := ends - time.monotonic()) > 0:
                if [*self._connection.notifies(timeout=min(LOOK_S, left), stop_after=1)]:
                    return
        except psycopg.Error:
            self.close()
            stop.wait(min(seconds, AGAIN_S))

    def close(self) -> None:
        """Ends its connection."""
        with suppress(Exception):
            if self._connection is not None:
                self._connection.close()
        self._connection = None


LOCK = 0x6B70_7266
"""The key of the advisory lock that writing transactions hold, one after the other: what a transaction reads
to decide what it writes cannot change meanwhile. SQLite's BEGIN IMMEDIATE promises the same."""
MARK = "kernelproof"
"""The comment on our `alembic_version`, so that another program's database is never migrated."""
CONNECT_S = 10
"""How long a connection may take, unless the address says otherwise."""


class Server:
    """A database of a PostgreSQL server, in the schema that its search path names first."""

    fixed = False

    def __init__(self, place: ServerDatabase) -> None:
        """Raises MachineError without the driver, UsageError for an address that makes no sense."""
        self.place = place
        self.engine = _engine(place)
        self._reached = False
        self._notifier = Notifier(self._connect)

    def explained(self) -> AbstractContextManager[None]:
        """Errors of the server and of the way to it become StoreError."""
        return explained(self.place)

    def obstacle(self, error: BaseException) -> str | None:
        """Another process holds a lock, or a server that was there before is away."""
        return obstacle(error, reached=self._reached)

    def version(self, connection: Connection) -> str | None:
        """The migration the database is at; None for an empty one."""
        schema, encoding = connection.exec_driver_sql(
            "SELECT current_schema(), current_setting('server_encoding')"
        ).one()
        if schema is None:
            raise StoreError(
                f"database {self.place}: its search_path names no schema that is there; make one"
            )
        if encoding != "UTF8":
            raise StoreError(
                f"database {self.place} keeps text as {encoding} and has to keep it as UTF8; make it anew: "
                f"createdb --encoding UTF8 --template template0 {self.place.name}"
            )
        found = connection.exec_driver_sql(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()"
        )
        tables = set(found.scalars())
        if not tables:
            return None
        if (
            "alembic_version" not in tables
            or connection.exec_driver_sql("SELECT obj_description('alembic_version'::regclass)").scalar()
            != MARK
        ):
            raise StoreError(
                f"database {self.place} belongs to another program; make one for kernelproof (createdb "
                "kernelproof), and name that"
            )
        return str(connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar())

    def before_migrating(self) -> None:
        """Nothing."""

    def mark(self, connection: Connection) -> None:
        """By a comment on the table of the version, which alembic itself would make too narrow."""
        connection.exec_driver_sql(
            "CREATE TABLE IF NOT EXISTS alembic_version "
            "(version_num TEXT NOT NULL CONSTRAINT alembic_version_pkc PRIMARY KEY)"
        )
        connection.exec_driver_sql(f"COMMENT ON TABLE alembic_version IS '{MARK}'")

    def opened(self) -> None:
        """From now on a server that is away is waited for: it may start anew."""
        self._reached = True

    def require(self) -> None:
        """Nothing: a server that is gone says so itself."""

    def take_turn(self, connection: Connection) -> None:
        """By the lock of writing transactions."""
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({LOCK})")

    def notify(self, channel: str) -> None:
        """By NOTIFY, in a transaction and a thread of its own."""
        self._notifier.notify(channel)

    def listener(self, channel: str) -> Listener:
        """By LISTEN, on a connection of its own."""
        return ServerListener(self._connect, channel)

    def _connect(self) -> Any:
        """A driver's connection outside the pool, which begins no transactions."""
        arguments, named = self.engine.dialect.create_connect_args(self.engine.url)
        connection: Any = self.engine.dialect.connect(*arguments, **named)
        connection.autocommit = True
        return connection


def _engine(place: ServerDatabase) -> Engine:
    try:
        url = make_url(place.url).set(drivername="postgresql+psycopg")
    except ValueError:
        raise UsageError(f"the port of {place} is not a number") from None
    usual = {"connect_timeout": CONNECT_S, "application_name": "kernelproof"}
    try:
        from kernelproof.db.postgresql_connection import TCP, watch

        arguments: dict[str, Any] = {"client_encoding": "utf8"}
        arguments |= {name: value for name, value in (usual | TCP).items() if name not in url.query}
        # A server takes 100 connections, usually, from all processes together.
        engine = create_engine(
            *(url,),
            connect_args=arguments,
            pool_size=2,
            max_overflow=6,
            pool_timeout=PATIENCE_S,
            pool_pre_ping=True,
        )
    except ImportError:
        raise MachineError("PostgreSQL needs its driver: pip install 'kernelproof[postgresql]'") from None
    watch(engine, place)
    event.listen(engine, "begin", _on_begin)
    return engine


def _on_begin(connection: Connection) -> None:
    access = Access.of(connection)
    if access is Access.READ:
        connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        return
    connection.exec_driver_sql(
        "SET TRANSACTION ISOLATION LEVEL READ COMMITTED READ WRITE; "
        f"SET LOCAL lock_timeout = {BUSY_MS}; SET LOCAL idle_in_transaction_session_timeout = 0"
    )
    if access is Access.CHANGE:
        return
    lock = "pg_advisory_xact_lock" if access is Access.WRITE else "pg_try_advisory_xact_lock"
    if connection.exec_driver_sql(f"SELECT {lock}({LOCK})").scalar() is False:
        raise NotFree
