"""The client of one model: asks several questions at once, within the limits, and stores each answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from tempfile import mkdtemp
from typing import TypeAlias

import anyio

from kernelproof.db.store import Store
from kernelproof.db.views import AttemptLease
from kernelproof.errors import MachineError, ProviderError, ProviderFatal, StoreError
from kernelproof.jobs.leases import in_thread
from kernelproof.providers import AskEvent, Provider, Question
from kernelproof.providers.recording import RecordKey, append_record
from kernelproof.runs.config import Price, with_cost
from kernelproof.runs.events import Event, OnEvent, Phase
from kernelproof.runs.limits import Budget, EqualErrors
from kernelproof.types import AttemptKey, Problem, Prompt, Response, RunSettings, Status

_PHASES = {
    "sent": Phase.SENT,
    "streaming": Phase.ANSWERING,
    "waiting": Phase.WAITING,
    "batched": Phase.BATCHED,
    "arrived": Phase.BATCHED,
}

AwaitSlot: TypeAlias = "Callable[[], Awaitable[None]]"
"""Returns when an answer can be taken, see `Question.room`."""


class ModelClient:
    """The questions of one run. It ends when a limit is reached, or when the server refuses all questions."""

    def __init__(
        self,
        store: Store,
        provider: Provider,
        settings: RunSettings,
        owner: str,
        budget: Budget,
        errors: EqualErrors,
        on_event: OnEvent,
        *,
        questions: int,
        price: Price | None = None,
        more_to_come: Callable[[], bool] = lambda: False,
    ) -> None:
        """`questions`: how many the server may have at once. `more_to_come`: see `Question.more_to_come`."""
        self.provider = provider
        self.fatal: ProviderFatal | None = None
        """Why no question of this model can be answered."""
        self._store, self._settings, self._owner = store, settings, owner
        self._budget, self._errors, self._price, self._on_event = budget, errors, price, on_event
        self.questions = anyio.CapacityLimiter(questions)
        """The places at the server."""
        self._more_to_come = more_to_come
        self._kept: Path | None = None
        """Where answers are that could not be stored."""
        self._unanswered: set[anyio.CancelScope] = set()
        """Questions in flight of whose answer nothing came yet: given up when the server refuses all."""

    @property
    def is_open(self) -> bool:
        """Whether anything may still be asked."""
        return self.fatal is None and self._budget.reached is None

    @property
    def is_spent(self) -> bool:
        """Whether a limit ended the asking."""
        return self._budget.reached is not None

    async def ask(
        self, problem: Problem, key: AttemptKey, prompt: Prompt, lease: AttemptLease, await_slot: AwaitSlot
    ) -> Response | None:
        """The answer, stored. None when there was none: the attempt ended so, or was not asked for.

        Within one place of `questions`. `await_slot` is awaited before an answer of a batch is read.
        """
        if self.fatal is not None or not await in_thread(self._budget.may_ask):
            await self._give_back(lease)
            return None
        self._emit(key, Phase.ASKING, attempt_id=lease.state.id)
        try:
            response = await self._answer(problem, key, prompt, lease, await_slot)
        except ProviderError as error:
            await self._failed(lease.state.id, key, error)
            return None
        except ProviderFatal as error:
            self._refused(error)
            response = None
        if response is None:
            self._budget.failed()
            await self._give_back(lease)
            return None
        response = with_cost(response, self._price)
        with anyio.CancelScope(shield=True):  # an answer that was paid for is stored, whatever comes
            await in_thread(self._stored_or_kept, lease.state.id, key, response)
        self._errors.answered()
        self._budget.answered(response)
        self._emit(key, Phase.ANSWERED, attempt_id=lease.state.id, response=response)
        return response

    def _stored_or_kept(self, attempt_id: int, key: AttemptKey, response: Response) -> None:
        """Raises StoreError where the store fails; the answer then lies in a recording in the temporary
        directory."""
        try:
            self._store.record_response(attempt_id, response)
        except StoreError as error:
            record = RecordKey(key.problem_id, self._settings.verify.backend, key.sample, key.turn)
            try:
                self._kept = self._kept or Path(mkdtemp(prefix="answers-of-kernelproof-")) / "answers.jsonl"
                append_record(self._kept, record, response.raw)
            except (OSError, MachineError):
                raise error from None
            raise StoreError(f"{error}; answers that had come are in {self._kept}") from error

    async def _answer(
        self, problem: Problem, key: AttemptKey, prompt: Prompt, lease: AttemptLease, await_slot: AwaitSlot
    ) -> Response | None:
        """None when another question showed meanwhile that the server refuses all."""
        with anyio.CancelScope() as scope:

            def tell(what: AskEvent) -> None:
                if what.kind in ("streaming", "arrived"):
                    self._unanswered.discard(scope)  # it is being paid for
                facts = {"note": what.note, "tokens": what.tokens, "batch": what.batch}
                facts["attempt_id"] = lease.state.id
                self._emit(key, _PHASES[what.kind], **facts)

            question = Question(
                problem_id=problem.id,
                backend=self._settings.verify.backend,
                sample=key.sample,
                turn=key.turn,
                prompt=prompt,
                key=lease.key,
                tell=tell,
                room=await_slot,
                more_to_come=self._more_to_come,
            )
            self._unanswered.add(scope)
            try:
                return await self.provider.ask(question)
            finally:
                self._unanswered.discard(scope)
        return None

    async def _give_back(self, lease: AttemptLease) -> None:
        await in_thread(self._store.leases.give_back, self._owner, lease.key)

    async def _failed(self, attempt_id: int, key: AttemptKey, error: ProviderError) -> None:
        self._budget.failed()
        with anyio.CancelScope(shield=True):
            await in_thread(self._record_error, attempt_id, error)
        self._emit(key, Phase.ENDED, attempt_id=attempt_id, status=Status.PROVIDER_ERROR, note=str(error))
        if not error.of_question and (why := self._errors.failed(str(error))) is not None:
            self._refused(ProviderFatal(f"{self.provider.name}: {why}"))

    def _record_error(self, attempt_id: int, error: ProviderError) -> None:
        self._store.record_provider_error(attempt_id, str(error), retriable=error.retriable)
        self._store.finish_attempt(attempt_id, Status.PROVIDER_ERROR, self._owner)

    def _refused(self, error: ProviderFatal) -> None:
        if self.fatal is None:
            self.fatal = error
        for scope in list(self._unanswered):
            scope.cancel()

    def _emit(self, key: AttemptKey, phase: Phase, **facts: object) -> None:
        self._on_event(Event(self._settings.model, key, phase, **facts))  # type: ignore[arg-type]
