"""Drives strategies by themselves on scripted results, and holds them to the protocol."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from kernelproof.runs.strategies import Proposal, Result, Task, find_strategy
from kernelproof.types import Interval, Plan, Status
from tests.db import samples


@dataclass(frozen=True)
class Outcome:
    """What comes of one turn: a speedup, or how it fails."""

    speedup: float | None = None
    status: Status = Status.CORRECT
    source: str | None = None


FAILED = Outcome(status=Status.BUILD_ERROR)
Script = Callable[[int], Outcome]


@dataclass
class Search:
    """What a strategy asked, round by round, and what it said at its end."""

    rounds: list[tuple[Proposal, ...]] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    note: str = ""

    @property
    def parents(self) -> list[int | None]:
        """Of each turn."""
        return [proposal.parent for asked in self.rounds for proposal in asked]


def task(turns: int, sample: int = 0, *, timed: bool = True) -> Task:
    return Task(samples.problem(), "cpp", sample, turns, timed)


def search(
    name: str,
    script: Script | Sequence[Outcome],
    turns: int | None = None,
    given_plans: int = 9,
    **facts: Any,
) -> Search:
    """Runs a strategy to its end, as `Conversation` does. `given_plans`: most plans in one answer."""
    outcomes = script if callable(script) else lambda turn: script[turn - 1]
    most = turns if turns is not None else len(script)  # type: ignore[arg-type]
    strategy, done = find_strategy(name)(task(most, **facts)), Search()
    while asked := tuple(strategy.ask())[: most - len(done.results)]:
        first = len(done.results) + 1
        for proposal in asked:
            for built_on in (proposal.parent, *proposal.shown):
                assert built_on is None or 1 <= built_on < first, "it builds on what it was not told of"
            assert proposal.parent not in proposal.shown
            if proposal.plan is not None:
                assert proposal.parent is not None
                assert 1 <= proposal.plan <= len(done.results[proposal.parent - 1].plans)
        results = [
            answered(turn, p, given_plans) if p.plans else result(turn, p, outcomes(turn))
            for turn, p in enumerate(asked, start=first)
        ]
        done.rounds.append(asked)
        done.results += results
        strategy.tell(results)
    done.note = str(getattr(strategy, "note", ""))
    return done


def answered(turn: int, proposal: Proposal, given: int) -> Result:
    """An answer with as many plans as were asked for, at most `given`."""
    plans = tuple(Plan(title=f"Plan {n}", text="") for n in range(min(proposal.plans, given)))
    return Result(proposal, turn, Status.PLANS, None, plans=plans)


def result(turn: int, proposal: Proposal, outcome: Outcome) -> Result:
    interval = None
    if outcome.speedup is not None:
        interval = Interval(low=outcome.speedup * 0.98, high=outcome.speedup * 1.02)
    source = outcome.source if outcome.source is not None else f"program = {turn}"
    return Result(proposal, turn, outcome.status, None, source, interval)
