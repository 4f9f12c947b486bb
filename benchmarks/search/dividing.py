"""Questions divided over problems, equally or by expected gain: ``python -m benchmarks.search.dividing``.

All landscapes of one seed are one suite. Each is searched by itself, longer than its share. A division then
says how far each search would have come. With `known` each landscape's best is taken for its roofline.
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections.abc import Sequence

from benchmarks.evidence import table
from benchmarks.search.comparing import Ratio, mean, ratio
from benchmarks.search.landscapes import LANDSCAPES, drawn
from benchmarks.search.proposer import MODELS, Model
from benchmarks.search.searching import Budget, Search, search
from kernelproof.runs.gain_scheduler import expected_gain
from kernelproof.runs.strategies import find_strategy

LONGER = 4
"""A search may get so many times its equal share."""


def suite(strategy: str, model: Model, seed: int, share: int) -> list[tuple[Search, float]]:
    """The search of each landscape, and the landscape's largest speedup."""
    made = []
    for name in LANDSCAPES:
        shape = drawn(name, seed)
        found = search(find_strategy(strategy), name, model, seed, Budget(LONGER * share))
        made.append((found, shape.speedup(shape.best)))
    return made


def by_gain(searches: Sequence[tuple[Search, float]], questions: int, *, known: bool) -> list[int]:
    """How many of all questions each search gets."""
    counts = [0] * len(searches)

    def gain(number: int) -> float:
        found, best = searches[number]
        if counts[number] == len(found.tries):
            return -math.inf
        reached = [each.claimed for each in found.tries[: counts[number]]]
        share = max(reached, default=0.0) / best if known and any(reached) else None
        return expected_gain(reached, share)

    for _ in range(questions):
        counts[max(range(len(searches)), key=gain)] += 1
    return counts


def compared(
    suites: Sequence[Sequence[tuple[Search, float]]], share: int, *, known: bool
) -> tuple[Ratio, str]:
    """The geometric mean of a suite's gains, by expected gain over equally divided; and the questions."""
    ours, theirs, spread = [], [], list[int]()
    for searches in suites:
        counts = by_gain(searches, share * len(searches), known=known)
        ours.append(mean([found.gain(count) for (found, _), count in zip(searches, counts, strict=True)]))
        theirs.append(mean([found.gain(share) for found, _ in searches]))
        spread += counts
    return ratio(ours, theirs), f"{min(spread)} to {max(spread)}"


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search.dividing", description=__doc__)
    parser.add_argument("--strategies", nargs="+", default=["refine", "beam"], metavar="NAME")
    parser.add_argument("--models", nargs="+", default=[*MODELS], choices=[*MODELS])
    parser.add_argument(
        "--share", nargs="+", type=int, default=[8, 32], help="questions of a landscape, equally"
    )
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--first-seed", type=int, default=0)
    options = parser.parse_args()
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    rows = []
    for model, strategy, share in itertools.product(options.models, options.strategies, options.share):
        suites = [suite(strategy, MODELS[model], seed, share) for seed in seeds]
        for known in (False, True):
            found, spread = compared(suites, share, known=known)
            rows.append((model, strategy, share, "known" if known else "", str(found), spread))
    print("Gain of a suite, divided by expected gain over divided equally, 95 % interval over suites")
    print(table(("model", "strategy", "share", "roofline", "by gain / equally", "questions each"), rows))


if __name__ == "__main__":
    main()
