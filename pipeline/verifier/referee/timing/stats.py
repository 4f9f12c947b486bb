"""Statistics of a measurement: medians, order statistics, and bootstrap intervals."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import median

import numpy as np

from kernelproof.types import Interval

RESAMPLES = 1000
CONFIDENCE = 0.95

_MOST = 700.0
"""Beyond this exp has no float: the interval of times that are nearly nothing is as wide as all."""


def bootstrap_median(values: Sequence[float]) -> Interval:
    """95 % percentile-bootstrap interval of the median (Efron 1979). One value gives a point.

    The resampling's seed is fixed: the same samples always give the same interval.
    """
    return _bootstrap_median(tuple(values))


@lru_cache(maxsize=16)  # a stopping rule looks at the same rounds in several ways
def _bootstrap_median(values: tuple[float, ...]) -> Interval:
    picks = np.random.default_rng(0).integers(0, len(values), size=(RESAMPLES, len(values)))
    medians = np.median(np.asarray(values, dtype=float)[picks], axis=1)
    low, high = np.quantile(medians, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Interval(low=float(low), high=float(high))


@lru_cache(maxsize=1024)
def sure_rank(count: int, risk: float) -> int:
    """The greatest k for which fewer than k heads in `count` throws of a fair coin have a chance of at most
    `risk`; 0 where not even no heads at all are that unlikely.

    The k-th smallest of `count` independent values is above their common median with that chance.
    """
    chance, rank = 0.5**count, 0
    while rank < count and chance <= risk:
        rank += 1
        chance += math.comb(count, rank) * 0.5**count
    return rank


def sure_low(values: Sequence[float] | np.ndarray, risk: float) -> float:
    """A lower bound of the median of independent values: an order statistic. The median lies below it with a
    chance of at most `risk`, for any distribution. For too few values it is the smallest, with a chance of
    2^-n."""
    ordered = sorted(map(float, values))
    rank = sure_rank(len(ordered), risk)
    return ordered[max(0, rank - 1)]


@lru_cache(maxsize=256)
def signed_rank(count: int, risk: float) -> int:
    """The greatest k for which Wilcoxon's signed-rank sum of `count` values, symmetric about zero, is below k
    with a chance of at most `risk`; 0 where there is none. By the exact distribution of the sum.

    The k-th smallest of their Walsh averages (of every pair, and of each with itself) is above the centre of
    symmetry with that chance. Hollander and Wolfe, Nonparametric Statistical Methods, 1973, 3.3.
    """
    chances = np.ones(1)
    for rank in range(1, count + 1):
        grown = np.zeros(len(chances) + rank)
        grown[: len(chances)] += chances / 2
        grown[rank:] += chances / 2
        chances = grown
    return int(np.searchsorted(np.cumsum(chances), risk, side="right"))


def sure_centre(values: Sequence[float], risk: float) -> Interval:
    """Bounds of the centre of independent, symmetric values. The centre lies beyond each with a chance of at
    most `risk`.

    Each is the nearer of two bounds with half of the risk: an order statistic, which no outlier moves, and
    that of the Walsh averages, which is narrower without outliers.
    """
    found = np.asarray(values, dtype=float)
    low, high = sure_low(values, risk / 2), -sure_low(-found, risk / 2)
    if rank := signed_rank(len(found), risk / 2):
        walsh = np.sort((found[:, None] + found[None, :])[np.triu_indices(len(found))] / 2)
        low, high = max(low, float(walsh[rank - 1])), min(high, float(walsh[-rank]))
    return Interval(low=low, high=high)


def deviation(values: Sequence[float]) -> float:
    """The standard deviation of normal values with this median absolute deviation."""
    middle = median(values)
    return 1.4826 * median(abs(value - middle) for value in values)


def widened(interval: Interval, centre: float, spread: float) -> Interval:
    """The interval with an independent uncertainty added in quadrature on either side of `centre`."""
    return Interval(
        low=centre - math.hypot(centre - interval.low, spread),
        high=centre + math.hypot(interval.high - centre, spread),
    )


def exponential(interval: Interval) -> Interval:
    """The interval of exp(x) for an interval of x: from log-ratios to ratios, which stay finite."""
    low, high = (math.exp(max(-_MOST, min(_MOST, end))) for end in (interval.low, interval.high))
    return Interval(low=low, high=high)


def half_width(interval: Interval) -> float:
    """Half the width of an interval of log-ratios: about a relative error, either side."""
    return (interval.high - interval.low) / 2


def aa_spread(blocks: Sequence[tuple[int, float]]) -> float:
    """How far baseline blocks are from their own neighbours: the noise of A against A, as a fraction.

    `blocks`: (calls, log of the time). Half-width of the bootstrap interval of the median of
    log(b[i+1] / b[i]) over consecutive blocks of as many calls: others differ by more than noise.
    """
    steps = [
        later - earlier
        for count in {calls for calls, _ in blocks}
        for earlier, later in itertools.pairwise(log for calls, log in blocks if calls == count)
    ]
    return half_width(bootstrap_median(steps)) if len(steps) > 1 else math.inf
