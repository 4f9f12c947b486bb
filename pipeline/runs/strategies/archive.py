"""The programs that a search may build on: each once, the best first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from kernelproof.runs.strategies.base import Result
from kernelproof.runs.strategies.standing import closeness

REPAIRS = 2
"""Questions about a program that is not correct, before it is given up."""


class Archive:
    """Results, and how many questions were built on each. Programs that are alike are in it once."""

    def __init__(self) -> None:
        self._results: dict[str, Result] = {}
        self._children: Counter[str] = Counter()
        self._names: dict[int, str] = {}
        """By turn: the program that it came to."""

    def add(self, result: Result) -> None:
        """Takes up a result. Of two programs that are alike the one that ranks first stays."""
        name = result.normalized_hash or f"turn {result.turn}"
        self._names[result.turn] = name
        known = self._results.get(name)
        if known is None or _rank(result) > _rank(known):
            self._results[name] = result

    def built_on(self, turns: Iterable[int | None]) -> None:
        """Questions were asked about the programs of these turns."""
        self._children.update(self._names[turn] for turn in turns if turn in self._names)

    def children(self, result: Result) -> int:
        """Questions about this program."""
        return self._children[self._names[result.turn]]

    @property
    def correct(self) -> list[Result]:
        """The correct programs, the fastest first."""
        return sorted((each for each in self._results.values() if each.correct), key=_rank, reverse=True)

    @property
    def broken(self) -> list[Result]:
        """Programs that are not correct and may still be repaired, the one that came farthest first."""
        left = (each for each in self._results.values() if not each.correct)
        return sorted((each for each in left if self.children(each) < REPAIRS), key=_rank, reverse=True)


def _rank(result: Result) -> tuple[int, float, int]:
    """Correct before broken, fast before slow, and of broken ones what came farther and then later."""
    if result.correct:
        return closeness(result), result.speedup, -result.turn
    return closeness(result), 0.0, result.turn
