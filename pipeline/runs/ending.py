"""Why work on many ends before all is done: a signal, a reader that is gone, an error."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Generic, TypeVar

import anyio
from anyio.abc import TaskGroup

from kernelproof.errors import OutputClosed

T = TypeVar("T")

LOOK_S = 0.1
"""Seconds between two looks: is the output still read?"""


class Stopper:
    """Turns the first SIGINT or SIGTERM into a clean end: every task is cancelled where it waits."""

    def __init__(self) -> None:
        self.stopped = False

    def watch(self, group: TaskGroup) -> None:
        """Starts watching; a second signal then has its ordinary effect."""
        group.start_soon(self._wait, group)

    async def _wait(self, group: TaskGroup) -> None:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async for _ in signals:
                self.stopped = True
                # Cancelled before the engine is closed: a verification that the closing ends is no failure.
                group.cancel_scope.cancel()
                return


class Listener(Generic[T]):
    """Passes on what happens until nobody reads it: then the work ends as after Ctrl-C."""

    def __init__(self, on_event: Callable[[T], None], unread: Callable[[], bool]) -> None:
        self._on_event, self._unread = on_event, unread
        self.gone = False

    def hear(self, event: T) -> None:
        """From the event loop and from threads."""
        if self.gone:
            return
        try:
            self._on_event(event)
        except BrokenPipeError:
            self.gone = True

    async def watch(self, group: TaskGroup) -> None:
        """Cancels `group` soon after the listener is gone."""
        while not self.gone:
            await anyio.sleep(LOOK_S)
            self.gone = self.gone or self._unread()
        group.cancel_scope.cancel()

    def raise_if_gone(self, stored: str) -> None:
        """Raises OutputClosed where nobody reads. `stored`: what became of the work."""
        if self.gone:
            raise OutputClosed(f"nobody reads the output any more; {stored}")


def first_error(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first error inside a group: what the user must know; the others follow from it."""
    found: BaseException = errors
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found
