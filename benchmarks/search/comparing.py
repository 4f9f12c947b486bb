"""Strategies compared on the same seeds: geometric means, and log-ratios with bootstrap intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from benchmarks.search.landscapes import drawn
from benchmarks.search.searching import Search
from kernelproof.types import Status

RESAMPLES = 4_000


def marks(budget: int) -> tuple[int, ...]:
    """The numbers of questions at which a curve is shown: 1, 2, 4 ... and the budget."""
    return tuple(sorted({2**n for n in range(budget.bit_length()) if 2**n < budget} | {budget}))


@dataclass(frozen=True)
class Record:
    """One search, in figures."""

    landscape: str
    strategy: str
    seed: int
    gain: float
    """The true speedup of the winner; 1 where nothing was measured to be faster than the reference."""
    best: float
    """The landscape's largest speedup."""
    claimed: float
    """The measured speedup of the winner; 0 where nothing was correct."""
    curve: tuple[float, ...]
    """The gain after 1, 2, 4 ... questions."""
    questions: int
    correct: int
    """Questions whose program was correct."""
    tokens: int
    samples: int
    ended: int | None
    """Questions after which the first sample ended by itself."""

    @property
    def row(self) -> dict[str, Any]:
        """For a line of JSON."""
        return asdict(self)


def record(landscape: str, strategy: str, seed: int, found: Search, budget: int) -> Record:
    """The figures of one search."""
    shape = drawn(landscape, seed)
    return Record(
        landscape=landscape,
        strategy=strategy,
        seed=seed,
        gain=found.gain(),
        best=max(1.0, shape.speedup(shape.best)),
        claimed=max((each.claimed for each in found.tries), default=0.0),
        curve=tuple(found.gain(mark) for mark in marks(budget)),
        questions=len(found.tries),
        correct=sum(each.status is Status.CORRECT for each in found.tries),
        tokens=found.tokens,
        samples=found.tries[-1].sample + 1 if found.tries else 0,
        ended=found.ended,
    )


@dataclass(frozen=True)
class Ratio:
    """The gain of one strategy over another's, on the same seeds."""

    ratio: float
    """Geometric mean."""
    low: float
    high: float
    """The 95 % interval of the mean, by bootstrap over seeds."""
    won: int
    lost: int
    """Seeds on which it was at least 0.1 % faster, or slower."""

    @property
    def verdict(self) -> str:
        """`better` or `worse` where the interval excludes 1."""
        if self.low > 1:
            return "better"
        return "worse" if self.high < 1 else ""

    def __str__(self) -> str:
        sign = {"better": "+", "worse": "-", "": " "}[self.verdict]
        return f"{self.ratio:.3f} [{self.low:.3f}, {self.high:.3f}] {sign}"


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> Ratio:
    """Compares gains that are paired by seed. Raises ValueError when there are none, or not as many."""
    if not ours:
        raise ValueError("no seed, no comparison")
    logs = np.array([math.log(one / other) for one, other in zip(ours, theirs, strict=True)])
    drawn_means = np.random.default_rng(0).choice(logs, (RESAMPLES, len(logs))).mean(axis=1)
    low, high = np.quantile(drawn_means, (0.025, 0.975))
    return Ratio(
        ratio=math.exp(float(logs.mean())),
        low=math.exp(float(low)),
        high=math.exp(float(high)),
        won=int((logs > 0.001).sum()),
        lost=int((logs < -0.001).sum()),
    )


def mean(values: Sequence[float]) -> float:
    """The geometric mean. Raises ValueError for no values."""
    if not values:
        raise ValueError("the mean of nothing")
    return math.exp(sum(map(math.log, values)) / len(values))


class Table:
    """The records of a comparison, by landscape and strategy, each list in the order of the seeds."""

    def __init__(self, records: Sequence[Record]) -> None:
        self._records: dict[tuple[str, str], list[Record]] = {}
        for each in sorted(records, key=lambda each: each.seed):
            self._records.setdefault((each.landscape, each.strategy), []).append(each)
        self.landscapes = tuple(dict.fromkeys(each.landscape for each in records))
        self.strategies = tuple(dict.fromkeys(each.strategy for each in records))

    def of(self, landscape: str, strategy: str) -> list[Record]:
        """The records of one landscape and one strategy."""
        return self._records[landscape, strategy]

    def all_of(self, strategy: str) -> list[Record]:
        """The records of one strategy."""
        return [each for name in self.landscapes for each in self.of(name, strategy)]

    def ratio(self, landscape: str, strategy: str, against: str) -> Ratio:
        """One strategy against another on one landscape."""
        ours, theirs = self.of(landscape, strategy), self.of(landscape, against)
        return ratio([each.gain for each in ours], [each.gain for each in theirs])

    def overall(self, strategy: str, against: str) -> Ratio:
        """One strategy against another: for each seed the geometric mean over the landscapes."""
        ours, theirs = (self._by_seed(name, lambda each: each.gain) for name in (strategy, against))
        return ratio(ours, theirs)

    def gain(self, strategy: str, mark: int) -> Ratio:
        """The gain after the number of questions that stands at this place of `marks`, over the reference."""
        means = self._by_seed(strategy, lambda each: each.curve[mark])
        return ratio(means, [1.0] * len(means))

    def _by_seed(self, strategy: str, figure: Callable[[Record], float]) -> list[float]:
        columns = zip(*(self.of(name, strategy) for name in self.landscapes), strict=True)
        return [mean([figure(each) for each in column]) for column in columns]
