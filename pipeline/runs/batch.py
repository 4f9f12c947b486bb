"""A batch: problems x samples x turns, for one or more models. The same settings continue the same runs."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import TaskGroup

from kernelproof.db.store import Store
from kernelproof.errors import ProviderFatal, StoreError
from kernelproof.jobs import RETRIED, Judge
from kernelproof.jobs.judge import places
from kernelproof.jobs.leases import LeaseKeeper
from kernelproof.providers import KeepsBatches, Provider
from kernelproof.runs.config import Price
from kernelproof.runs.conversation import Conversation
from kernelproof.runs.events import OnEvent
from kernelproof.runs.gain_scheduler import GainScheduler
from kernelproof.runs.limits import Budget, EqualErrors, Limits
from kernelproof.runs.model_client import ModelClient
from kernelproof.runs.run_context import RunContext
from kernelproof.runs.shutdown import Report, Shutdown
from kernelproof.runs.strategies import find_strategy
from kernelproof.types import AttemptKey, Problem, RunSettings, Status
from kernelproof.verifier.engine.engine import Engine

AHEAD = 2
"""Answers that may wait to be judged, for each verification that may run."""


@dataclass(frozen=True)
class RunPlan:
    settings: RunSettings
    provider: Provider
    problems: Sequence[Problem]
    samples: int
    questions: int = 8
    price: Price | None = None
    context_length: int | None = None
    """Tokens that the model's context holds, as far as the user says it."""


@dataclass(frozen=True)
class Terms:
    """What a batch keeps to, whatever its models."""

    limits: Limits = field(default_factory=Limits)
    again: frozenset[Status] = frozenset()
    """Only attempts that ended so are done again; empty: all that is left is done."""
    config: dict[str, Any] = field(default_factory=dict)
    """Everything the command was told, for `status` and `--like`."""
    divides: bool = False
    """Whether the next question goes where most is expected of it; else samples ask in their order."""
    generated: Path | None = None
    """Where answers and sources are written for people to read."""


@dataclass(frozen=True)
class Outcome:
    statuses: dict[tuple[str, AttemptKey], Status | None]
    """Every attempt of the plans, by model; None where it was interrupted."""
    interrupted: bool = False
    limit: str | None = None
    refusals: tuple[ProviderFatal, ...] = ()
    refused_for_good: int = 0
    """Questions that the server refuses whenever it is asked: too long for the model, say."""

    @property
    def to_retry(self) -> int:
        """Attempts that running the same command again would take up."""
        left = sum(status is None or status in RETRIED for status in self.statuses.values())
        return left - self.refused_for_good

    @property
    def ended(self) -> str:
        if self.interrupted:
            return "interrupted"
        if self.refusals:
            return f"stopped: {self.refusals[0]}"
        return f"limit reached: {self.limit}" if self.limit else "done"


async def run_batch(
    plans: Sequence[RunPlan],
    store: Store,
    engine: Engine,
    terms: Terms | None = None,
    *,
    on_event: OnEvent = lambda _: None,
    progress: Callable[[], dict[str, Any]] = dict,
    unread: Callable[[], bool] = lambda: False,
) -> Outcome:
    """Runs a batch to its end, to a limit, or to a SIGINT or SIGTERM; results stored by then stay.

    `progress` is stored every two seconds, for other commands to show. Raises UsageError for a strategy that
    is not installed, MachineError when the store or this machine fails, and OutputClosed, after all is
    ended and what was answered is stored, when `on_event` or `unread` says that nobody reads any more.
    """
    shutdown = Shutdown(on_event, unread)
    batch = _Batch(plans, store, engine, terms or Terms(), shutdown.hear, progress)
    try:
        async with shutdown.work(engine) as group:
            batch.keep_alive(group)
            await batch.work()
    except BaseException as error:
        batch.close(f"stopped: {error}")
        raise
    outcome = batch.outcome(shutdown.stopped)
    batch.close(shutdown.words(outcome.ended))
    shutdown.raise_if_gone("what was answered is stored, and the same command continues")
    return outcome


class _Batch:
    def __init__(
        self,
        plans: Sequence[RunPlan],
        store: Store,
        engine: Engine,
        terms: Terms,
        on_event: OnEvent,
        progress: Callable[[], dict[str, Any]],
    ) -> None:
        strategies = [find_strategy(plan.settings.strategy_name) for plan in plans]
        self._plans, self._store = plans, store
        self._leases = LeaseKeeper(store)
        self._runs = [store.begin_run(plan.settings) for plan in plans]
        for problem in {id(p): p for plan in plans for p in plan.problems}.values():
            store.add_problem(problem)
        self._budget = Budget(terms.limits, lambda: store.spent(self._runs))
        judge = Judge(engine, store, self._leases, anyio.CapacityLimiter(places()))
        answer_slots = anyio.CapacityLimiter(AHEAD * places())
        self._clients = [self._client_for(plan, terms, on_event, answer_slots) for plan in plans]
        places_at_once = sum(plan.questions for plan in plans)
        self._scheduler = GainScheduler(places_at_once) if terms.divides else None
        self._contexts = [
            RunContext(
                store=store,
                judge=judge,
                client=client,
                leases=self._leases,
                run_id=run_id,
                settings=plan.settings,
                strategy=strategy,
                generated=terms.generated,
                answer_slots=answer_slots,
                on_event=on_event,
                scheduler=self._scheduler,
                again=terms.again,
                known=store.attempts_of(run_id),
            )
            for plan, run_id, strategy, client in zip(
                plans, self._runs, strategies, self._clients, strict=True
            )
        ]
        name = plans[0].settings.name
        self._report = Report(store, self._leases.owner, name, self._runs, terms.config, progress)

    def _client_for(
        self, plan: RunPlan, terms: Terms, on_event: OnEvent, answer_slots: anyio.CapacityLimiter
    ) -> ModelClient:
        if isinstance(plan.provider, KeepsBatches):
            plan.provider.keep_batches(self._store.server_batches)
        return ModelClient(
            self._store,
            plan.provider,
            plan.settings,
            self._leases.owner,
            self._budget,
            EqualErrors(terms.limits.equal_errors),
            on_event,
            questions=plan.questions,
            price=plan.price,
            more_to_come=lambda: answer_slots.borrowed_tokens > 0,
        )

    def keep_alive(self, group: TaskGroup) -> None:
        """Keeps leases and the batch's row alive, in `group`."""
        self._leases.start(group)
        group.start_soon(self._report.run)

    async def work(self) -> None:
        """All samples: first those that no other command is at, then the others as they become free.

        A few more are at work than can be asked at once: the others' answers are being judged.
        """
        todo = self._samples()
        elsewhere: deque[Conversation] = deque()

        async def first() -> None:
            for conversation in todo:
                if not await conversation.run(wait=False):
                    elsewhere.append(conversation)

        async def rest() -> None:
            while elsewhere:
                await elsewhere.popleft().run(wait=True)

        total = sum(len(plan.problems) * plan.samples for plan in self._plans)
        workers = min(total, sum(plan.questions for plan in self._plans) + AHEAD * places())
        if self._scheduler is not None:  # all of them wait for their turn, none asks before all have told
            every = [*todo]
            for conversation in every:
                self._scheduler.expect(conversation)
            workers, todo = total, iter(every)
        for work in (first, rest):
            async with anyio.create_task_group() as group:
                for _ in range(workers):
                    group.start_soon(work)

    def _samples(self) -> Iterator[Conversation]:
        for sample in range(max(plan.samples for plan in self._plans)):
            for plan, context in zip(self._plans, self._contexts, strict=True):
                if sample < plan.samples:
                    for problem in plan.problems:
                        yield Conversation(context, problem, sample)

    def close(self, ended: str) -> None:
        """Gives the leases back and says how it ended, as far as the store can still be written."""
        self._leases.close()
        with suppress(StoreError):  # the error that is on its way to the user says it
            self._report.close(ended)

    def outcome(self, interrupted: bool) -> Outcome:
        statuses, final = {}, 0
        for plan, run_id in zip(self._plans, self._runs, strict=True):
            ids = {problem.id: problem.sha256 for problem in plan.problems}
            for key, state in self._store.attempts_of(run_id).items():
                if ids.get(key.problem_id) == key.problem_sha256 and key.sample < plan.samples:
                    statuses[plan.settings.model, key] = state.status
                    final += state.status is Status.PROVIDER_ERROR and not state.retriable
        refusals = tuple(client.fatal for client in self._clients if client.fatal is not None)
        return Outcome(statuses, interrupted, self._budget.reached, refusals, final)
