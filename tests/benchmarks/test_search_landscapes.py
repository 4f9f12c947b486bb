"""Landscapes: the best that each one names is its best, and its mechanism is there."""

from __future__ import annotations

import pytest

from benchmarks.search.landscape import Landscape, points
from benchmarks.search.landscapes import LANDSCAPES, drawn

ALL = list(points())
SOME = ALL[:: len(ALL) // 50]


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", LANDSCAPES)
def test_no_program_is_faster_than_the_best_that_is_named(name: str, seed: int) -> None:
    landscape = drawn(name, seed)
    assert landscape.fault(landscape.best) is None
    speedups = [landscape.speedup(point) for point in ALL if landscape.fault(point) is None]
    assert max(speedups) == pytest.approx(landscape.speedup(landscape.best))
    assert min(speedups) > 0


@pytest.mark.parametrize("name", LANDSCAPES)
def test_a_seed_is_one_landscape(name: str) -> None:
    def figures(landscape: Landscape) -> list[object]:
        return [(landscape.speedup(point), landscape.fault(point)) for point in SOME]

    assert figures(drawn(name, 3)) == figures(drawn(name, 3))
    others = [drawn(name, seed) for seed in range(4, 10)]
    assert any(figures(other) != figures(drawn(name, 3)) for other in others)
