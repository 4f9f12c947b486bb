"""The metrics once more, from the papers' formulas, one plain loop each: the query layer must equal them.

pass@k: Chen et al. 2021, "Evaluating Large Language Models Trained on Code", equation 1. fast_p: Ouyang et
al. 2025, "KernelBench", section 3. Wilson's interval: Wilson 1927, "Probable inference", as usually written.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

JUDGES_NOTHING = ("provider_error", "infrastructure_error", "built_not_run")


@dataclass(frozen=True)
class Turn:
    """One attempt, as a test made it."""

    attempt: int
    problem: str
    sample: int
    turn: int
    status: str
    speedup: float | None = None
    low: float | None = None
    unresolved: bool = False

    @property
    def counted(self) -> float:
        """The speedup that rates and means take."""
        if self.speedup is None:
            return 0.0
        return min(self.speedup, 1.0) if self.unresolved else self.speedup

    @property
    def ranking(self) -> float:
        """What ranks."""
        if self.low is None:
            return 0.0
        return min(self.low, 1.0) if self.unresolved else self.low


def deciding(turns: list[Turn]) -> list[Turn]:
    """Of each sample the best correct turn, else the last one."""
    samples: dict[tuple[str, int], list[Turn]] = {}
    for turn in turns:
        samples.setdefault((turn.problem, turn.sample), []).append(turn)
    decided = []
    for group in samples.values():
        right = [turn for turn in group if turn.status == "correct"]
        if right:
            top = max(turn.ranking for turn in right)
            decided.append(max((t for t in right if t.ranking == top), key=lambda t: t.turn))
        else:
            decided.append(max(group, key=lambda t: t.turn))
    return decided


def by_problem(samples: list[Turn]) -> dict[str, list[Turn]]:
    """The judged samples of each problem."""
    found: dict[str, list[Turn]] = {}
    for sample in samples:
        if sample.status not in JUDGES_NOTHING:
            found.setdefault(sample.problem, []).append(sample)
    return found


def pass_at_k(samples: list[Turn], k: int) -> float | None:
    """The mean over problems with at least k samples of 1 - C(n - c, k) / C(n, k)."""
    chances = []
    for group in by_problem(samples).values():
        n, c = len(group), sum(sample.status == "correct" for sample in group)
        if n >= k:
            chances.append(1 - Fraction(math.comb(n - c, k), math.comb(n, k)))
    return float(sum(chances) / len(chances)) if chances else None


def fast_p(samples: list[Turn], p: float) -> Fraction:
    """1 / N times the number of samples that are correct with a speedup above p."""
    judged = [sample for group in by_problem(samples).values() for sample in group]
    return Fraction(sum(s.status == "correct" and s.counted > p for s in judged), len(judged))


def best_speedups(samples: list[Turn]) -> list[float]:
    """The counted speedup of the best of each solved and measured problem."""
    found = []
    for group in by_problem(samples).values():
        measured = [s for s in group if s.status == "correct" and s.speedup is not None]
        if measured:
            top = max(s.ranking for s in measured)
            found.append(min((s for s in measured if s.ranking == top), key=lambda s: s.attempt).counted)
    return found


def geometric_mean(speedups: list[float]) -> float | None:
    """The n-th root of the product."""
    return math.prod(speedups) ** (1 / len(speedups)) if speedups else None


def median(speedups: list[float]) -> float | None:
    """The middle one."""
    return statistics.median(speedups) if speedups else None


def wilson(part: int, whole: int) -> tuple[float, float]:
    """The rates whose distance from the one seen is 1.96 of their own standard errors: by bisection."""
    z, seen = 1.959963984540054, part / whole

    def excess(rate: float) -> float:
        return (seen - rate) ** 2 - z * z * rate * (1 - rate) / whole

    def root(inside: float, outside: float) -> float:
        for _ in range(200):
            middle = (inside + outside) / 2
            inside, outside = (middle, outside) if excess(middle) <= 0 else (inside, middle)
        return inside

    return root(seen, 0.0) if part else 0.0, root(seen, 1.0) if part < whole else 1.0


def signed_rank(differences: list[float]) -> float:
    """Wilcoxon's two-sided p-value by trying all signs."""
    found = [d for d in differences if d]
    sizes = sorted(abs(d) for d in found)

    def rank(size: float) -> float:
        places = [i + 1 for i, other in enumerate(sizes) if other == size]
        return sum(places) / len(places)

    ranks = [rank(abs(d)) for d in found]
    half = sum(ranks) / 2
    seen = abs(sum(r for r, d in zip(ranks, found, strict=True) if d > 0) - half)
    sums = [
        sum(r for r, sign in zip(ranks, signs, strict=True) if sign)
        for signs in product((False, True), repeat=len(ranks))
    ]
    return sum(abs(each - half) >= seen - 1e-9 for each in sums) / len(sums)
