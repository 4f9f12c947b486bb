"""Ideas: plans in prose first, then programs that carry them out, most for the plans that came to most."""

from __future__ import annotations

from collections.abc import Sequence

from kernelproof.runs.strategies.protocol import Proposal, Result, Task, strategy
from kernelproof.runs.strategies.search import Search
from kernelproof.types import Status

PLANS = 4
FRESH = 2
"""Programs of a plan that begin from the plan; later ones go on from its fastest."""
REPAIRS = 2
PLAN_PATIENCE = 4
"""Attempts at a plan without a better program of its own that use it up."""
PATIENCE = 24


class _PlanState:
    def __init__(self, start: Proposal) -> None:
        """`start`: the question for a program that begins from the plan."""
        self._start = start
        self._results: list[Result] = []
        self._best: Result | None = None
        self._fresh = self._since = 0

    @property
    def is_new(self) -> bool:
        return not self._results

    @property
    def score(self) -> float:
        """The lower end of its best speedup, times the share of its answers that were correct.

        One answer more is counted on either side, so that a plan with few answers is not judged by them.
        """
        correct = sum(each.correct for each in self._results)
        share = (correct + 1) / (len(self._results) + 2)
        return share * (self._best.speedup if self._best else 0.0)

    @property
    def is_used_up(self) -> bool:
        """Whether it has gone on for too long without a better program."""
        return self._since >= PLAN_PATIENCE

    def ask(self) -> Proposal:
        """A repair of its last program, another one from the plan, or an improvement of its fastest."""
        broken = 0
        for result in reversed(self._results):
            if result.correct:
                break
            broken += 1
        if broken % (REPAIRS + 1) > 0:
            return Proposal(self._results[-1].turn, history=False)
        if self._best is None or self._fresh < FRESH:
            return self._start
        return Proposal(self._best.turn, history=False)

    def tell(self, result: Result) -> None:
        self._results.append(result)
        self._fresh += result.proposal == self._start
        self._since += 1
        if result.correct and (self._best is None or result.speedup > self._best.speedup):
            self._best, self._since = result, 0


@strategy("ideas")
class Ideas(Search):
    """Asks for plans for the problem; when these are used up, for plans for the best program."""

    asks_for_plans = True

    def __init__(self, task: Task) -> None:
        super().__init__(task, PATIENCE)
        self._left = task.turns
        self._plans: list[_PlanState] = []
        self._round: list[_PlanState] = []
        """The plans of the round that is at work; none where it asks for plans."""

    def ask(self) -> Sequence[Proposal]:
        """All new plans at the same time, then the most promising one; new plans when all are used up."""
        if self.note:
            return ()
        new = [plan for plan in self._plans if plan.is_new]
        left = [plan for plan in self._plans if not plan.is_used_up]
        self._round = new or ([max(left, key=lambda plan: plan.score)] if left else [])
        if not self._round and self._left > 1:
            return (Proposal(self._base.parent, history=False, plans=PLANS),)
        self._round = self._round or [_PlanState(self._base)]
        return [plan.ask() for plan in self._round]

    def tell(self, results: Sequence[Result]) -> None:
        """Each result goes to its plan; plans that came take the place of those that are used up."""
        self._left -= len(results)
        self._best_so_far.tell([each for each in results if each.status is not Status.PLANS])
        for plan, result in zip(self._round, results, strict=False):  # the last round may be cut short
            plan.tell(result)
        for answer in (each for each in results if each.status is Status.PLANS):
            starts = [
                Proposal(answer.turn, history=False, plan=number)
                for number, _ in enumerate(answer.plans[:PLANS], start=1)
            ]
            self._plans = [_PlanState(start) for start in starts or [self._base]]
