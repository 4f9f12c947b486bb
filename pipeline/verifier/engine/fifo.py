"""First come, first served. A plain condition lets threads through in no order at all. In a batch other
threads always wait too, and unlucky ones would wait for most of the batch."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import TypeVar

from kernelproof.verifier.engine.stop import Stop

T = TypeVar("T")


class Fifo:
    """A queue before something that `changed` guards. Its waiters are let through in the order they came."""

    def __init__(self, changed: threading.Condition) -> None:
        self._changed = changed
        self._queue: deque[object] = deque()

    def __len__(self) -> int:
        return len(self._queue)

    def wait_for(self, ready: Callable[[], T], stop: Stop | None = None) -> T:
        """Waits until this caller is the first of the queue and `ready()` is true, and returns what it
        returned.

        The caller holds `changed`. Only the first of the queue calls `ready`; its exceptions pass through.
        Raises Stopped when `stop` is asked meanwhile.
        """
        stop = stop or Stop()
        ticket = object()
        self._queue.append(ticket)
        try:
            with stop.by(self._wake):
                while not (self._queue[0] is ticket and (found := ready())):
                    self._changed.wait()
                    stop.check()
                return found
        finally:
            self._queue.remove(ticket)
            self._changed.notify_all()

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()
