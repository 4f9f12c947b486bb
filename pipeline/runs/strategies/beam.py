"""Beam: the best few different programs, each asked about once a round, at the same time."""

from __future__ import annotations

from collections.abc import Sequence

from kernelproof.runs.strategies.protocol import Proposal, Result, Task, strategy
from kernelproof.runs.strategies.search import Archive, Search

WIDTH = 3
PATIENCE = 6 * WIDTH
"""Attempts without an improvement that end the search."""


@strategy("beam")
class Beam(Search):
    """Begins with as many first questions as the beam is wide."""

    def __init__(self, task: Task) -> None:
        super().__init__(task, PATIENCE)
        self._archive = Archive()

    def ask(self) -> Sequence[Proposal]:
        """The fastest correct programs, then those that are nearly correct, then the first question again."""
        if self.note:
            return ()
        parents = [*self._archive.correct, *self._archive.broken][:WIDTH]
        built = [Proposal(each.turn, history=False) for each in parents]
        return (*built, *[Proposal()] * (WIDTH - len(built)))

    def tell(self, results: Sequence[Result]) -> None:
        """Keeps what came of the round."""
        self._archive.built_on(each.proposal.parent for each in results)
        for result in results:
            self._archive.add(result)
        self._best_so_far.tell(results)
