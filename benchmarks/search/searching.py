"""One search: a strategy, a landscape and a synthetic model, until the budget is used up."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.search.landscape import Landscape
from benchmarks.search.landscapes import drawn
from benchmarks.search.proposer import Asked, Idea, Model, Program, Proposer
from benchmarks.search.verdicts import Verifier, problem, settings
from kernelproof.runs.strategies import Proposal, Result, Rounds, StrategyClass, Task
from kernelproof.types import Plan, Problem, Status

FIRST_TOKENS = 1_500
"""A problem's first question."""
PROGRAM_TOKENS = 900
EVIDENCE_TOKENS = 300
"""What a question says of an attempt beside its program."""
THINKING_TOKENS = 2_100
"""An answer is this and a program; the thinking is never sent back."""

PLANS_TOKENS = 700
"""Plans in prose, instead of a program; a program's question shows one of them, which is not counted."""

FIRST_QUESTION = FIRST_TOKENS + THINKING_TOKENS + PROGRAM_TOKENS
"""Tokens of a first question and its answer."""


@dataclass(frozen=True)
class Budget:
    """What one search may spend. A question that would cost more than is left is not asked."""

    questions: int
    tokens: int | None = None
    turns: int | None = None
    """Most turns of a sample; None: as many as there are questions left."""


@dataclass(frozen=True)
class Try:
    """One question and what came of it."""

    sample: int
    status: Status
    claimed: float
    """What ranks: the lower end of the measured interval; 0 for what is not correct."""
    true: float
    tokens: int
    """Of the question and its answer."""


@dataclass(frozen=True)
class Search:
    """All that a strategy tried within the budget."""

    tries: tuple[Try, ...]
    ended: int | None
    """After so many questions the strategy's first sample ended by itself; None: its turns were used up."""

    def gain(self, questions: int | None = None) -> float:
        """What the user has after so many questions: the true speedup of what was measured to be the fastest.

        1, the reference itself, where nothing was measured to be faster.
        """
        fastest = max(self.tries[:questions], key=lambda each: each.claimed, default=None)
        return fastest.true if fastest is not None and fastest.claimed > 1 else 1.0

    @property
    def tokens(self) -> int:
        """Of all questions and answers."""
        return sum(each.tokens for each in self.tries)


def search(
    strategy: StrategyClass, name: str, model: Model, seed: int, budget: Budget, noise: float | None = None
) -> Search:
    """Searches one landscape, whose own noise `noise` may replace.

    A sample that ends by itself is followed by another one, as long as there is budget left: `sample` becomes
    the best of as many independent answers as there are questions. Equal arguments give equal results. The
    strategies of one seed meet the same landscape, and their model writes the same answer to the same
    question with the same number.
    """
    landscape, of = drawn(name, seed), problem(name, seed)
    verifier = Verifier(of, landscape, noise)
    return Searching(strategy, landscape, of, Proposer(model, of.source), verifier, budget).run()


class Searching:
    """The state of one search."""

    def __init__(
        self,
        strategy: StrategyClass,
        landscape: Landscape,
        of: Problem,
        proposer: Proposer,
        verifier: Verifier,
        budget: Budget,
    ) -> None:
        self._strategy, self._landscape, self._problem, self._budget = strategy, landscape, of, budget
        self._proposer, self._verifier = proposer, verifier
        self._tries: list[Try] = []
        self._spent = 0

    def run(self) -> Search:
        ended = None
        for number in itertools.count():
            before = len(self._tries)
            left = self._budget.questions - before
            if left <= 0:
                break
            turns = min(left, self._budget.turns or left)
            by_itself = self._sample(number, turns)
            if number == 0 and by_itself:
                ended = len(self._tries)
            if len(self._tries) == before or by_itself is None:
                break
        return Search(tuple(self._tries), ended)

    def _sample(self, number: int, turns: int) -> bool | None:
        """One sample. Whether it ended by itself; None: the tokens are used up."""
        task = Task(self._problem, settings().backend, number, turns)
        rounds, sample = Rounds(self._strategy(task), turns), _Sample()
        while asked := rounds.ask():
            results = []
            for turn, proposal in asked.items():
                tokens = sample.tokens(proposal)
                if self._budget.tokens is not None and self._spent + tokens > self._budget.tokens:
                    return None
                results.append(self._try(sample, number, turn, proposal, tokens))
            sample.told(results)
            rounds.tell(results)
        return not rounds.is_last

    def _try(self, sample: _Sample, number: int, turn: int, proposal: Proposal, tokens: int) -> Result:
        question = len(self._tries) + 1
        self._spent += tokens
        asked = sample.question(question, proposal)
        if proposal.plans:
            ideas = sample.ideas[turn] = self._proposer.plans(asked, proposal.plans)
            self._tries.append(Try(number, Status.PLANS, claimed=0.0, true=0.0, tokens=tokens))
            plans = tuple(Plan(title=str(dict(idea)), text="") for idea in ideas)
            return Result(proposal, turn, Status.PLANS, None, plans=plans)
        program = self._proposer.answer(asked)
        result = self._verifier.result(program, proposal, turn, question)
        sample.programs[turn] = program
        measured = result.verification.measurement if result.verification else None
        self._tries.append(
            Try(
                sample=number,
                status=result.status,
                claimed=measured.claimed if measured else 0.0,
                true=self._landscape.speedup(program.point) if measured else 0.0,
                tokens=tokens,
            )
        )
        return result


class _Sample:
    """What one sample has tried, by turn: what its questions are built on."""

    def __init__(self) -> None:
        self.programs: dict[int, Program] = {}
        self.ideas: dict[int, list[Idea]] = {}
        """By turn of a question for plans."""
        self._results: dict[int, Result] = {}

    def told(self, results: Sequence[Result]) -> None:
        """The results of a round, on which the next one may build."""
        self._results |= {result.turn: result for result in results}

    def question(self, number: int, proposal: Proposal) -> Asked:
        """A proposal as the model sees it. Raises KeyError for a turn of which the strategy was not told."""
        told = None if proposal.parent is None else self._results[proposal.parent]
        idea = None
        if told is not None and proposal.plan is not None:
            idea = self.ideas[told.turn][proposal.plan - 1]
            told = None if told.proposal.parent is None else self._results[told.proposal.parent]
        shown = [self._results[turn] for turn in proposal.shown]
        right = [self.programs[each.turn] for each in shown if each.status is Status.CORRECT]
        return Asked(
            number,
            parent=None if told is None else self.programs[told.turn],
            failed=None if told is None or told.status is Status.CORRECT else told.status,
            shown=right,
            earlier=[self.programs[turn] for turn in self._results if turn in self.programs],
            idea=idea,
        )

    def tokens(self, proposal: Proposal) -> int:
        """Of a question and its answer: programs and evidence of the parents, and what else is shown."""
        parents = self._parents(proposal)
        programs = parents + len(proposal.shown)
        answered = PLANS_TOKENS if proposal.plans else PROGRAM_TOKENS
        question = FIRST_TOKENS + programs * PROGRAM_TOKENS + parents * EVIDENCE_TOKENS
        return question + THINKING_TOKENS + answered

    def _parents(self, proposal: Proposal) -> int:
        """How many attempts that led to the proposal its question shows."""
        count = 0
        if proposal.plan is not None and proposal.parent is not None:
            proposal = self._results[proposal.parent].proposal  # what the plans were made for is shown
        while proposal.parent is not None:
            count += 1
            if not proposal.history:
                break
            proposal = self._results[proposal.parent].proposal
        return count
