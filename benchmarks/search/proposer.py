"""A synthetic model: it writes programs as points of a landscape, with the mistakes that real models make."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.search.landscape import ALGORITHM, LEVELS, Landscape, Point
from kernelproof.types import Status


@dataclass(frozen=True)
class Model:
    """How a model writes. The counts were seen; the chances are assumed, and the same for all strategies."""

    name: str
    seen: Mapping[Status, int]
    """How real programs of such a model ended, as they were verified here."""
    repair: float
    """Chance that a repair of a program that failed succeeds."""
    slip: float
    """Chance that a change of a correct program breaks it."""
    repeat: float = 0.1
    """Chance that it gives an earlier program of the sample again."""
    bold: float = 0.15
    """Chance that it rewrites at least three coordinates, and not one or two."""
    combine: float = 0.5
    """Chance that it takes something from the other programs that it is shown."""
    plain: float = 0.6
    """In a first program a level is so many times as likely as the one below it; 1: all are alike."""

    @property
    def correct(self) -> float:
        """Share of first programs that are written without a mistake."""
        return self.seen[Status.CORRECT] / sum(self.seen.values())


STRONG = Model(
    "strong",
    # 149 programs of deepseek-v4-pro.
    {
        Status.CORRECT: 87,
        Status.WRONG_OUTPUT: 25,
        Status.RUNTIME_ERROR: 8,
        Status.BUILD_ERROR: 7,
        Status.WRONG_SHAPE: 7,
        Status.SYNTAX_ERROR: 5,
        Status.LOAD_ERROR: 4,
        Status.TIMEOUT: 3,
    },
    repair=0.5,
    slip=0.2,
)
WEAK = Model(
    "weak",
    # 100 CUDA programs of Kimi-K2.
    {
        Status.CORRECT: 10,
        Status.WRONG_OUTPUT: 37,
        Status.WRONG_SHAPE: 19,
        Status.BUILD_ERROR: 17,
        Status.LOAD_ERROR: 8,
        Status.TIMEOUT: 5,
        Status.RUNTIME_ERROR: 4,
    },
    repair=0.25,
    slip=0.45,
)
MODELS = {model.name: model for model in (STRONG, WEAK)}


@dataclass(frozen=True)
class Program:
    """The program in the model's answer."""

    point: Point
    number: int
    """Of the question that it answered first: two mistakes are never the same."""
    mistake: Status | None = None
    """The model's own; a landscape may refuse the point as well."""

    @property
    def source(self) -> str:
        """A text that is equal for equal programs, and Python."""
        said = "" if self.mistake is None else f"MISTAKE = ('{self.mistake}', {self.number})\n"
        return f"{said}class ModelNew:\n    POINT = {self.point}\n"

    def status(self, landscape: Landscape) -> Status:
        """What a verification finds."""
        return self.mistake or landscape.fault(self.point) or Status.CORRECT


Idea = Mapping[int, int]
"""A plan: the levels of some coordinates. The program that carries it out chooses the others."""


@dataclass(frozen=True)
class Asked:
    """One question, as far as it matters to what is answered."""

    number: int
    """Within the search, from 1: the answer's random choices are this question's own."""
    parent: Program | None = None
    failed: Status | None = None
    """What the question says of the parent, unless it is correct."""
    shown: Sequence[Program] = ()
    """Correct programs beside the parent, from slow to fast."""
    earlier: Sequence[Program] = ()
    """All programs of the sample so far, which a model repeats now and then."""
    idea: Idea | None = None
    """The plan that the program carries out, on the parent's program or from nothing."""


class Proposer:
    """Answers questions. Equal questions with equal numbers get equal answers."""

    def __init__(self, model: Model, seed: str, levels: Sequence[int] = LEVELS) -> None:
        """`levels`: how many each coordinate has; those of the landscapes, unless they are given."""
        self._model, self._seed, self._levels = model, seed, levels
        self._first = [[model.plain**level for level in range(count)] for count in levels]
        self._failures = {status: n for status, n in model.seen.items() if status is not Status.CORRECT}

    def answer(self, asked: Asked) -> Program:
        """The program that the model writes."""
        rng = random.Random(f"{self._seed}/{asked.number}")
        base = asked.parent or (asked.shown[-1] if asked.shown else None)
        if base is None:
            point = _carried_out(self._plain(rng), asked.idea or {})
            return self._written(rng, point, asked.number, 1 - self._model.correct)
        if asked.earlier and rng.random() < self._model.repeat:
            return rng.choice(asked.earlier)
        if asked.parent is not None and asked.failed is not None:
            return self._repaired(rng, asked.parent, asked.number)
        if asked.idea is not None:
            point = _carried_out(base.point, asked.idea)
            point = self._stepped(rng, point) if rng.random() < 0.5 else point
            return self._written(rng, point, asked.number, self._model.slip)
        point, others = base.point, [each for each in asked.shown if each.point != base.point]
        combined = bool(others) and rng.random() < self._model.combine
        if combined:
            point = _mixed(rng, point, rng.choice(others).point)
        if not combined or rng.random() < 0.5:
            point = self._changed(rng, point)
        return self._written(rng, point, asked.number, self._model.slip)

    def plans(self, asked: Asked, count: int) -> list[Idea]:
        """So many different plans at most. They are no better than what the model would write without plans.

        Without a parent: an algorithm and one other level, as of first programs, the algorithms in turn.
        With one: a change, as it would make of the parent.
        """
        rng = random.Random(f"{self._seed}/{asked.number}/plans")
        if asked.parent is not None:
            point = asked.parent.point
            changed = (_difference(point, self._changed(rng, point)) for _ in range(4 * count))
            return _different(changed)[:count]
        algorithms = list(dict.fromkeys(self._plain(rng)[ALGORITHM] for _ in range(4 * count)))
        drawn = []
        for number in range(4 * count):
            point = self._plain(rng)
            other = rng.choice([i for i in range(len(self._levels)) if i != ALGORITHM])
            drawn.append({ALGORITHM: algorithms[number % len(algorithms)], other: point[other]})
        return _different(drawn)[:count]

    def _plain(self, rng: random.Random) -> Point:
        """The point of a first program."""
        return tuple(rng.choices(range(len(odds)), odds)[0] for odds in self._first)

    def _written(self, rng: random.Random, point: Point, number: int, risk: float) -> Program:
        if rng.random() >= risk:
            return Program(point, number)
        return Program(point, number, rng.choices([*self._failures], [*self._failures.values()])[0])

    def _repaired(self, rng: random.Random, parent: Program, number: int) -> Program:
        """The parent without its mistake, with another one, or where it had none, one step away."""
        if parent.mistake is None:
            return self._written(rng, self._stepped(rng, parent.point), number, self._model.slip)
        return self._written(rng, parent.point, number, 1 - self._model.repair)

    def _changed(self, rng: random.Random, point: Point) -> Point:
        """One step, two, or a jump."""
        if rng.random() < self._model.bold:
            moved = list(point)
            for i in rng.sample(range(len(self._levels)), rng.randint(3, len(self._levels))):
                moved[i] = rng.randrange(self._levels[i])
            return tuple(moved)
        once = self._stepped(rng, point)
        return once if rng.random() < 0.6 else self._stepped(rng, once)

    def _stepped(self, rng: random.Random, point: Point) -> Point:
        """Another level of one coordinate: mostly the next one."""
        i = rng.randrange(len(self._levels))
        others = [level for level in range(self._levels[i]) if level != point[i]]
        beside = [level for level in others if abs(level - point[i]) == 1]
        level = rng.choice(beside if rng.random() < 0.7 else others)
        return (*point[:i], level, *point[i + 1 :])


def _carried_out(point: Point, idea: Idea) -> Point:
    return tuple(idea.get(i, level) for i, level in enumerate(point))


def _difference(point: Point, changed: Point) -> Idea:
    return {i: level for i, level in enumerate(changed) if level != point[i]}


def _different(ideas: Iterable[Idea]) -> list[Idea]:
    """Each once, in their order; those that say nothing are left out."""
    return [dict(each) for each in dict.fromkeys(tuple(sorted(idea.items())) for idea in ideas) if each]


def _mixed(rng: random.Random, point: Point, other: Point) -> Point:
    """Some of the coordinates in which another program differs, at least one, are taken from it."""
    apart = [i for i, level in enumerate(point) if level != other[i]]
    taken = {i for i in apart if rng.random() < 0.5} or {rng.choice(apart)}
    return tuple(other[i] if i in taken else level for i, level in enumerate(point))
