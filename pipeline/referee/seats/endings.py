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
        self._pending: deque[tuple[Future[None], int]] = deque()

    @property
    def nbytes(self) -> int:
        """Bytes that will be free when all has ended."""
        return sum(nbytes for future, nbytes in self._pending if not future.done())

    def later(self, end: Callable[[], None], nbytes: int = 0) -> None:
        """Calls `end`, which frees so many bytes, when all that came before it has ended. Returns at once."""
        self._pending.append((self._pool.submit(end), nbytes))

    def wait(self) -> None:
        """Returns when nothing is left to end. Raises what an ending raised."""
        while self._pending:
            self._pending.popleft()[0].result()
