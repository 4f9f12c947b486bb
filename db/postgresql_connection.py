"""Connections to a PostgreSQL server that notice its silence, and what an error says of the transaction."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus
from sqlalchemy import Connection, Engine, ExceptionContext, event

from kernelproof.db import backend
from kernelproof.db.postgresql_errors import AWAY, UNDONE, is_full, is_lost
from kernelproof.workspace import ServerDatabase

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
