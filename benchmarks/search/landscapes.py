"""The landscapes. Each class says in its docstring by which mechanism it is easy or hard."""

from __future__ import annotations

import math
import random
import zlib

import numpy as np

from benchmarks.search.landscape import (
    ALGORITHM,
    LAYOUT,
    LEVELS,
    STAGES,
    THREADS,
    TILE,
    UNROLL,
    VECTOR,
    Landscape,
    Point,
    between,
    closeness,
    upper,
)
from kernelproof.types import Status

OTHERS = tuple(i for i in range(len(LEVELS)) if i != ALGORITHM)


class Smooth(Landscape):
    """Every coordinate has one best level and helps by itself: each step towards the best is a gain."""

    name = "smooth"

    def speedup(self, point: Point) -> float:
        return between(0.3, 3.0, closeness(point, self.best))


class Rugged(Landscape):
    """An NK landscape, K = 2: what a level is worth depends on the next two coordinates, at random. There are
    many points that no change of one coordinate improves."""

    name = "rugged"

    def __init__(self, rng: random.Random) -> None:
        numbers = np.random.default_rng(rng.getrandbits(64))
        count = len(LEVELS)
        self._neighbours = [(i, (i + 1) % count, (i + 2) % count) for i in range(count)]
        self._tables = [numbers.random([LEVELS[i] for i in three]) for three in self._neighbours]
        total = np.zeros(LEVELS)
        for three, table in zip(self._neighbours, self._tables, strict=True):
            order = sorted(range(3), key=lambda axis: three[axis])
            shape = [LEVELS[i] if i in three else 1 for i in range(count)]
            total = total + table.transpose(order).reshape(shape)
        self._low, self._high = float(total.min()), float(total.max())
        self.best = tuple(map(int, np.unravel_index(int(total.argmax()), LEVELS)))

    def speedup(self, point: Point) -> float:
        total = sum(
            float(table[point[a], point[b], point[c]])
            for (a, b, c), table in zip(self._neighbours, self._tables, strict=True)
        )
        return between(0.3, 3.0, (total - self._low) / (self._high - self._low))


class Deceptive(Landscape):
    """The best algorithm begins at a tenth of the speed of the others and pays only when nearly all else is
    right; the others soon reach 1.5, and their best levels lie away from its own."""

    name = "deceptive"

    def __init__(self, rng: random.Random) -> None:
        goal = upper(rng)
        self.best = (2, *goal[1:])
        self._lure: Point = tuple(count - 1 - level for level, count in zip(goal, LEVELS, strict=True))

    def speedup(self, point: Point) -> float:
        if point[ALGORITHM] == self.best[ALGORITHM]:
            return between(0.1, 4.0, closeness(point, self.best, OTHERS) ** 2)
        return between(0.5, 1.5, closeness(point, self._lure, OTHERS))


class Plateaus(Landscape):
    """Only every second coordinate that is exactly right makes a program faster: most changes do nothing."""

    name = "plateaus"

    def speedup(self, point: Point) -> float:
        right = sum(level == goal for level, goal in zip(point, self.best, strict=True))
        steps = len(LEVELS) // 2
        return between(0.5, 3.0, min(right // 2, steps) / steps)


class Needle(Landscape):
    """Everything is about as fast as the reference, but for one combination of three coordinates, of 75. No
    step tells that it is near."""

    name = "needle"

    def speedup(self, point: Point) -> float:
        slope = closeness(point, self.best)
        if all(point[i] == self.best[i] for i in (ALGORITHM, TILE, THREADS)):
            return between(2.5, 4.0, slope)
        return between(0.7, 1.1, slope)


class TwoFamilies(Landscape):
    """Two algorithms begin alike; one ends at 2, the other at 3, with other best levels. A third is slow."""

    name = "two families"

    def __init__(self, rng: random.Random) -> None:
        better, worse, self._slow = rng.sample(range(3), 3)
        self.best = (better, *upper(rng)[1:])
        self._second: Point = (worse, *upper(rng)[1:])

    def speedup(self, point: Point) -> float:
        if point[ALGORITHM] == self._slow:
            return 0.3
        if point[ALGORITHM] == self.best[ALGORITHM]:
            return between(0.4, 3.0, closeness(point, self.best, OTHERS))
        return between(0.4, 2.0, closeness(point, self._second, OTHERS))


class MostlyBroken(Smooth):
    """As `smooth`, but 70 % of the points do not build, with no pattern: too many registers, no instruction
    for that type, a template that nobody instantiated."""

    name = "mostly broken"

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self._salt = rng.getrandbits(32)

    def fault(self, point: Point) -> Status | None:
        if point == self.best:
            return None
        # A checksum is no random number: the multiplication spreads it.
        drawn = (zlib.crc32(bytes(point), self._salt) * 2654435761 >> 7) % 1000
        return Status.BUILD_ERROR if drawn < 700 else None


class Traps(Landscape):
    """The more of unrolling, vectors, stages and layout, the faster, but together beyond a limit the results
    are wrong: the best lies at the edge, and most steps that would be gains fall over it."""

    name = "traps"
    _RISKY = (UNROLL, VECTOR, STAGES, LAYOUT)
    _LIMIT = 5
    """Of 10 levels."""

    def __init__(self, rng: random.Random) -> None:
        goal = list(upper(rng))
        worth = [rng.uniform(0.5, 1.5) for _ in self._RISKY]
        self._worth = dict(zip(self._RISKY, worth, strict=True))
        # Each level costs one of the limit and is worth the same: the dearest coordinates are filled first.
        left = self._LIMIT
        for i in sorted(self._RISKY, key=lambda i: -self._worth[i]):
            goal[i] = min(left, LEVELS[i] - 1)
            left -= goal[i]
        self.best = tuple(goal)

    def fault(self, point: Point) -> Status | None:
        return Status.WRONG_OUTPUT if sum(point[i] for i in self._RISKY) > self._LIMIT else None

    def speedup(self, point: Point) -> float:
        most = sum(self.best[i] * worth for i, worth in self._worth.items())
        risked = sum(point[i] * worth for i, worth in self._worth.items()) / most
        plain = closeness(point, self.best, (ALGORITHM, TILE, THREADS))
        return between(0.4, 3.0, (plain + risked) / 2)


class Roofline(Landscape):
    """Diminishing returns: half of the way brings nine tenths of the speedup; the rest is the memory's."""

    name = "roofline"
    roof = 2.6

    def speedup(self, point: Point) -> float:
        progress = closeness(point, self.best)
        return 0.3 + 2.2 * (1 - math.exp(-4 * progress)) / (1 - math.exp(-4))


class Noisy(Smooth):
    """As `smooth`, but a measured speedup is 8 % off (one standard deviation): the fastest of many is often
    one that was lucky."""

    name = "noisy"
    noise = 0.08


class Coupled(Landscape):
    """Two pairs of coordinates must rise together: a larger tile alone, or more threads alone, is slower."""

    name = "coupled"
    _PAIRS = ((TILE, THREADS), (UNROLL, STAGES))

    def __init__(self, rng: random.Random) -> None:
        goal = list(upper(rng))
        for pair in self._PAIRS:
            for i in pair:
                goal[i] = LEVELS[i] - 1
        self.best = tuple(goal)

    def speedup(self, point: Point) -> float:
        progress = closeness(point, self.best, (ALGORITHM, VECTOR, LAYOUT)) * 3 / 7
        for a, b in self._PAIRS:
            along = min(point[a], point[b]) / (LEVELS[a] - 1)
            apart = abs(point[a] - point[b]) / (LEVELS[a] - 1)
            progress += (along - 0.8 * apart) * 2 / 7
        return between(0.4, 3.0, progress)


class NoImprovement(Landscape):
    """The reference is the best there is: no program is faster, and a search should say so and stop."""

    name = "no improvement"

    def speedup(self, point: Point) -> float:
        return between(0.2, 0.98, closeness(point, self.best))


LANDSCAPES: dict[str, type[Landscape]] = {
    each.name: each
    for each in (
        *(Smooth, Rugged, Deceptive, Plateaus, Needle, TwoFamilies, MostlyBroken, Traps, Roofline, Noisy),
        *(Coupled, NoImprovement),
    )
}


def drawn(name: str, seed: int) -> Landscape:
    """The landscape of this name and seed. Raises KeyError when there is none of that name."""
    return LANDSCAPES[name](random.Random(f"{name}/{seed}"))
