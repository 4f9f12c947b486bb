"""How a long command ends: done, interrupted by a signal, unread by anybody, or failed. `Report` is the row
that `kernelproof runs status` reads meanwhile."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Generic, TypeVar

import anyio
from anyio.abc import TaskGroup

from kernelproof.db.store import Store
from kernelproof.errors import OutputClosed
from kernelproof.jobs.leases import in_thread
from kernelproof.verifier.engine.engine import Engine

T = TypeVar("T")

LOOK_S = 0.1
"""Seconds between two looks: is the output still read?"""
REPORT_S = 2.0
"""Seconds between two records of the progress in the store."""


class Shutdown(Generic[T]):
    """Ends a command's work at the first SIGINT or SIGTERM, or when its output is no longer read."""

    def __init__(self, on_event: Callable[[T], None], unread: Callable[[], bool]) -> None:
        self._on_event, self._unread = on_event, unread
        self.stopped = False
        """Whether a signal ended the work."""
        self.gone = False
        """Whether nobody reads what happens."""

    @asynccontextmanager
    async def work(self, engine: Engine) -> AsyncIterator[TaskGroup]:
        """A group for tasks that end with the block, or as soon as the work has to; then closes the engine.

        Raises the first error of a task alone: what the user must know; the others follow from it.
        """
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._wait_for_signal, group)
                group.start_soon(self._wait_for_reader, group)
                yield group
                group.cancel_scope.cancel()
        except BaseExceptionGroup as errors:
            error: BaseException = errors
            while isinstance(error, BaseExceptionGroup):
                error = error.exceptions[0]
            raise error from None
        finally:
            engine.close()  # ends what cancelled tasks left running in their threads

    def hear(self, event: T) -> None:
        """Passes on an event. From the event loop and from threads."""
        if self.gone:
            return
        try:
            self._on_event(event)
        except BrokenPipeError:
            self.gone = True

    def words(self, otherwise: str = "done") -> str:
        """How the work ended, as `kernelproof runs status` says it; `otherwise`: where it came to its end."""
        return "nobody read its output" if self.gone else "interrupted" if self.stopped else otherwise

    def raise_if_gone(self, stored: str) -> None:
        """Raises OutputClosed where nobody reads. `stored`: what became of the work."""
        if self.gone:
            raise OutputClosed(f"nobody reads the output any more; {stored}")

    async def _wait_for_signal(self, group: TaskGroup) -> None:
        """A second signal has its ordinary effect."""
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async for _ in signals:
                self.stopped = True
                # Cancelled before the engine is closed: a verification that the closing ends is no failure.
                group.cancel_scope.cancel()
                return

    async def _wait_for_reader(self, group: TaskGroup) -> None:
        while not self.gone:
            await anyio.sleep(LOOK_S)
            self.gone = self.gone or self._unread()
        group.cancel_scope.cancel()


class Report:
    """The row of a command in the store's `batches`."""

    def __init__(
        self,
        store: Store,
        owner: str,
        name: str | None,
        runs: list[int],
        config: dict[str, Any],
        progress: Callable[[], dict[str, Any]],
    ) -> None:
        """As `Batches.begin`. `progress` is asked for every REPORT_S."""
        self._batches, self._progress = store.batches, progress
        self._id = store.batches.begin(owner, name, runs, config)

    async def run(self) -> None:
        """Gives signs of life until it is cancelled."""
        while True:
            await anyio.sleep(REPORT_S)
            await in_thread(self._batches.report, self._id, self._progress())

    def close(self, ended: str) -> None:
        self._batches.report(self._id, self._progress(), ended)
