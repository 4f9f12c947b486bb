"""Listening on an address until Ctrl-C."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator

from kernelproof.http_server import HttpServer
from kernelproof.listening import LOOPBACK, in_url, is_local, listening_at
from kernelproof.report.serving.app import application
from kernelproof.report.serving.events import Events
from kernelproof.report.serving.guard import Guard
from kernelproof.report.serving.opened import Opened
from kernelproof.report.serving.pages import Pages
from kernelproof.workspace import DatabasePlace

GRACE_S = 2
"""Seconds that answers have to end when the server stops."""


def serve(database: DatabasePlace, host: str, port: int, ready: Callable[[str, bool], None]) -> None:
    """Serves the pages of a database until SIGINT or SIGTERM.

    `ready` is told the address of the first page, and whether other machines reach it. `port`: 0 takes a free
    one. Raises UsageError for a host that is none of this machine and where there is no database,
    MachineError for a port that cannot be had, StoreError for a database that cannot be used.
    """
    with contextlib.closing(Opened(database)) as opened, listening_at(host, port) as listening:
        address, number = listening.getsockname()[:2]
        reached = f"http://{in_url(address)}:{number}/", not is_local(address)
        asyncio.run(_serve(opened, host, listening, lambda: ready(*reached)))


class _Server(HttpServer):
    """A server that leaves signals to us: uvicorn would send itself the one that ended it once more."""

    def __init__(self, app: Guard, ready: Callable[[], None]) -> None:
        super().__init__(
            app,
            lifespan="off",
            loop="asyncio",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=GRACE_S,
        )
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def _serve(opened: Opened, host: str, listening: socket.socket, ready: Callable[[], None]) -> None:
    events = Events(opened.state_or_away)
    app = Guard(application(Pages(opened), events), (*LOOPBACK, host))
    server = _Server(app, ready)

    def stop() -> None:
        server.force_exit = server.should_exit  # the second time
        server.should_exit = True
        events.close()
        logging.getLogger("uvicorn.error").disabled = True  # it tells of each answer that is cut off

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop)
    await server.serve(sockets=[listening])
    if opened.busy:
        # A thread is at work on an answer that nobody waits for. It only reads, but Python would wait for it,
        # which takes minutes where the database is large, or locked.
        sys.stdout.flush()
        os._exit(0)
