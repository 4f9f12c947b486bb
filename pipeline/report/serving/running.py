"""Listening on an address until Ctrl-C."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator

import uvicorn

from kernelproof.errors import MachineError, UsageError
from kernelproof.report.serving.app import application
from kernelproof.report.serving.events import MOST_CLIENTS, Events
from kernelproof.report.serving.guard import LOOPBACK, Guard
from kernelproof.report.serving.opened import Opened
from kernelproof.report.serving.pages import Pages
from kernelproof.workspace import DatabasePlace

MOST_CONNECTIONS = 4 * MOST_CLIENTS
GRACE_S = 2
"""Seconds that answers have to end when the server stops."""


def serve(database: DatabasePlace, host: str, port: int, ready: Callable[[str, bool], None]) -> None:
    """Serves the pages of a database until SIGINT or SIGTERM.

    `ready` is told the address of the first page, and whether other machines reach it. `port`: 0 takes a free
    one. Raises UsageError for a host that is none of this machine and where there is no database,
    MachineError for a port that cannot be had, StoreError for a database that cannot be used.
    """
    with contextlib.closing(Opened(database)) as opened, _listening(host, port) as listening:
        address, number = listening.getsockname()[:2]
        shown = f"[{address}]" if ":" in address else address
        reached = f"http://{shown}:{number}/", not ipaddress.ip_address(address).is_loopback
        asyncio.run(_serve(opened, host, listening, lambda: ready(*reached)))


@contextlib.contextmanager
def _listening(host: str, port: int) -> Iterator[socket.socket]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (socket.gaierror, UnicodeError):
        raise UsageError(
            f"--host {host!r} is no address of this machine; give one, such as 127.0.0.1 or ::1"
        ) from None
    family, _, _, _, address = found[0]
    listening = socket.socket(family, socket.SOCK_STREAM)
    with listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind(address)
            listening.listen()
        except OSError as error:
            raise _refusal(error, host, port) from None
        yield listening


def _refusal(error: OSError, host: str, port: int) -> UsageError | MachineError:
    import errno

    if error.errno == errno.EADDRNOTAVAIL:
        return UsageError(f"--host {host!r} is no address of this machine; leave it out for 127.0.0.1")
    if error.errno == errno.EADDRINUSE:
        return MachineError(f"port {port} is in use; give another with --port, or 0 for any that is free")
    if error.errno == errno.EACCES:
        return MachineError(f"port {port} is not for everybody to take; give one above 1023 with --port")
    return MachineError(f"nothing can listen on {host} port {port}: {error.strerror}")


class _Server(uvicorn.Server):
    """A server that leaves signals to us: uvicorn would send itself the one that ended it once more."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
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
    server = _Server(
        uvicorn.Config(
            app,
            http="h11",
            ws="none",
            lifespan="off",
            loop="asyncio",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=MOST_CONNECTIONS,
            timeout_graceful_shutdown=GRACE_S,
        ),
        ready,
    )

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
