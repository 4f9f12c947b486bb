"""Schedules samples by what another question is expected to gain.

All samples are at work at once. Before each round that asks something a sample waits for a place here, and a
place goes to the sample with the highest expected gain. Rounds whose results are stored need none, so that a
batch that goes on has replayed them before anything is asked.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio

RECENT = 8
UNKNOWN_ROOM = math.log(2.0)
"""The room that is left where no roofline is known."""


def expected_gain(speedups: Sequence[float], roofline: float | None = None) -> float:
    """room x (1 + recent gain) / (1 + attempts). Infinite where nothing was tried.

    `speedups`: the speedup that each attempt surely reaches, in their order; 0 where it is not correct.
    `roofline`: the share of its roofline that the best reaches. Room and gain are logarithms: of the factor
    between the best and the roofline, and of the factor that the last `RECENT` attempts added.
    """
    if not speedups:
        return math.inf
    room = UNKNOWN_ROOM if not roofline else max(0.0, -math.log(roofline))
    before, now = max(speedups[:-RECENT], default=0.0), max(speedups)
    first = next((each for each in speedups if each > 0), 0.0)
    gained = math.log(now / (before or first)) if now > 0 else 0.0
    return room * (1.0 + gained) / (1 + len(speedups))


@dataclass(frozen=True)
class _Waiting:
    gain: float
    order: int
    go: anyio.Event = field(default_factory=anyio.Event)


class GainScheduler:
    """Grants places to samples, once every expected sample waits for one, holds one, or has left."""

    def __init__(self, places: int) -> None:
        """`places`: rounds that may be at work at the same time."""
        self._free = places
        self._busy: set[object] = set()
        self._waiting: dict[object, _Waiting] = {}
        self._order: dict[object, int] = {}

    def expect(self, sample: object) -> None:
        """A sample begins: no place is given before the sample waits for one, or leaves."""
        self._order.setdefault(sample, len(self._order))
        self._busy.add(sample)

    def leave(self, sample: object) -> None:
        """A sample asks nothing more."""
        self._busy.discard(sample)
        self._grant()

    @asynccontextmanager
    async def place(self, sample: object, gain: float) -> AsyncIterator[None]:
        """Waits for a place and holds it inside. `gain`: the expected gain of another round."""
        waiting = self._waiting[sample] = _Waiting(gain, self._order[sample])
        self._busy.discard(sample)
        self._grant()
        try:
            await waiting.go.wait()
        except BaseException:
            self._free += waiting.go.is_set()
            self._waiting.pop(sample, None)
            raise
        try:
            yield
        finally:
            self._free += 1
            self._busy.add(sample)

    def _grant(self) -> None:
        while self._waiting and self._free and not self._busy:
            # Of equal ones the first, however they came: so it is the same one after an interruption.
            sample, best = max(self._waiting.items(), key=lambda one: (one[1].gain, -one[1].order))
            del self._waiting[sample]
            self._free -= 1
            best.go.set()
