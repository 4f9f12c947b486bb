"""Racing on landscapes: what its seconds and figures are made of."""

from __future__ import annotations

import math

import pytest

from benchmarks.search.racing import raced
from benchmarks.search.timing import CORES, H200, MACHINES, Machine, Stopwatch
from benchmarks.search.verdicts import problem
from kernelproof.choices import Rigor


@pytest.mark.parametrize("machine", MACHINES.values(), ids=list(MACHINES))
def test_more_rigor_takes_longer_and_comes_nearer(machine: Machine) -> None:
    watch = Stopwatch(problem("smooth", 1), machine)
    off, spent = {}, {}
    for rigor in Rigor:
        timed = [watch.time(2.0, str(number), rigor) for number in range(60)]
        off[rigor] = sum(abs(math.log(told.speedup / 2.0)) for told, _ in timed)
        spent[rigor] = sum(seconds for _, seconds in timed)
    assert spent["quick"] <= spent["standard"] < spent["publish"]
    assert off["publish"] < off["quick"]


def test_the_screened_figure_of_the_best_is_too_high_and_the_second_one_is_not() -> None:
    found = [raced("refine", "smooth", seed, 32, CORES, races=True) for seed in range(30)]
    screened, again = (
        sum(math.log(figure / each.true) for figure, each in zip(figures, found, strict=True)) / len(found)
        for figures in ([each.screened for each in found], [each.reported for each in found])
    )
    assert screened > 0.003 and abs(again) < 0.005


def test_a_search_that_races_needs_fewer_seconds_and_that_ends_early_fewer_still() -> None:
    def seconds(**facts: object) -> float:
        return sum(raced("refine", "roofline", seed, 32, H200, **facts).seconds for seed in range(5))  # type: ignore[arg-type]

    assert 2 * seconds(races=True, good_enough=0.9) < seconds(races=True) < 1.05 * seconds(races=False)
