"""What a search strategy is. `Conversation` asks it what to try, tries that, and tells it what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from kernelproof.types import Problem, Status, Verification


@dataclass(frozen=True)
class Task:
    """One sample of one problem: what a strategy is made for."""

    problem: Problem
    backend: str
    sample: int
    """Index of the sample, from 0."""
    turns: int
    """Most attempts of this sample."""


@dataclass(frozen=True)
class Proposal:
    """One attempt to make: a question to the model, and the verification of its answer."""

    parent: int | None = None
    """The turn whose answer and evidence the question shows. None: the problem's first question."""


@dataclass(frozen=True)
class Result:
    """What came of a proposal."""

    proposal: Proposal
    turn: int
    """The attempt's number within the sample, from 1, in the order of the proposals."""
    status: Status
    """Never a failure of the provider or the machine: these stop a sample until the command is run again."""
    verification: Verification | None
    """Errors, times and checks. None when the answer held no program."""


class Strategy(Protocol):
    """Searches for one sample. The class is called with the `Task`.

    `ask` and `tell` take turns. Both run between questions and must neither block nor read the clock: equal
    results must lead to equal proposals, because a run that goes on plays the stored results again.
    Randomness comes from a generator seeded by the task.
    """

    def ask(self) -> Sequence[Proposal]:
        """What to try next; nothing when the sample is over.

        The proposals of one call are tried at the same time, and their turns have the next free numbers. What
        goes beyond the task's `turns` is dropped.
        """
        ...

    def tell(self, results: Sequence[Result]) -> None:
        """What came of all that was asked last, in the same order."""
        ...
