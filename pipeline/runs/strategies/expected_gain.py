"""The expected gain of another question about a problem, by the speedups of its attempts so far."""

from __future__ import annotations

import math
from collections.abc import Sequence

RECENT = 8
"""Attempts whose gain is looked at."""
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
