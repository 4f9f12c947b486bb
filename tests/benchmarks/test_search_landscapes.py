"""Landscapes: the best that each one names is its best, and its mechanism is there."""

from __future__ import annotations

import pytest

from benchmarks.search.landscape import LEVELS, THREADS, TILE, Landscape, Point, points
from benchmarks.search.landscapes import LANDSCAPES, drawn

ALL = list(points())
SOME = ALL[:: len(ALL) // 50]


def neighbours(point: Point) -> list[Point]:
    """All points that differ in one coordinate."""
    return [
        (*point[:i], level, *point[i + 1 :])
        for i, count in enumerate(LEVELS)
        for level in range(count)
        if level != point[i]
    ]


def changed(point: Point, levels: dict[int, int]) -> Point:
    return tuple(levels.get(i, level) for i, level in enumerate(point))


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


def local_optima(landscape: Landscape) -> int:
    """Of the points looked at, those that no change of one coordinate makes faster."""
    return sum(
        all(landscape.speedup(other) <= landscape.speedup(point) for other in neighbours(point))
        for point in ALL[::5]
        if point != landscape.best
    )


def test_steps_lead_to_the_best_of_smooth_and_not_of_rugged() -> None:
    assert local_optima(drawn("smooth", 1)) == 0
    assert local_optima(drawn("rugged", 1)) > 5


def test_most_of_mostly_broken_does_not_build() -> None:
    landscape = drawn("mostly broken", 1)
    assert sum(landscape.fault(point) is not None for point in ALL) / len(ALL) == pytest.approx(0.7, abs=0.02)


def test_faster_steps_from_the_best_of_traps_are_wrong() -> None:
    landscape = drawn("traps", 1)
    most = landscape.speedup(landscape.best)
    faster = [point for point in neighbours(landscape.best) if landscape.speedup(point) > most]
    assert faster and all(landscape.fault(point) is not None for point in faster)


def test_one_of_a_coupled_pair_alone_is_slower() -> None:
    landscape = drawn("coupled", 1)
    low = changed(landscape.best, {TILE: 1, THREADS: 1})
    speedup = landscape.speedup(low)
    assert landscape.speedup(changed(low, {TILE: 2})) < speedup
    assert landscape.speedup(changed(low, {THREADS: 2})) < speedup
    assert landscape.speedup(changed(low, {TILE: 2, THREADS: 2})) > speedup


def test_the_needle_is_not_seen_from_beside_it() -> None:
    landscape = drawn("needle", 1)
    beside = changed(landscape.best, {TILE: landscape.best[TILE] - 1})
    assert landscape.speedup(beside) < 1.1 < 2.5 < landscape.speedup(landscape.best)


def test_the_first_steps_of_deceptive_lead_away_from_its_best() -> None:
    landscape = drawn("deceptive", 1)
    plain = (0,) * len(LEVELS)
    best_family = changed(plain, {0: landscape.best[0]})
    assert landscape.speedup(best_family) < 0.5 * landscape.speedup(plain)
