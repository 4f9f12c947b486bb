"""Rates, means and tests, with their intervals. Every formula says where it is from."""

from __future__ import annotations

from functools import lru_cache
from math import comb, erfc, sqrt

import numpy as np

from kernelproof.db.scores.packing import Floats
from kernelproof.types import Interval

Z = 1.959963984540054
"""The normal distribution's 97.5 % quantile."""
RESAMPLES = 1000
_SEED = 20250101
"""Of the bootstrap: the same data give the same interval."""


def wilson(part: int, whole: int) -> Interval | None:
    """The score interval of a rate at 95 % (Wilson 1927); None for a whole of 0."""
    if not whole:
        return None
    rate, n = part / whole, whole
    middle = (rate + Z * Z / (2 * n)) / (1 + Z * Z / n)
    half = Z / (1 + Z * Z / n) * sqrt(rate * (1 - rate) / n + Z * Z / (4 * n * n))
    low, high = max(0.0, middle - half), min(1.0, middle + half)
    return Interval(low=0.0 if part == 0 else low, high=1.0 if part == whole else high)


def pass_at_k(judged: Floats, correct: Floats, k: int) -> Floats:
    """For each problem the unbiased estimate of pass@k, 1 - C(n-c, k) / C(n, k) (Chen et al. 2021, eq. 1).

    `judged`: n samples, of which `correct` c are correct; n is at least k.
    """
    missed = np.ones(len(judged))
    for step in range(k):  # C(n-c, k) / C(n, k) is the product of (n-c-i) / (n-i)
        missed *= np.maximum(judged - correct - step, 0.0) / (judged - step)
    return 1.0 - missed


@lru_cache(maxsize=64)
def _weights(count: int) -> Floats:
    """How often each of `count` problems is drawn in each resample: RESAMPLES rows, fewer for very many."""
    rows = max(100, min(RESAMPLES, 20_000_000 // count))
    drawn = np.random.default_rng(_SEED).integers(0, count, (rows, count))
    places = drawn + np.arange(rows)[:, None] * count
    return np.bincount(places.ravel(), minlength=rows * count).reshape(rows, count).astype(np.float64)


def _percentiles(values: Floats) -> Interval | None:
    known = values[np.isfinite(values)]
    if len(known) < len(values) * 0.95:
        return None
    low, high = np.percentile(known, (2.5, 97.5))
    return Interval(low=float(low), high=float(high))


def mean_interval(values: Floats) -> Interval | None:
    """The percentile bootstrap interval of a mean at 95 % (Efron 1979), drawing values again."""
    if len(values) < 2:
        return None
    return _percentiles(_weights(len(values)) @ values / len(values))


def ratio_interval(over: Floats, under: Floats) -> Interval | None:
    """The same of sum(over) / sum(under), drawing pairs again; None where sums of 0 are too frequent."""
    if len(over) < 2:
        return None
    weights = _weights(len(over))
    with np.errstate(divide="ignore", invalid="ignore"):
        return _percentiles((weights @ over) / (weights @ under))


def median_interval(values: Floats) -> Interval | None:
    """Order statistics between which the median lies with at least 95 %, whatever the distribution; None for
    fewer than six values (Conover, Practical Nonparametric Statistics, section 3.2)."""
    n = len(values)
    if n < 6:
        return None
    if n > 1000:
        below = int(n / 2 - Z * sqrt(n) / 2)
    else:
        below, tail = -1, 0.0
        while tail + comb(n, below + 1) / 2**n <= 0.025:
            below += 1
            tail += comb(n, below) / 2**n
    ordered = np.sort(values)
    return Interval(low=float(ordered[max(below, 0)]), high=float(ordered[n - 1 - max(below, 0)]))


def sign_test(wins: int, losses: int) -> float:
    """The two-sided exact p-value of the sign test; with one sample a problem it is McNemar's exact test.

    How likely so uneven a split is where both sides are alike. Ties are left out.
    """
    n = wins + losses
    tail = sum(comb(n, i) for i in range(min(wins, losses) + 1)) * 2
    return min(1.0, tail / 2**n) if n else 1.0


def signed_rank_test(differences: Floats) -> float:
    """The two-sided p-value of Wilcoxon's signed-rank test (1945); differences of 0 are left out.

    Exact up to 25 pairs, ties included: all signs are tried by adding up ranks. Above that the normal
    approximation with the correction for ties.
    """
    found = differences[differences != 0]
    n = len(found)
    if n == 0:
        return 1.0
    sizes = np.abs(found)
    _, where, counts = np.unique(sizes, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[where]
    plus, total = float(ranks[found > 0].sum()), n * (n + 1) / 2
    if n > 25:
        spread = sqrt(n * (n + 1) * (2 * n + 1) / 24 - float((counts**3 - counts).sum()) / 48)
        return float(erfc(max(0.0, abs(plus - total / 2) - 0.5) / spread / sqrt(2)))
    ways = np.zeros(int(2 * total) + 1)
    ways[0] = 1.0
    for rank in np.rint(2 * ranks).astype(int):  # twice, as ranks of ties are halves
        ways[rank:] += ways[: len(ways) - rank].copy()
    smaller = round(2 * min(plus, total - plus))
    tail = float(ways[: smaller + 1].sum()) / 2**n
    return 2 * tail if tail < 0.5 else 1.0
