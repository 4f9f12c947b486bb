"""Waiting for evaluations to end: one look into the database for all who wait."""

from __future__ import annotations

import anyio
import anyio.to_thread

from kernelproof.db.store import Store

LOOK_S = 0.03
"""Seconds between two looks, while somebody waits."""


class Watch:
    """Wakes those who wait for an evaluation when it has ended."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: dict[str, anyio.Event] = {}
        self._count: dict[str, int] = {}

    async def ended(self, number: str, seconds: float) -> bool:
        """Whether the evaluation ends within so many seconds."""
        event = self._waiting.setdefault(number, anyio.Event())
        self._count[number] = self._count.get(number, 0) + 1
        try:
            with anyio.move_on_after(seconds):
                await event.wait()
            return event.is_set()
        finally:
            self._count[number] -= 1
            if not self._count[number]:
                del self._count[number]
                if self._waiting.get(number) is event:
                    del self._waiting[number]

    @property
    def waiting(self) -> int:
        """How many wait."""
        return sum(self._count.values())

    async def run(self) -> None:
        """Looks until it is cancelled."""
        while True:
            await anyio.sleep(LOOK_S)
            if self._waiting:
                asked = list(self._waiting)
                for number in await anyio.to_thread.run_sync(self._store.service.evaluations.ended, asked):
                    if (event := self._waiting.pop(number, None)) is not None:
                        event.set()
