"""The verdict of a timing: faster, slower, the same, or unresolved, and why.

`pace_of` decides it from the interval of the speedup. `claim.conclude` computes that interval, asks here, and
makes unresolved what the rounds give reason to doubt.
"""

from __future__ import annotations

import math

from kernelproof.types import Interval, Pace

CLAIM_FLOOR = 0.01
"""No difference below 1 % is claimed, however quiet the machine seems."""
CLAIM_SPREADS = 3
"""No difference below so many times the spread of A against A is claimed."""
SAME_WITHIN = 0.05
"""Beyond 5 % nothing is called the same, however little the machine can tell apart: it is unresolved, or
slower."""


def resolution(*spreads: float) -> float:
    """Smallest relative difference that is claimed: max(1 %, 3 times every A/A spread)."""
    return max(CLAIM_FLOOR, *(CLAIM_SPREADS * spread for spread in spreads))


def pace_of(interval: Interval, smallest: float, highest: float | None = None) -> Pace:
    """What an interval of the speedup allows to say. `smallest`: the resolution, a fraction. `highest`: the
    upper end by either clock; the interval's where that is None.

    What neither clock shows as fast as what may be `same` is `slower`, however great the A/A spread is: that
    earns nothing, so the promise of the intervals is enough. All else has to exceed the A/A spread.
    """
    if interval.low > 1 + smallest:
        return Pace.FASTER
    if interval.high < 1 / (1 + smallest) or surely_slower(highest or interval.high, smallest):
        return Pace.SLOWER
    near = min(smallest, SAME_WITHIN)
    inside = interval.low >= 1 / (1 + near) and interval.high <= 1 + near
    return Pace.SAME if inside else Pace.UNRESOLVED


def surely_slower(highest: float, smallest: float) -> bool:
    """Whether a speedup of at most `highest` is below 1 and all that may be `same`."""
    return highest < 1 / (1 + min(smallest, SAME_WITHIN))


def unresolved_because(interval: Interval, smallest: float, highest: float | None = None) -> str:
    """Why `pace_of` calls this interval unresolved; empty where it does not."""
    if pace_of(interval, smallest, highest) is not Pace.UNRESOLVED:
        return ""
    if interval.low <= 1 <= interval.high:
        return "its interval holds 1"
    if math.isinf(smallest):
        return "there are too few rounds to know the A/A spread"
    claimed = smallest
    if interval.high < 1 and not surely_slower(interval.high, smallest):
        claimed = min(smallest, SAME_WITHIN)
    why = f": the A/A spread is {100 * smallest / CLAIM_SPREADS:.3g} %" if smallest > CLAIM_FLOOR else ""
    return f"no difference below {100 * claimed:.3g} % is claimed{why}"
