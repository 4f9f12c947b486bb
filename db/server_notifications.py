"""Notifications of a PostgreSQL server: NOTIFY wakes whoever waits in LISTEN, on whichever machine.

A transaction that notifies takes a lock of the whole server while it commits. So a notification is a
transaction of its own, sent by a thread of its own after the commit that it tells of. Those that come
meanwhile are one.
It may be lost with its process or its connection: a listener's caller looks now and then without one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

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
