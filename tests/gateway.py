"""A TCP gateway before a server on loopback, which can fall silent, and come back."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field


@dataclass
class Gateway:
    """The running gateway. While it is silent it accepts connections and passes nothing on, as a server does
    that was stopped, or whose disk hangs."""

    port: int
    passing: threading.Event = field(default_factory=threading.Event)
    """Cleared: silent."""

    def fall_silent(self) -> None:
        """From now on nothing is passed, on old connections and on new ones."""
        self.passing.clear()

    def come_back(self) -> None:
        """Passes all that was held back."""
        self.passing.set()


@contextmanager
def gateway(to: int) -> Iterator[Gateway]:
    """A gateway to a port of this machine, until the block ends."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listening:
        made = Gateway(listening.getsockname()[1])
        made.come_back()
        threading.Thread(target=_accept, args=(listening, to, made), daemon=True).start()
        yield made
        made.come_back()


def _accept(listening: socket.socket, to: int, made: Gateway) -> None:
    with suppress(OSError):  # it was closed
        while True:
            near, _ = listening.accept()
            threading.Thread(target=_join, args=(near, to, made), daemon=True).start()


def _join(near: socket.socket, to: int, made: Gateway) -> None:
    made.passing.wait()
    try:
        far = socket.create_connection(("127.0.0.1", to))
    except OSError:
        near.close()
        return
    threading.Thread(target=_pass, args=(near, far, made), daemon=True).start()
    _pass(far, near, made)


def _pass(source: socket.socket, target: socket.socket, made: Gateway) -> None:
    with suppress(OSError):
        while data := source.recv(65_536):
            made.passing.wait()
            target.sendall(data)
    for each in (source, target):
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
