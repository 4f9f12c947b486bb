"""An HTTP server that strangers cannot stop: connections without a request have little time and make room."""

from __future__ import annotations

import asyncio
import logging
import math
import socket
import time
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from kernelproof.listening import allow_open_files

HEAD_S = 10.0
"""Seconds until the head of a request is there."""
DRAIN_S = 60.0
"""Seconds for the rest of a body whose request was answered before. It is read and thrown away: were the
connection closed at once, its sender would see a reset in place of the answer."""
MOST_CONNECTIONS = 8192
"""At once, where the system allows as many open files."""
SPARE_FILES = 128
"""For the database, logs, processes, and connections that are accepted before others are closed."""
ACCEPTED = 32
"""Connections that are accepted in one turn of the event loop."""
BACKLOG = 2048
"""Connections that wait in the system to be accepted."""
QUIET_S = 60.0
"""A condition that goes on is logged once in so many seconds."""


class HttpServer(uvicorn.Server):
    """uvicorn with bounded connections; `options` are those of its Config."""

    def __init__(self, app: Any, **options: Any) -> None:
        super().__init__(uvicorn.Config(app, http=_Connection, ws="none", backlog=ACCEPTED, **options))
        self.server_state = _State(_allowed_connections())

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        logging.getLogger("uvicorn.error").addFilter(_Seldom())
        logging.getLogger("asyncio").addFilter(_Seldom())  # of connections for which there is no file
        await super().startup(sockets)
        for each in sockets or ():
            each.listen(BACKLOG)


class _State(ServerState):
    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most
        self.waiting: dict[_Connection, None] = {}
        """Connections without a request that is not answered, the oldest first."""


class _Connection(H11Protocol):
    """A connection that is closed when the head of its request takes too long, or another needs its place."""

    server_state: _State
    _limit: asyncio.TimerHandle | None = None
    _unread = math.inf
    """Bytes of the answer that the system had not taken at the last look."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self.server_state.most:
            oldest = next(iter(self.server_state.waiting), self)
            oldest._occupied()
            oldest.transport.abort()
        if not transport.is_closing():
            self._expect_request()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._occupied()

    def on_response_complete(self) -> None:
        self._unread = math.inf
        self._expect_request()
        super().on_response_complete()  # which may begin with the next request
        if not self.cycle.response_complete:
            self._occupied()

    def connection_lost(self, exc: Exception | None) -> None:
        self._occupied()
        super().connection_lost(exc)

    def _expect_request(self) -> None:
        self._occupied()
        self.server_state.waiting[self] = None
        draining = self.conn.their_state is h11.SEND_BODY
        self._limit = self.loop.call_later(DRAIN_S if draining else HEAD_S, self._late)

    def _occupied(self) -> None:
        self.server_state.waiting.pop(self, None)
        if self._limit is not None:
            self._limit.cancel()

    def _late(self) -> None:
        """Closes the connection, unless its caller still reads the answer."""
        self._occupied()
        unread = self.transport.get_write_buffer_size()
        if 0 < unread < self._unread:
            self._unread = unread
            self._expect_request()
        else:
            self.transport.abort()


class _Seldom(logging.Filter):
    """Lets each warning and each error of accepting pass once in QUIET_S, without its traceback."""

    def __init__(self) -> None:
        super().__init__()
        self._last: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        accepting = "socket.accept()" in str(record.msg)
        if record.levelno > logging.WARNING and not accepting:
            return True
        if accepting:
            record.msg, record.exc_info = "no more connections can be accepted: too many open files", None
        now, last = time.monotonic(), self._last.get(record.msg, -QUIET_S)
        if now - last < QUIET_S:
            return False
        self._last[record.msg] = now
        return True


def _allowed_connections() -> int:
    """Connections for which this process may open files."""
    allowed = allow_open_files(MOST_CONNECTIONS + SPARE_FILES)
    return min(MOST_CONNECTIONS, max(16, allowed - SPARE_FILES))
