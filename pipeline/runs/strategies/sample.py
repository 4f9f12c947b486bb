"""One shot: each sample is one question and its answer."""

from __future__ import annotations

from collections.abc import Sequence

from kernelproof.runs.strategies.protocol import Proposal, Result, Task, strategy


@strategy("sample")
class Sample:
    """Asks once, however many turns there are."""

    def __init__(self, task: Task) -> None:
        self._next: tuple[Proposal, ...] = (Proposal(),)

    def ask(self) -> Sequence[Proposal]:
        """The problem's first question, then nothing."""
        return self._next

    def tell(self, results: Sequence[Result]) -> None:
        """Ends the sample, with any result."""
        self._next = ()
