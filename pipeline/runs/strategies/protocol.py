"""What a search strategy is. `Conversation` asks it what to try, tries that, and tells it what came of it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from kernelproof.extraction.normalise import normalized_hash
from kernelproof.hashing import sha256_json
from kernelproof.registry import Registry, class_with
from kernelproof.types import Interval, Plan, Problem, Status, Verification


@dataclass(frozen=True)
class Task:
    """One sample of one problem: what a strategy is made for."""

    problem: Problem
    backend: str
    sample: int
    """Index of the sample, from 0."""
    turns: int
    """Most attempts of this sample."""
    timed: bool = True
    """Whether correct candidates are timed. If not, nothing tells which of two is faster."""

    def generator(self, name: str) -> random.Random:
        """The random choices of the strategy `name`: the same for each replay of this sample."""
        return random.Random(sha256_json([name, self.problem.sha256, self.sample]))


@dataclass(frozen=True)
class Proposal:
    """One attempt to make: a question to the model, and the verification of its answer."""

    parent: int | None = None
    """The turn whose answer and evidence the question shows. None: the problem's first question."""
    history: bool = True
    """Whether the question also shows the questions and answers that led to the parent. Without them it does
    not grow with the number of turns."""
    shown: tuple[int, ...] = ()
    """Turns whose programs the question shows beside the parent, with their speedups, in this order."""
    plans: int = 0
    """So many plans in prose are asked for, to make the parent faster, or for the problem without a parent.
    0: a program is asked for."""
    plan: int | None = None
    """The program carries out this plan of the parent's answer, from 1; the parent holds plans."""


@dataclass(frozen=True)
class Result:
    """What came of a proposal."""

    proposal: Proposal
    turn: int
    """The attempt's number within the sample, from 1, in the order of the proposals."""
    status: Status
    """Never a failure of the provider or the machine: these stop a sample until the command is run again.
    `plans` where the question asked for plans."""
    verification: Verification | None
    """Errors, times and checks. None when the answer held no program."""
    source: str | None = None
    """The program. None when the answer held none."""
    interval: Interval | None = None
    """Of the speedup; its ends are 1 at most where the pace is unresolved. None when it was not timed."""
    roofline: float | None = None
    """The share of its roofline that it reaches, from 0 to about 1. None where no roofline was computed."""
    plans: tuple[Plan, ...] = ()
    """The plans in the answer, where the question asked for plans."""

    @property
    def correct(self) -> bool:
        """Whether it may be the answer."""
        return self.status is Status.CORRECT

    @property
    def speedup(self) -> float:
        """What ranks: the lower end of the interval; 0 for what is not correct, or was not timed."""
        return self.interval.low if self.correct and self.interval is not None else 0.0

    @cached_property
    def normalized_hash(self) -> str | None:
        """A hash that programs share which differ in comments and blanks alone. None without a program."""
        return None if self.source is None else normalized_hash(self.source)


class Strategy(Protocol):
    """Searches for one sample. The class is called with the `Task`.

    `ask` and `tell` take turns. Both run between questions and must neither block nor read the clock: equal
    results must lead to equal proposals, because a run that goes on plays the stored results again.
    Randomness comes from `Task.generator`. A class may have an attribute `template`: the template of its
    questions, where the user names none; `asks_for_plans = True`, where it does; and `races = True`: its
    attempts are screened, and the best is verified once more, unless the user says otherwise. An object may
    have an attribute `note`: why it asks nothing more.
    """

    def ask(self) -> Sequence[Proposal]:
        """What to try next; nothing when the sample is over.

        The proposals of one call are tried at the same time, and their turns have the next free numbers. What
        goes beyond the task's `turns` is dropped.
        """

    def tell(self, results: Sequence[Result]) -> None:
        """What came of all that was asked last, in the same order.

        A result's `proposal` says what its question was built on. That may differ from what was asked, where
        a verification was retracted, or made again, since.
        """


class Rounds:
    """`ask` and `tell` take turns, as in `Strategy`; `ask` numbers the proposals and drops those beyond the
    last turn."""

    def __init__(self, strategy: Strategy, turns: int) -> None:
        self._strategy, self._last = strategy, turns
        self._next = 1

    def ask(self) -> dict[int, Proposal]:
        """The proposals of the next round, by turn; empty when the search is over."""
        proposals = tuple(self._strategy.ask())[: self._last + 1 - self._next]
        numbered = dict(enumerate(proposals, start=self._next))
        self._next += len(numbered)
        return numbered

    @property
    def is_last(self) -> bool:
        """Whether no turn is left for another round."""
        return self._next > self._last

    def tell(self, results: Sequence[Result]) -> None:
        """What came of the round, in the order of its turns."""
        self._strategy.tell(results)


class StrategyClass(Protocol):
    """What a registered class is called with."""

    def __call__(self, task: Task, /) -> Strategy:
        """The strategy for one sample."""


STRATEGIES: Registry[StrategyClass] = Registry(
    "strategy",
    group="kernelproof.strategies",
    package="kernelproof.runs.strategies",
    check=class_with("ask", "tell"),
)


strategy = STRATEGIES.named
