"""Endings behind a verdict: the processes of a verification end, and its memory is given back, while the next
one begins. Whoever measures waits for that, and whoever is short of memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor


class Endings:
    """Ends one thing after the other in a thread of its own."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="endings")
        self._pending: deque[Future[None]] = deque()

    def later(self, end: Callable[[], None]) -> None:
        """Calls `end` when all that came before it has ended. Returns at once."""
        self._pending.append(self._pool.submit(end))

    def wait(self) -> None:
        """Returns when nothing is left to end. Raises what an ending raised."""
        while self._pending:
            self._pending.popleft().result()
