"""The strategies that search for nothing faster: `sample` asks once, `repair` until an answer is correct."""

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
        self._next = ()


@strategy("repair")
class Repair:
    """One line of attempts, each built on the one before. It ends with the first correct one."""

    def __init__(self, task: Task) -> None:
        self._next: tuple[Proposal, ...] = (Proposal(),)

    def ask(self) -> Sequence[Proposal]:
        """One question, as long as the last attempt was not correct."""
        return self._next

    def tell(self, results: Sequence[Result]) -> None:
        """Builds the next question on this attempt, unless it is correct."""
        (last,) = results
        self._next = () if last.correct else (Proposal(parent=last.turn),)
