"""Statistics of a measurement: medians, slopes, and bootstrap intervals."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from statistics import fmean, median

import numpy as np

from pipeline.nouns import Interval, Pace

RESAMPLES = 1000
CONFIDENCE = 0.95
CLAIM_FLOOR = 0.01
"""No difference below 1 % is claimed, however quiet the machine seems."""
CLAIM_SPREADS = 3
"""No difference below so many times the spread of A against A is claimed."""
SAME_WITHIN = 0.05
"""Beyond 5 % nothing is called the same, however little the machine can tell apart: it is unresolved."""

_MOST = 700.0
"""Beyond this exp has no float: the interval of times that are nearly nothing is as wide as all."""


def bootstrap_median(values: Sequence[float], *, seed: int = 0) -> Interval:
    """95 % percentile-bootstrap interval of the median (Efron 1979). One value gives a point.

    The resampling's seed is fixed: the same samples always give the same interval.
    """
    medians = _resampled_medians(values, seed)
    low, high = np.quantile(medians, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Interval(low=float(low), high=float(high))


def sureness(count: int) -> float:
    """Standard errors beyond which a median of `count` equal values lies in less than 1 % of the cases.

    2.58 for many values. Few know their own spread badly: simulated for differences of two medians of normal,
    Student's t and log-normal values, 4 to 24 of each.
    """
    return float(2.58 + 26 / count**1.2)


def likelihood(count: int) -> float:
    """The same for 2 to 4 % of the cases."""
    return float(1.7 + 16 / count**1.2)


def sure_median(values: Sequence[float], errors: Callable[[int], float] = sureness) -> Interval:
    """Where the median surely lies, about 99 %: estimate and robust standard errors either side.

    The standard error of a median is 1.2533 sigma / sqrt(n), with sigma = 1.4826 times the median absolute
    deviation: neither outliers nor a minority of other values move it. `errors` says how many of them.
    """
    middle = median(values)
    reach = errors(len(values)) * _error_of_median([v - middle for v in values], len(values))
    return Interval(low=middle - reach, high=middle + reach)


def two_level_slope(
    samples: Sequence[tuple[int, float]], errors: Callable[[int], float] = sureness
) -> tuple[float, Interval]:
    """What one more call adds, from totals over blocks of `count` calls: estimate, and where it surely lies.

    `samples`: (count, total). The difference of the medians of the largest and the smallest count, over the
    difference of the counts: what a block costs besides its calls falls out. With a single count nothing
    falls out: the median total over the count.
    """
    counts = sorted({count for count, _ in samples})
    few, many = counts[0], counts[-1]
    high = [total for count, total in samples if count == many]
    if few == many:
        sure = sure_median(high, errors)
        return median(high) / many, Interval(low=sure.low / many, high=sure.high / many)
    low = [total for count, total in samples if count == few]
    above, below, calls = median(high), median(low), many - few
    rest = [v - above for v in high] + [v - below for v in low]
    fewest = min(len(high), len(low))
    error = math.hypot(_error_of_median(rest, len(high)), _error_of_median(rest, len(low)))
    slope, reach = (above - below) / calls, errors(fewest) * error / calls
    return slope, Interval(low=slope - reach, high=slope + reach)


def mean_of(found: Iterable[tuple[float, Interval]]) -> tuple[float, Interval]:
    """The mean of independent estimates, and where it lies by their intervals in quadrature."""
    estimates, intervals = zip(*found, strict=True)
    middle = fmean(estimates)
    below = math.hypot(*(e - i.low for e, i in zip(estimates, intervals, strict=True))) / len(estimates)
    above = math.hypot(*(i.high - e for e, i in zip(estimates, intervals, strict=True))) / len(estimates)
    return middle, Interval(low=middle - below, high=middle + above)


def _error_of_median(deviations: Sequence[float], count: int) -> float:
    """Standard error of the median of `count` values that deviate so."""
    return 1.2533 * 1.4826 * median(map(abs, deviations)) / math.sqrt(count)


def _resampled_medians(values: Sequence[float], seed: int) -> np.ndarray:
    source = np.random.default_rng(seed)
    picks = source.integers(0, len(values), size=(RESAMPLES, len(values)))
    medians: np.ndarray = np.median(np.asarray(values, dtype=float)[picks], axis=1)
    return medians


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


def resolution(*spreads: float) -> float:
    """Smallest relative difference that is claimed: max(1 %, 3 times every A/A spread)."""
    return max(CLAIM_FLOOR, *(CLAIM_SPREADS * spread for spread in spreads))


def pace(interval: Interval, smallest: float) -> Pace:
    """What an interval of the speedup allows to say, when differences below `smallest` are not claimed."""
    if interval.low > 1 + smallest:
        return Pace.FASTER
    if interval.high < 1 / (1 + smallest):
        return Pace.SLOWER
    near = min(smallest, SAME_WITHIN)
    inside = interval.low >= 1 / (1 + near) and interval.high <= 1 + near
    return Pace.SAME if inside else Pace.UNRESOLVED
