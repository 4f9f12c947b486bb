"""Evolve: islands of programs. Parents are drawn by speedup and novelty, and others are shown beside them."""

from __future__ import annotations

from collections.abc import Sequence

from kernelproof.runs.strategies.protocol import Proposal, Result, Task, strategy
from kernelproof.runs.strategies.search import Archive, Search

ISLANDS = 2
SHOWN = 5
"""Most programs beside the parent."""
MIGRATION = 2
"""Every so many rounds each island gets the best program of the one before it."""
PATIENCE = 20
"""Attempts without an improvement that end the search."""


@strategy("evolve")
class Evolve(Search):
    """Two islands, each with an archive of its own. They begin with first questions."""

    def __init__(self, task: Task) -> None:
        super().__init__(task, PATIENCE)
        self._random = task.generator("evolve")
        self._islands = [Archive() for _ in range(ISLANDS)]
        self._rounds = 0

    def ask(self) -> Sequence[Proposal]:
        """A question of each island."""
        return () if self.note else [self._drawn(island) for island in self._islands]

    def tell(self, results: Sequence[Result]) -> None:
        """Each result goes to the island that asked."""
        for island, result in zip(self._islands, results, strict=False):  # the last round may be cut short
            island.built_on([result.proposal.parent])
            island.add(result)
        self._rounds += 1
        if self._rounds % MIGRATION == 0:
            self._migrate()
        self._best_so_far.tell(results)

    def _drawn(self, island: Archive) -> Proposal:
        """One of the island's correct programs, or the one that came farthest of the others."""
        correct = island.correct
        parents = [*correct, *island.broken[:1]]
        if not parents:
            return Proposal()
        # The place in the order counts, not how much faster: a lucky measurement would take all draws.
        weights = [1 / (place + 1) ** 2 / (island.children(each) + 1) for place, each in enumerate(parents)]
        (parent,) = self._random.choices(parents, weights)
        others = [each.turn for each in correct if each is not parent][:SHOWN]
        return Proposal(parent.turn, history=False, shown=tuple(reversed(others)))

    def _migrate(self) -> None:
        best = [island.correct[:1] for island in self._islands]
        for place, island in enumerate(self._islands):
            for each in best[place - 1]:
                island.add(each)
