"""A landscape: a space of programs, the speedup of each, and the best one."""

from __future__ import annotations

import itertools
import random
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar

from kernelproof.types import Status

Point = tuple[int, ...]
"""One level for each coordinate."""

COORDINATES = {"algorithm": 3, "tile": 5, "threads": 5, "unroll": 4, "vector": 3, "stages": 4, "layout": 3}
"""The choices of a program, with the number of their levels: level 0 is what a plain program does."""
LEVELS = tuple(COORDINATES.values())
ALGORITHM, TILE, THREADS, UNROLL, VECTOR, STAGES, LAYOUT = range(len(LEVELS))


def points() -> Iterator[Point]:
    """All of the space: 10,800 points."""
    return itertools.product(*map(range, LEVELS))


def between(low: float, high: float, progress: float) -> float:
    """The speedup at this progress from 0 to 1: equal steps multiply it by equal factors."""
    return float(low * (high / low) ** progress)


def closeness(point: Point, goal: Point, coordinates: range | tuple[int, ...] = range(len(LEVELS))) -> float:
    """How near these coordinates are to the goal's: 1 when they are equal, 0 when they are all far away."""
    near = (1 - abs(point[i] - goal[i]) / (LEVELS[i] - 1) for i in coordinates)
    return sum(near) / len(coordinates)


def upper(rng: random.Random) -> Point:
    """A goal that a plain program is far from: each coordinate in the upper half of its levels."""
    return tuple(rng.randrange(count // 2, count) for count in LEVELS)


class Landscape(ABC):
    """One problem, drawn by a generator: the same seed gives the same one."""

    name: ClassVar[str]
    noise: ClassVar[float] = 0.01
    """Standard deviation of a measured speedup's logarithm."""
    roof: ClassVar[float | None] = None
    """The speedup at the roofline; None: no roofline is known."""
    best: Point
    """The point with the largest speedup of those without a fault."""

    def __init__(self, rng: random.Random) -> None:
        self.best = upper(rng)

    @abstractmethod
    def speedup(self, point: Point) -> float:
        """The true speedup of a program without mistakes at this point."""

    def fault(self, point: Point) -> Status | None:
        """How every program at this point fails; None: it can be written."""
        return None
