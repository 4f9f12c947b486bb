"""How many questions a server may have at once: fewer after it said that it is busy, more as it answers.

Additive increase, multiplicative decrease, as TCP has it (Chiu and Jain 1989, "Analysis of the increase and
decrease algorithms for congestion avoidance in computer networks").
"""

from __future__ import annotations

import random
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

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


MAX_RETRY_AFTER_S = 120.0
"""The longest wait that a server may ask for; a server whose clock is wrong asks for hours."""
FIRST_BACKOFF_S, MAX_BACKOFF_S = 0.5, 60.0


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that a server asks to wait, between 0 and `MAX_RETRY_AFTER_S`; None where it says nothing.

    A date is held against the response's own Date header (RFC 9110, 10.2.3), because clocks differ.
    """
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) * unit
        except ValueError:
            continue
        if seconds == seconds:
            return min(max(seconds, 0.0), MAX_RETRY_AFTER_S)
    until = _date(headers.get("retry-after", ""))
    if until is None:
        return None
    now = _date(headers.get("date", "")) or datetime.now(UTC)
    return min(max((until - now).total_seconds(), 0.0), MAX_RETRY_AFTER_S)


def at(time_s: float) -> str:
    """A time, in seconds since 1970, by the clock of UTC: `14:02:11`; with its date if that is not today."""
    told = datetime.fromtimestamp(time_s, UTC)
    today = told.date() == datetime.now(UTC).date()
    return f"{told:%H:%M:%S}" if today else f"{told:%Y-%m-%d %H:%M:%S}"


def backoff(tries: int) -> float:
    """Seconds before the next try: doubled after each one, with jitter so that not all come at once."""
    full = min(MAX_BACKOFF_S, FIRST_BACKOFF_S * 2.0 ** min(tries, 20))
    return full * random.uniform(0.5, 1.0)


def _date(text: str) -> datetime | None:
    """A date of HTTP; one without a zone is in GMT."""
    try:
        found = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
