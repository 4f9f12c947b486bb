"""The rounds of a search: what a strategy proposes, numbered as the turns of its sample."""

from __future__ import annotations

from collections.abc import Sequence

from kernelproof.runs.strategies.base import Proposal, Result, Strategy


class Rounds:
    """`ask` and `tell` take turns, as in `Strategy`; `ask` numbers the proposals and drops those beyond the
    last turn."""

    def __init__(self, strategy: Strategy, turns: int) -> None:
        self._strategy, self._last = strategy, turns
        self._next = 1

    def ask(self) -> dict[int, Proposal]:
        """The proposals of the next round, by turn; empty when the search is over."""
        proposals = tuple(self._strategy.ask())[: self._last + 1 - self._next]
        asked = dict(enumerate(proposals, start=self._next))
        self._next += len(asked)
        return asked

    @property
    def is_last(self) -> bool:
        """Whether no turn is left for another round."""
        return self._next > self._last

    def tell(self, results: Sequence[Result]) -> None:
        """What came of the round, in the order of its turns."""
        self._strategy.tell(results)
