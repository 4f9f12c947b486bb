"""A PostgreSQL database as a backend: connections that notice a server's silence, transactions, errors as
messages that say what to do and never hold a password, and notifications: NOTIFY wakes all who LISTEN, on
whichever machine.

A transaction that notifies takes a lock of the whole server while it commits. So a notification is a
transaction of its own, which a thread sends after the commit that it reports; several may be combined. It may
be lost with its process or connection, so the caller of a listener also looks now and then without one.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus
from sqlalchemy import Connection, Engine, ExceptionContext, create_engine, event, make_url
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from kernelproof.db import backend
from kernelproof.db.backend import BUSY, BUSY_MS, PATIENCE_S, Access, DatabaseBackend, Listener, NotFree
from kernelproof.db.sqlite import LOCKED, original
from kernelproof.errors import StoreError, UsageError
from kernelproof.workspace import ServerDatabase

_LOCKED_STATES = {"55P03", "40P01", "40001"}
"""Locked, deadlock, conflict."""
_FULL_STATES = {"53300", "57P03"}
"""Too many connections, starting up."""
_FULL = re.compile(r"too many clients|too many connections|connection slots are reserved|is starting up")
_LOST_STATES = ("08", "57P01", "57P02", "57P03", "57P05", "25P03")
"""The server ended the connection: it stops, it crashed, or one of its limits for idle sessions was over."""
AWAY = "cannot be reached"
UNDONE = "kernelproof_undone"
"""The attribute of an error after which nothing was stored for sure: `unconnected` or `lost`."""
_REFUSED = "refuses the user or the password; give the right ones in the address, PGPASSWORD or ~/.pgpass"
_MISSING = "is not there; make it: createdb --encoding UTF8 {name}"
_LOST = "lost its server in the middle; run the same command again, finished attempts are kept"
_DENIED = (
    # The message of a connection that fails has no error code: the text says what it is.
    (
        r"pg_hba\.conf",
        "does not let this user in from here with these SSL settings; ask for a line in pg_hba.conf",
    ),
    (r"password authentication failed|no password supplied|fe_sendauth", _REFUSED),
    (r'role ".*" does not exist', "knows no such user; createuser makes one"),
    (r'database ".*" does not exist', _MISSING),
)
"""Answers of a server that is there: it will not answer otherwise soon."""
_ADVICE = (
    *_DENIED,
    (
        r"\bSSL\b|certificate|sslmode",
        "cannot be reached with these SSL settings; sslmode sets them, as in ...?sslmode=require",
    ),
    (r"translate host name|[Nn]ame or service", "is on a server whose name is not known; check the address"),
    (
        r"refused|No such file|is shutting down|timeout expired|unreachable|No route|closed the connection",
        "cannot be reached; start its server, or check host and port in the address",
    ),
)
_BY_STATE = {
    "28": _REFUSED,
    "3D": _MISSING,
    "42501": "does not let this user do that; its owner can GRANT it",
    "25006": "can only be read: it is a standby or set so; name the primary server",
    "53100": "could not grow: the server's disk is full; free space and run the same command again, finished "
    "attempts are kept",
    "53300": "has no connection free; end other programs, or raise max_connections, then run the same "
    "command again",
    "53": "lacks memory or another resource of its server; run the same command again",
    "55P03": LOCKED,
    "40": LOCKED,
    "2BP01": "has objects of somebody else's that need our views; drop them, and make them again afterwards",
    "25P03": _LOST,
    "57": _LOST,
    "08": _LOST,
}
"""By SQLSTATE, or its beginning."""


def obstacle(error: BaseException, *, reached: bool) -> str | None:
    """What is in the way, where trying again may help and does no harm.

    `reached`: the server was there before, so that it may come back.
    """
    if _state(error) in _LOCKED_STATES:
        return BUSY
    if is_full(error):
        return "takes no connections now"
    denied = any(re.search(pattern, _message(error)) for pattern, _ in _DENIED)
    return AWAY if reached and _undone(error) and not denied else None


def is_full(error: BaseException) -> bool:
    """Whether the server has no connection free, or starts."""
    return _state(error) in _FULL_STATES or bool(_FULL.search(_message(error)))


def is_lost(error: BaseException) -> bool:
    return _state(error).startswith(_LOST_STATES)


@contextmanager
def explained(place: ServerDatabase) -> Iterator[None]:
    """Turns errors of the server and of the way to it into StoreError; lets our own mistakes pass."""
    try:
        yield
    except PoolTimeout as error:
        raise StoreError(f"database {place} {_BY_STATE['53300']}") from error
    except DBAPIError as error:
        advice = _advice(error)
        if advice is None:
            raise
        said = _message(error).partition("\n")[0].strip()
        for secret in place.secrets:
            said = said.replace(secret, "***")
        text = advice.replace("{name}", place.name)
        raise StoreError(f"database {place} {text} ({said})") from None


def _advice(error: DBAPIError) -> str | None:
    state, message = _state(error), _message(error)
    if state:
        return next((_BY_STATE[state[:n]] for n in (5, 2) if state[:n] in _BY_STATE), None)
    if _undone(error) == "unconnected":
        fit = (text for pattern, text in _ADVICE if re.search(pattern, message))
        return next(fit, "cannot be opened; check the address")
    # The driver's own errors, as of a connection that broke, have no code.
    return _LOST if isinstance(error, OperationalError | InterfaceError) else None


def _undone(error: BaseException) -> str | None:
    """`unconnected` or `lost` where nothing was stored for sure; see `postgresql_connection.watch`."""
    found: str | None = getattr(original(error), UNDONE, None)
    return found


def _state(error: BaseException) -> str:
    return getattr(original(error), "sqlstate", None) or ""


def _message(error: BaseException) -> str:
    return str(original(error) or "")


ANSWER_S = 10.0
"""After so long a silence the server is asked whether it is there."""
TCP = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3, "tcp_user_timeout": 60_000}
"""A server whose machine or network is gone is noticed after a minute; the system would take two hours."""
_COMMITTING = "kernelproof_committing"


class _Watchful(psycopg.Connection[Any]):
    """A connection that is lost when its server is silent. A query may take as long as it takes."""

    place: ServerDatabase
    connect_anew: Callable[[], psycopg.Connection[Any]]
    _committing = False

    def commit(self) -> None:
        """As psycopg's, but it has more patience, because an error leaves open whether it was done."""
        self._committing = True
        try:
            super().commit()
        finally:
            self._committing = False

    def wait(self, gen: Generator[Any, Any, Any], *arguments: Any, **named: Any) -> Any:
        """As psycopg's. Raises OperationalError where the server is silent."""
        return super().wait(self._watched(gen), *arguments, **named)

    def _watched(self, gen: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        began = heard = time.monotonic()
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if not ready and time.monotonic() - heard > ANSWER_S:
                    self._require_server(began)
                    heard = time.monotonic()
                elif ready:
                    heard = time.monotonic()
                wanted = gen.send(ready)
        except StopIteration as stop:
            return stop.value

    def _require_server(self, began: float) -> None:
        """Raises OperationalError where the server does not even begin a transaction or take a connection."""
        if self.pgconn.transaction_status != TransactionStatus.IDLE:
            try:
                self.connect_anew().close()
                return
            except psycopg.OperationalError as error:
                if is_full(error):
                    return
        if self._committing and time.monotonic() - began < backend.PATIENCE_S:
            backend.warn_waiting(self.place, AWAY)
            return
        self.pgconn.finish()
        raise psycopg.OperationalError(f"the server did not answer within {ANSWER_S:g} s")


def watch(engine: Engine, place: ServerDatabase) -> None:
    """Makes the engine's connections watchful, and has errors marked after which nothing was stored for sure:
    no connection came about, or it was lost before its COMMIT was sent."""

    def connect(_dialect: Any, _record: Any, arguments: Any, named: Any) -> Any:
        made = _Watchful.connect(*arguments, **named)
        made.place, made.connect_anew = place, lambda: psycopg.connect(*arguments, **named)
        return made

    event.listen(engine, "do_connect", connect)
    event.listen(engine, "begin", lambda connection: _note(connection, False))
    event.listen(engine, "commit", lambda connection: _note(connection, True))
    event.listen(engine, "handle_error", _mark)


def _note(connection: Connection, committing: bool) -> None:
    connection.info[_COMMITTING] = committing


def _mark(context: ExceptionContext) -> None:
    error, connection = context.original_exception, context.connection
    if connection is None:
        setattr(error, UNDONE, "unconnected")
    elif (context.is_disconnect or is_lost(error)) and not connection.info.get(_COMMITTING):
        setattr(error, UNDONE, "lost")


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


class Server(DatabaseBackend):
    """A database of a PostgreSQL server, in the schema that its search path names first."""

    fixed = False

    def __init__(self, place: ServerDatabase) -> None:
        """Raises UsageError for an address that makes no sense."""
        self.place: ServerDatabase = place
        self.engine = _engine(place)
        self._reached = False
        self._notifier = Notifier(self._connect)

    def explained(self) -> AbstractContextManager[None]:
        return explained(self.place)

    def obstacle(self, error: BaseException) -> str | None:
        """Another process holds a lock, or a server that was there before is away."""
        return obstacle(error, reached=self._reached)

    def version(self, connection: Connection) -> str | None:
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

    def take_turn(self, connection: Connection) -> None:
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({LOCK})")

    def notify(self, channel: str) -> None:
        self._notifier.notify(channel)

    def listener(self, channel: str) -> Listener:
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
    arguments: dict[str, Any] = {"client_encoding": "utf8"}
    arguments |= {name: value for name, value in (usual | TCP).items() if name not in url.query}
    # A server takes 100 connections, usually, from all processes together.
    pool: dict[str, Any] = {"pool_size": 2, "max_overflow": 6, "pool_timeout": PATIENCE_S}
    engine = create_engine(url, connect_args=arguments, pool_pre_ping=True, **pool)
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
