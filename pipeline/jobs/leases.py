"""The leases of one command: kept alive while it works, waited for where another command holds them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from kernelproof.db.leases import LEASE_S, new_owner
from kernelproof.db.store import Store

RENEW_S = LEASE_S / 6
LOOK_S = 0.5
"""Seconds between two looks: is a lease free that a command waits for?"""

T = TypeVar("T")


class LeaseKeeper:
    """Renews what this command holds, and wakes its tasks when what another one held is free."""

    def __init__(self, store: Store) -> None:
        self.owner = new_owner()
        self._leases = store.leases
        self._waiting: dict[str, anyio.Event] = {}

    def start(self, group: TaskGroup) -> None:
        """Works in `group` until that is cancelled."""
        group.start_soon(self._renew)
        group.start_soon(self._look)

    async def hold(self, key: str, on_wait: Callable[[], None] = lambda: None) -> None:
        """Returns when this command holds a lease that belongs to no attempt. `on_wait`: another one does."""
        while not await in_thread(self._leases.take, self.owner, key):
            on_wait()
            await self.freed(key)

    async def freed(self, key: str) -> None:
        """Returns when no other live command holds the lease."""
        event = self._waiting.setdefault(key, anyio.Event())
        await event.wait()

    def close(self) -> None:
        """Gives back all that is held, as far as the database lets us."""
        with suppress(Exception):  # they end by themselves; nothing more important may be hidden by this
            self._leases.give_back(self.owner)

    async def _renew(self) -> None:
        while True:
            await anyio.sleep(RENEW_S)
            await anyio.to_thread.run_sync(self._leases.renew, self.owner)

    async def _look(self) -> None:
        while True:
            await anyio.sleep(LOOK_S)
            if not self._waiting:
                continue
            asked = set(self._waiting)
            held = await anyio.to_thread.run_sync(self._leases.held, asked, self.owner)
            for key in asked - held:
                self._waiting.pop(key).set()


async def in_thread(function: Callable[..., T], *arguments: object) -> T:
    """A call that waits for the database or the disk, outside of the event loop."""
    return await anyio.to_thread.run_sync(lambda: function(*arguments))
