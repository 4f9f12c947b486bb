"""How much another question about a problem is expected to gain, by what its attempts have reached so far."""

from __future__ import annotations

import math
from collections.abc import Sequence

RECENT = 8
"""Attempts whose gain is looked at."""
UNKNOWN_ROOM = math.log(2.0)
"""The room that is left where no roofline is known."""


def expected_gain(speedups: Sequence[float], roofline: float | None = None) -> float:
    """room x (1 + recent gain) / (1 + attempts). Infinite where nothing was tried.

    `speedups`: what each attempt surely reaches, in their order; 0 for what is not correct. `roofline`: the
    share of its roofline that the best reaches. Room and gain are logarithms: of what the roofline allows
    over the best, and of what the last `RECENT` attempts added to it.
    """
    if not speedups:
        return math.inf
    room = UNKNOWN_ROOM if not roofline else max(0.0, -math.log(roofline))
    before, now = max(speedups[:-RECENT], default=0.0), max(speedups)
    first = next((each for each in speedups if each > 0), 0.0)
    gained = math.log(now / (before or first)) if now > 0 else 0.0
    return room * (1.0 + gained) / (1 + len(speedups))
