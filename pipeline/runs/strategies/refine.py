"""Refine: repair until something is correct, then make the best faster, one question after another."""

from __future__ import annotations

from collections.abc import Sequence

from kernelproof.runs.strategies.protocol import Proposal, Result, Task, strategy
from kernelproof.runs.strategies.search import Search

REPAIRS = 3
"""Repairs in a row, before the search goes back to its best attempt, or to the first question."""
PATIENCE = 10
"""Attempts without an improvement that end the search."""


@strategy("refine")
class Refine(Search):
    """One line of attempts that goes back to the best one when an idea fails."""

    def __init__(self, task: Task) -> None:
        super().__init__(task, PATIENCE)
        self._last: Result | None = None
        self._broken = 0
        """Attempts in a row that were not correct."""

    def ask(self) -> Sequence[Proposal]:
        """A repair of the last attempt, else an improvement of the best."""
        if self.note:
            return ()
        if self._last is not None and 0 < self._broken <= REPAIRS:
            return (Proposal(self._last.turn, history=False),)
        return (self._base,)

    def tell(self, results: Sequence[Result]) -> None:
        """Keeps the best, and counts what is broken in a row."""
        (self._last,) = results
        if self._last.correct or self._broken > REPAIRS:
            self._broken = 0
        self._broken += not self._last.correct
        self._best_so_far.tell(results)
