"""How many questions a server may have at once: fewer after it said that it is busy, more as it answers.

Additive increase, multiplicative decrease, as TCP has it (Chiu and Jain 1989, "Analysis of the increase and
decrease algorithms for congestion avoidance in computer networks").
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio


class AdaptiveLimit:
    """Places at a server. For one event loop.

    Questions stand in line, and only the first in line looks for a place. So none is told of a place and
    then lost: whenever the first one takes its place or gives up, the next one looks for itself. One starts
    in each turn of the event loop: two thousand requests made in one would stop everything else for seconds.
    """

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._clock = most, clock
        self._allowed = float(most)
        self._used = 0
        self._paused_until = 0.0
        self._lowered = -1.0
        self._first_in_line = anyio.Lock()
        self._more = anyio.Event()
        """Set when there may be a free place."""

    @property
    def most(self) -> int:
        """Questions that the user allows at once."""
        return self._most

    @property
    def allowed(self) -> int:
        """Questions that may be at the server now, from 1 to what the user allows."""
        return max(1, int(self._allowed))

    @property
    def used(self) -> int:
        """Questions that are at the server now."""
        return self._used

    @property
    def is_full(self) -> bool:
        """Whether a question has to wait for its place."""
        return self._used >= self.allowed or self._clock() < self._paused_until

    @asynccontextmanager
    async def place(self) -> AsyncIterator[float]:
        """Waits for a place, and gives it back at the end. Yields when it was taken, by the clock."""
        async with self._first_in_line:
            await self._free()
            self._used += 1
        try:
            yield self._clock()
        finally:
            self._used -= 1
            self._more.set()

    def answered(self) -> None:
        """A question was answered: one more place for as many answers as there are places."""
        self._allowed = min(float(self._most), self._allowed + 1 / max(1.0, self._allowed))
        self._more.set()

    def busy(self, sent_at: float, pause_s: float) -> None:
        """The server said that it is busy (429) to a question whose place was taken at `sent_at`.

        Nothing is sent for `pause_s` seconds. Half of the places go, once for all questions that were on
        their way when the server first said so.
        """
        now = self._clock()
        self._paused_until = max(self._paused_until, now + pause_s)
        if sent_at > self._lowered:
            self._allowed = max(1.0, self._allowed / 2)
            self._lowered = now

    async def _free(self) -> None:
        """Returns when a place is free and no pause holds."""
        while True:
            pause = self._paused_until - self._clock()
            if pause > 0:
                await anyio.sleep(pause)
            elif self._used < self.allowed:
                return
            else:
                self._more = anyio.Event()
                await self._more.wait()
