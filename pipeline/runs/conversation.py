"""One sample of a run: ask, extract, verify, and ask again with the evidence, until right or out of turns.

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
from pipeline.errors import ProviderError
from pipeline.extraction import extract
from pipeline.prompting import Failure, first_prompt, repair_prompt
from pipeline.providers import Provider, Question
from pipeline.runs.files import write_attempt
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
    generated: Path | None
    questions: anyio.CapacityLimiter
    verifications: anyio.CapacityLimiter
    on_event: OnEvent
    known: dict[AttemptKey, AttemptState] = field(default_factory=dict)


class Conversation:
    """The turns of one sample of one problem."""

    def __init__(self, stages: Stages, problem: Problem, sample: int) -> None:
        self._stages, self._problem, self._sample = stages, problem, sample
        self._settings = stages.settings.verify
        limit = stages.provider.turns(problem.id, self._settings.backend, sample)
        self._last = min(stages.settings.turns, limit or stages.settings.turns)

    async def run(self) -> None:
        """All turns that are still to do. Raises ProviderFatal when no question can be answered."""
        await self._turns()
        self._stages.on_event(self._key(self._last), OVER)

    async def _turns(self) -> None:
        prompt = await self._thread(self._first_prompt)
        parent: int | None = None
        for turn in range(1, self._last + 1):
            key = self._key(turn)
            state = self._stages.known.get(key)
            if state is not None and state.status is Status.CORRECT:
                return
            last = turn == self._last
            if last and state is not None and state.status is not None and state.status not in RETRIED:
                return
            attempt_id = await self._thread(
                self._stages.store.begin_attempt, self._stages.run_id, key, prompt, parent
            )
            ended = await self._turn(attempt_id, key, state, prompt)
            if ended is None or last:
                return
            response, failure = ended
            prompt = await self._thread(self._repair, prompt, response, failure)
            parent = attempt_id

    def _key(self, turn: int) -> AttemptKey:
        return AttemptKey(
            problem_id=self._problem.id,
            problem_sha256=self._problem.sha256,
            sample=self._sample,
            turn=turn,
        )

    async def _turn(
        self, attempt_id: int, key: AttemptKey, state: AttemptState | None, prompt: Prompt
    ) -> tuple[Response, Failure] | None:
        """One attempt; the response and what came of it, or None when the conversation is over."""
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
            return response, Failure.from_extraction(extraction)
        verdict = stored.verdict.verification if stored and stored.verdict else None
        if verdict is None or verdict.status in RETRIED:
            kind = "first" if verdict is None else "again"
            verdict = await self._verify(attempt_id, key, extraction.candidate.source, kind)
        await self._finish(attempt_id, key, verdict.status, response, extraction, verdict)
        if verdict.status is Status.CORRECT or verdict.status in RETRIED:
            return None
        return response, Failure.from_verification(verdict)

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

    def _first_prompt(self) -> Prompt:
        return first_prompt(
            self._problem,
            backend=self._settings.backend,
            size=self._settings.size,
            template=self._stages.settings.template or "",
            numerics=self._settings.numerics,
            purity=self._settings.purity,
        )

    def _repair(self, prompt: Prompt, response: Response, failure: Failure) -> Prompt:
        return repair_prompt(
            self._problem,
            backend=self._settings.backend,
            size=self._settings.size,
            template=self._stages.settings.template or "",
            previous=prompt,
            response=response,
            failure=failure,
        )

    async def _thread(self, function: Callable[..., T], *arguments: Any) -> T:
        return await anyio.to_thread.run_sync(lambda: function(*arguments))
