"""Statistics of a measurement: medians and bootstrap intervals, without torch or numpy."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence
from statistics import median

from pipeline.nouns import Interval, Pace

RESAMPLES = 1000
CONFIDENCE = 0.95
CLAIM_FLOOR = 0.01
"""No difference below 1 % is claimed, however quiet the machine seems."""
SAME_WITHIN = 0.05
"""Beyond 5 % nothing is called the same, however little the machine can tell apart: it is unresolved."""


def bootstrap_median(values: Sequence[float], *, seed: int = 0) -> Interval:
    """95 % percentile-bootstrap interval of the median (Efron 1979). One value gives a point.

    The resampling's seed is fixed: the same samples always give the same interval.
    """
    if len(values) < 2:
        return Interval(low=values[0], high=values[0])
    source = random.Random(seed)
    medians = sorted(median(source.choices(values, k=len(values))) for _ in range(RESAMPLES))
    edge = (1 - CONFIDENCE) / 2
    low = medians[math.floor(edge * (RESAMPLES - 1))]
    high = medians[math.ceil((1 - edge) * (RESAMPLES - 1))]
    return Interval(low=low, high=high)


def exponential(interval: Interval) -> Interval:
    """The interval of exp(x) for an interval of x: from log-ratios to ratios."""
    return Interval(low=math.exp(interval.low), high=math.exp(interval.high))


def half_width(interval: Interval) -> float:
    """Half the width of an interval of log-ratios: about a relative error, either side."""
    return (interval.high - interval.low) / 2


def aa_spread(log_times: Sequence[float]) -> float:
    """How far baseline blocks are from their own neighbours: the noise of A against A, as a fraction.

    Half-width of the bootstrap interval of the median of log(b[i+1] / b[i]) over consecutive blocks.
    """
    steps = [later - earlier for earlier, later in itertools.pairwise(log_times)]
    return half_width(bootstrap_median(steps)) if len(steps) > 1 else math.inf


def resolution(spread: float) -> float:
    """Smallest relative difference that is claimed: max(1 %, 3 times the A/A spread)."""
    return max(CLAIM_FLOOR, 3 * spread)


def pace(interval: Interval, smallest: float) -> Pace:
    """What an interval of the speedup allows to say, when differences below `smallest` are not claimed."""
    if interval.low > 1 + smallest:
        return Pace.FASTER
    if interval.high < 1 / (1 + smallest):
        return Pace.SLOWER
    near = min(smallest, SAME_WITHIN)
    inside = interval.low >= 1 / (1 + near) and interval.high <= 1 + near
    return Pace.SAME if inside else Pace.UNRESOLVED
