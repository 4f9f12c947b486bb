"""A batch: problems x samples x turns. The same settings continue the same run; only the rest is done."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio
from anyio.abc import TaskGroup

from db.store import Store
from pipeline.engine.engine import Engine
from pipeline.providers import Provider
from pipeline.runs.conversation import RETRIED, Conversation, OnEvent, Stages
from pipeline.runs.strategies import find_strategy
from pipeline.runs.stream import places
from pipeline.types import AttemptKey, Problem, RunSettings, Status


@dataclass(frozen=True)
class Plan:
    """What a batch is to do."""

    settings: RunSettings
    problems: Sequence[Problem]
    samples: int
    """Samples of each problem."""
    questions: int = 8
    """Questions asked of the model at the same time."""


@dataclass(frozen=True)
class Outcome:
    """How a batch ended."""

    run_id: int
    statuses: dict[AttemptKey, Status | None]
    """Every attempt of the plan's problems and samples; None where it was interrupted."""
    interrupted: bool

    @property
    def to_retry(self) -> int:
        """Attempts that running the same command again would take up."""
        return sum(status is None or status in RETRIED for status in self.statuses.values())


async def run_batch(
    plan: Plan,
    store: Store,
    engine: Engine,
    provider: Provider,
    *,
    generated: Path | None,
    on_event: OnEvent = lambda _key, _what: None,
) -> Outcome:
    """Runs a batch to its end, or to a SIGINT or SIGTERM; results stored by then stay.

    Raises ProviderFatal when the model's server will answer no question at all, and UsageError for a strategy
    that is not installed.
    """
    strategy = find_strategy(plan.settings.strategy_name)
    run_id = store.begin_run(plan.settings)
    for problem in plan.problems:
        store.add_problem(problem)
    stages = Stages(
        store=store,
        engine=engine,
        provider=provider,
        run_id=run_id,
        settings=plan.settings,
        strategy=strategy,
        generated=generated,
        questions=anyio.CapacityLimiter(plan.questions),
        verifications=anyio.CapacityLimiter(places()),
        on_event=on_event,
        known=store.attempts_of(run_id),
    )
    stopper = Stopper()
    try:
        async with anyio.create_task_group() as group:
            stopper.watch(group)
            async with anyio.create_task_group() as samples:
                for sample in range(plan.samples):
                    for problem in plan.problems:
                        samples.start_soon(Conversation(stages, problem, sample).run)
            group.cancel_scope.cancel()
    except BaseExceptionGroup as errors:
        raise first_error(errors) from None
    finally:
        engine.close()  # ends what cancelled tasks left running in their threads
    ids = {problem.id: problem.sha256 for problem in plan.problems}
    statuses = {
        key: state.status
        for key, state in store.attempts_of(run_id).items()
        if ids.get(key.problem_id) == key.problem_sha256 and key.sample < plan.samples
    }
    return Outcome(run_id, statuses, stopper.stopped)


class Stopper:
    """Turns the first SIGINT or SIGTERM into a clean end: every task is cancelled where it waits."""

    def __init__(self) -> None:
        self.stopped = False

    def watch(self, group: TaskGroup) -> None:
        """Starts watching; a second signal then has its ordinary effect."""
        group.start_soon(self._wait, group)

    async def _wait(self, group: TaskGroup) -> None:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async for _ in signals:
                self.stopped = True
                # Cancelled before the engine is closed: a verification that the closing ends is no failure.
                group.cancel_scope.cancel()
                return


def first_error(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first error inside a group: what the user must know; the others follow from it."""
    found: BaseException = errors
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found
