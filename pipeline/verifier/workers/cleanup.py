"""Deferred cleanup. After a verdict the processes of the verification end, its memory is given back, and new
processes start, while the next verification begins. A measurement waits for the end of all this."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor


class DeferredCleanup:
    """Does one thing after the other in a thread of its own."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="behind")
        self._pending: deque[tuple[Future[None], int]] = deque()

    @property
    def nbytes(self) -> int:
        """Bytes that will be free when all is done."""
        return sum(nbytes for future, nbytes in self._pending if not future.done())

    def later(self, work: Callable[[], None], nbytes: int = 0) -> None:
        """Calls `work`, which frees so many bytes, when all that came before it is done. Returns at once."""
        self._pending.append((self._pool.submit(work), nbytes))

    def wait(self) -> None:
        """Returns when nothing is left to do. Raises what the work raised."""
        while self._pending:
            self._pending.popleft()[0].result()
