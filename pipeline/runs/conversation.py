"""One sample of a run: ask, extract, verify, and ask again with the evidence, as the run's strategy says.

Everything is stored as soon as it exists, the answer before it is parsed: a conversation that was
interrupted anywhere goes on from what the store holds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import anyio
import anyio.to_thread

from db.store import Store
from db.views import AttemptState
from pipeline.engine.engine import Engine
from pipeline.errors import ProviderError, UsageError
from pipeline.extraction import extract
from pipeline.prompting import Failure, first_prompt, repair_prompt
from pipeline.providers import Provider, Question
from pipeline.runs.files import write_attempt
from pipeline.runs.strategies import Proposal, Result, StrategyClass, Task
from pipeline.types import (
    AttemptKey,
    Extraction,
    Problem,
    Prompt,
    Response,
    RunSettings,
    Status,
    Verification,
)

T = TypeVar("T")
OnEvent = Callable[[AttemptKey, str], None]

OVER = "over"
"""The event that ends a sample, whatever its last attempt came to."""

RETRIED = (Status.PROVIDER_ERROR, Status.INFRASTRUCTURE_ERROR)
"""Attempts that ended so are taken up again when the same command is run again."""


@dataclass
class Stages:
    """What the conversations of a run share, and how many may be in each stage at once."""

    store: Store
    engine: Engine
    provider: Provider
    run_id: int
    settings: RunSettings
    strategy: StrategyClass
    generated: Path | None
    questions: anyio.CapacityLimiter
    verifications: anyio.CapacityLimiter
    on_event: OnEvent
    known: dict[AttemptKey, AttemptState] = field(default_factory=dict)


@dataclass(frozen=True)
class Judged:
    """An attempt that came to a judgement, with what a question that is built on it has to show."""

    id: int
    prompt: Prompt
    response: Response
    failure: Failure
    verification: Verification | None


class Conversation:
    """The attempts at one sample of one problem. Its strategy says which, and the store which are done."""

    def __init__(self, stages: Stages, problem: Problem, sample: int) -> None:
        self._stages, self._problem, self._sample = stages, problem, sample
        self._settings = stages.settings.verify
        limit = stages.provider.turns(problem.id, self._settings.backend, sample)
        self._last = min(stages.settings.turns, limit or stages.settings.turns)
        self._judged: dict[int, Judged] = {}
        """By turn: all that the strategy was told of."""

    async def run(self) -> None:
        """All attempts that are still to do. Raises ProviderFatal when no question can be answered."""
        await self._rounds()
        self._stages.on_event(self._key(self._last), OVER)

    async def _rounds(self) -> None:
        """Asks the strategy, tries what it proposes, tells it the results; until it or the turns end."""
        task = Task(self._problem, self._settings.backend, self._sample, self._last)
        strategy = self._stages.strategy(task)
        turn = 1
        while proposals := tuple(strategy.ask())[: self._last + 1 - turn]:
            asked = dict(enumerate(proposals, start=turn))
            turn += len(asked)
            if turn > self._last and all(map(self._settled, asked)):
                return  # the turns are used up, and nothing of this round is left to do
            judged = await self._round(asked)
            if len(judged) < len(asked):
                return  # the same command takes up what the provider or the machine failed at
            self._judged |= judged
            strategy.tell([self._result(number, proposal) for number, proposal in asked.items()])

    async def _round(self, asked: dict[int, Proposal]) -> dict[int, Judged]:
        """Makes attempts at the same time; returns those that came to a judgement, by turn."""
        judged: dict[int, Judged] = {}

        async def attempt(turn: int, proposal: Proposal) -> None:
            if ended := await self._attempt(turn, proposal):
                judged[turn] = ended

        async with anyio.create_task_group() as group:
            for turn, proposal in asked.items():
                group.start_soon(attempt, turn, proposal)
        return judged

    async def _attempt(self, turn: int, proposal: Proposal) -> Judged | None:
        """One attempt, as far as it is not done; None when it came to no judgement."""
        key = self._key(turn)
        state = self._stages.known.get(key)
        parent = self._parent(proposal)
        prompt = await self._thread(self._prompt, parent)
        if state is not None and state.status is Status.CORRECT:
            return await self._thread(self._stored, state.id, prompt)
        attempt_id = await self._thread(
            self._stages.store.begin_attempt, self._stages.run_id, key, prompt, parent.id if parent else None
        )
        return await self._turn(attempt_id, key, state, prompt)

    def _settled(self, turn: int) -> bool:
        """Whether an attempt is done, and running the command again changes nothing."""
        state = self._stages.known.get(self._key(turn))
        return state is not None and state.status is not None and state.status not in RETRIED

    def _parent(self, proposal: Proposal) -> Judged | None:
        """The attempt that a proposal is built on. Raises UsageError for a turn that is not done."""
        if proposal.parent is None:
            return None
        if proposal.parent not in self._judged:
            raise UsageError(f"the run's strategy builds on turn {proposal.parent}, of which it was not told")
        return self._judged[proposal.parent]

    def _result(self, turn: int, proposal: Proposal) -> Result:
        judged = self._judged[turn]
        return Result(proposal, turn, judged.failure.status, judged.verification)

    def _key(self, turn: int) -> AttemptKey:
        return AttemptKey(
            problem_id=self._problem.id,
            problem_sha256=self._problem.sha256,
            sample=self._sample,
            turn=turn,
        )

    def _stored(self, attempt_id: int, prompt: Prompt) -> Judged | None:
        """A correct attempt as it lies in the store: nothing of it is done again."""
        stored = self._stages.store.load_attempt(attempt_id)
        if stored.response is None or stored.verdict is None:
            return None
        verdict = stored.verdict.verification
        if verdict.status is not Status.CORRECT:
            return None  # what counts of it was changed since; nothing is built on it
        return Judged(attempt_id, prompt, stored.response, Failure.from_verification(verdict), verdict)

    async def _turn(
        self, attempt_id: int, key: AttemptKey, state: AttemptState | None, prompt: Prompt
    ) -> Judged | None:
        """Takes an attempt to its end from wherever it is; None when it came to no judgement."""
        stored = await self._thread(self._stages.store.load_attempt, attempt_id) if state else None
        response = stored.response if stored else None
        if response is None:
            response = await self._ask(attempt_id, key, prompt)
            if response is None:
                return None
        extraction = await self._thread(extract, response)
        await self._thread(self._stages.store.record_extraction, attempt_id, extraction)
        if extraction.candidate is None:
            status = extraction.status or Status.NO_CODE
            await self._finish(attempt_id, key, status, response, extraction, None)
            return Judged(attempt_id, prompt, response, Failure.from_extraction(extraction), None)
        verdict = stored.verdict.verification if stored and stored.verdict else None
        if verdict is None or verdict.status in RETRIED:
            kind = "first" if verdict is None else "again"
            verdict = await self._verify(attempt_id, key, extraction.candidate.source, kind)
        await self._finish(attempt_id, key, verdict.status, response, extraction, verdict)
        if verdict.status in RETRIED:
            return None
        return Judged(attempt_id, prompt, response, Failure.from_verification(verdict), verdict)

    async def _ask(self, attempt_id: int, key: AttemptKey, prompt: Prompt) -> Response | None:
        question = Question(
            problem_id=self._problem.id,
            backend=self._settings.backend,
            sample=self._sample,
            turn=key.turn,
            prompt=prompt,
        )
        try:
            async with self._stages.questions:
                self._stages.on_event(key, "asking")
                response = await self._stages.provider.ask(question)
        except ProviderError as error:
            with anyio.CancelScope(shield=True):
                await self._thread(self._stages.store.record_provider_error, attempt_id, str(error))
                await self._finish(attempt_id, key, Status.PROVIDER_ERROR, None, None, None)
            return None
        with anyio.CancelScope(shield=True):  # an answer that was paid for is stored, whatever comes
            await self._thread(self._stages.store.record_response, attempt_id, response)
        return response

    async def _verify(self, attempt_id: int, key: AttemptKey, source: str, kind: Any) -> Verification:
        def on_stage(stage: str) -> None:
            self._stages.on_event(key, stage)

        def work() -> Verification:
            verdict = self._stages.engine.verify(source, self._problem, self._settings, on_stage)
            self._stages.store.record_verification(attempt_id, verdict, kind)
            return verdict

        return await anyio.to_thread.run_sync(
            work, limiter=self._stages.verifications, abandon_on_cancel=True
        )

    async def _finish(
        self,
        attempt_id: int,
        key: AttemptKey,
        status: Status,
        response: Response | None,
        extraction: Extraction | None,
        verdict: Verification | None,
    ) -> None:
        known = self._stages.known.get(key)
        if known is not None and known.status is status and status not in RETRIED:
            return  # it ended so in an earlier process; only the turns after it are still to do
        if self._stages.generated is not None:
            await self._thread(
                write_attempt, self._stages.generated, attempt_id, key, response, extraction, verdict
            )
        await self._thread(self._stages.store.finish_attempt, attempt_id, status)
        self._stages.on_event(key, status.value)

    def _prompt(self, parent: Judged | None) -> Prompt:
        """The question of an attempt: the problem's first one, or one that shows the parent's evidence."""
        template = self._stages.settings.template or ""
        if parent is None:
            return first_prompt(
                self._problem,
                backend=self._settings.backend,
                size=self._settings.size,
                template=template,
                numerics=self._settings.numerics,
                purity=self._settings.purity,
            )
        return repair_prompt(
            self._problem,
            backend=self._settings.backend,
            size=self._settings.size,
            template=template,
            previous=parent.prompt,
            response=parent.response,
            failure=parent.failure,
        )

    async def _thread(self, function: Callable[..., T], *arguments: Any) -> T:
        return await anyio.to_thread.run_sync(lambda: function(*arguments))
