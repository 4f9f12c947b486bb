"""Evolve: islands of programs. Parents are drawn by speedup and novelty, and others are shown beside them."""

from __future__ import annotations

from collections.abc import Sequence

from kernelproof.runs.strategies.archive import Archive
from kernelproof.runs.strategies.base import Proposal, Result, Task
from kernelproof.runs.strategies.registry import strategy
from kernelproof.runs.strategies.standing import Standing

ISLANDS = 2
EACH = 2
"""Questions of an island in a round."""
SHOWN = 5
"""Most programs beside the parent."""
BROKEN = 2
"""Most programs of an island that are not correct and compete as parents."""
MIGRATION = 4
"""Every so many rounds each island gets the best program of the one before it."""
PATIENCE = 20
"""Attempts without an improvement that end the search."""


@strategy("evolve")
class Evolve:
    """Two islands, each with an archive of its own. They begin with first questions."""

    template = "basic-v3"

    def __init__(self, task: Task) -> None:
        self._random = task.generator("evolve")
        self._standing = Standing(task, PATIENCE)
        self._islands = [Archive() for _ in range(ISLANDS)]
        self._rounds = 0

    @property
    def note(self) -> str:
        """Why it is over; empty when it is not."""
        return self._standing.note

    def ask(self) -> Sequence[Proposal]:
        """Each island's questions; the islands take turns, so that a last round cut short is fair."""
        if self.note:
            return ()
        drawn = [self._drawn(island) for island in self._islands]
        return [asked[number] for number in range(EACH) for asked in drawn]

    def tell(self, results: Sequence[Result]) -> None:
        """Each result goes to the island that asked."""
        for place, result in enumerate(results):
            island = self._islands[place % ISLANDS]
            island.built_on([result.proposal.parent])
            island.add(result)
        self._rounds += 1
        if self._rounds % MIGRATION == 0:
            self._migrate()
        self._standing.tell(results)

    def _drawn(self, island: Archive) -> list[Proposal]:
        """Different parents, as far as there are so many."""
        left = [*island.correct, *island.broken[:BROKEN]]
        proposals = []
        for _ in range(EACH):
            if not left:
                proposals.append(Proposal())
                continue
            # The place in the order and few children count, not how much faster: noise would decide.
            weights = [1 / (place + 1) / (island.children(each) + 1) for place, each in enumerate(left)]
            (parent,) = self._random.choices(left, weights)
            left.remove(parent)
            others = [each.turn for each in island.correct if each is not parent][:SHOWN]
            proposals.append(Proposal(parent.turn, history=False, shown=tuple(reversed(others))))
        return proposals

    def _migrate(self) -> None:
        best = [island.correct[:1] for island in self._islands]
        for place, island in enumerate(self._islands):
            for each in best[place - 1]:
                island.add(each)
