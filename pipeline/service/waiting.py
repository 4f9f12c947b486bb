"""Waiting for evaluations to end: one look for all who wait, whenever something was stored."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from contextlib import closing, suppress

import anyio
import anyio.to_thread

from kernelproof.db.store import Store
from kernelproof.errors import StoreError

LOOK_S = 1.0
"""Seconds between two looks without a notification, while somebody waits: one may be lost."""
AGAIN_S = 1.0
"""Before another look at a database that cannot be used."""
_LOG = logging.getLogger("kernelproof.service")


class Watch:
    """Wakes those who wait for an evaluation when it has ended."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: dict[str, anyio.Event] = {}
        self._count: dict[str, int] = {}
        self._news = asyncio.Event()
        self._stored = False
        """Something was stored since the last look, so that all are asked for, and not only the new ones."""
        self._new: dict[str, None] = {}
        """Those for whom nobody waited at the last look."""
        self._somebody = threading.Event()
        """Set while somebody waits; the thread that listens sleeps otherwise."""
        self._looking = anyio.CapacityLimiter(1)
        self.over = False
        """Nobody waits any more, since the service ends."""

    async def ended(self, number: str, seconds: float) -> None:
        """Returns when the evaluation has ended, after so many seconds, or when the service ends."""
        if self.over:
            return
        event = self._waiting.setdefault(number, anyio.Event())
        self._count[number] = self._count.get(number, 0) + 1
        self._somebody.set()
        self._new[number] = None  # it may have ended before anybody waited
        self._news.set()
        try:
            with anyio.move_on_after(seconds):
                await event.wait()
        finally:
            self._count[number] -= 1
            if not self._count[number]:
                del self._count[number]
                if self._waiting.get(number) is event:
                    del self._waiting[number]

    @property
    def waiting(self) -> int:
        return sum(self._count.values())

    def end(self) -> None:
        """Wakes all, for good. For the thread of the event loop."""
        self.over = True
        for event in self._waiting.values():
            event.set()

    async def run(self) -> None:
        """Looks until it is cancelled."""
        stop, loop = threading.Event(), asyncio.get_running_loop()

        def stored() -> None:
            self._stored = True
            self._news.set()

        def tell() -> None:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(stored)

        listening = threading.Thread(target=self._listen, args=(tell, stop), name="listening", daemon=True)
        listening.start()
        try:
            while True:
                await self._news.wait()
                self._news.clear()
                await self._look()
        finally:
            stop.set()
            self._somebody.set()
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(listening.join, LOOK_S)

    def _listen(self, tell: Callable[[], None], stop: threading.Event) -> None:
        with closing(self._store.service.evaluations.listener()) as listener:
            while not stop.is_set():
                self._somebody.wait()
                listener.wait(LOOK_S, stop)
                tell()

    async def _look(self) -> None:
        if not self._waiting:
            self._somebody.clear()
            self._new.clear()
            return
        asked = list(self._waiting if self._stored else (each for each in self._new if each in self._waiting))
        self._stored = False
        self._new.clear()
        if not asked:
            return
        look = self._store.service.evaluations.ended
        try:
            ended = await anyio.to_thread.run_sync(look, asked, limiter=self._looking)
        except StoreError as error:
            _LOG.warning("kernelproof: those who wait are not told of ends: %s", error)
            await anyio.sleep(AGAIN_S)
            self._stored = True
            self._news.set()
            return
        for number in ended:
            if (event := self._waiting.pop(number, None)) is not None:
                event.set()
