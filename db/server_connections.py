"""Connections to a PostgreSQL server that do not wait for ever, and what an error says of the transaction."""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus
from sqlalchemy import Connection, Engine, ExceptionContext, event

from kernelproof.db.server_failures import UNDONE, is_lost

BEGIN_S = 10.0
"""How long a server may take until a transaction has begun: then it is silent."""
TCP = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3, "tcp_user_timeout": 60_000}
"""A server whose machine or network is gone is noticed after a minute; the system would take two hours."""
_COMMITTING = "kernelproof_committing"


class _Bounded(psycopg.Connection[Any]):
    """A connection whose transactions begin within BEGIN_S. A query may take as long as it takes."""

    def wait(self, gen: Generator[Any, Any, Any], *arguments: Any, **named: Any) -> Any:
        """As psycopg's. Raises OperationalError where the server is silent."""
        if self.pgconn.transaction_status == TransactionStatus.IDLE:
            gen = self._within(gen, time.monotonic() + BEGIN_S)
        return super().wait(gen, *arguments, **named)

    def _within(self, gen: Generator[Any, Any, Any], ends: float) -> Generator[Any, Any, Any]:
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if not ready and time.monotonic() > ends:
                    self.pgconn.finish()
                    raise psycopg.OperationalError(f"the server did not answer within {BEGIN_S:g} s")
                wanted = gen.send(ready)
        except StopIteration as stop:
            return stop.value


def watch(engine: Engine) -> None:
    """Makes the engine's connections bounded, and has errors marked after which nothing was stored for sure:
    no connection came about, or it was lost before its COMMIT was sent."""
    event.listen(engine, "do_connect", lambda dialect, record, args, named: _Bounded.connect(*args, **named))
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
