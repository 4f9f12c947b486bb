"""Stored answers judged again: under other settings, at other sizes, by the current policy. Asks nothing."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import anyio

from kernelproof.db.store import Store
from kernelproof.db.types import utc_now
from kernelproof.db.views import StoredAttempt
from kernelproof.errors import StoreError
from kernelproof.jobs import AppendTo, Job, Judge, Purpose
from kernelproof.jobs.judge import places
from kernelproof.jobs.leases import LeaseKeeper, in_thread
from kernelproof.runs.batch import REPORT_S
from kernelproof.runs.ending import Listener, Stopper, first_error
from kernelproof.runs.events import Event, OnEvent, Phase
from kernelproof.types import RunSettings, Status, Verification, VerifySettings
from kernelproof.verifier.engine.engine import Engine


@dataclass(frozen=True)
class Rejudged:
    """How a rejudging ended."""

    statuses: dict[int, Status]
    """Attempt to its status under the settings."""
    kept: int
    """Attempts that were judged so before, by this version."""
    without_program: int
    """Attempts whose answer holds no program: nothing is to be judged."""
    missing: int
    """Attempts that an interruption left undone."""
    changed: dict[int, tuple[Status, Status]]
    """Attempts that ended otherwise than before: their old and new status."""


async def rejudge(
    run_ids: Sequence[int],
    settings: Callable[[RunSettings, StoredAttempt], VerifySettings],
    store: Store,
    engine: Engine,
    *,
    again: bool = False,
    only: Collection[int] | None = None,
    config: dict[str, Any] | None = None,
    on_event: OnEvent = lambda _: None,
    progress: Callable[[], dict[str, Any]] = dict,
    unread: Callable[[], bool] = lambda: False,
) -> Rejudged:
    """Verifies every stored program of these runs, and keeps each verification beside the earlier ones.

    `only`: the attempts that are meant, where not all of the runs are.
    An attempt that has a verification with these settings by this version of kernelproof is left alone,
    unless `again`. The same call after an interruption does the rest. Raises what `Engine.verify` raises, and
    OutputClosed when `on_event` or `unread` says that nobody reads any more.
    """
    listener = Listener(on_event, unread)
    work = _Work(run_ids, settings, store, engine, again, only, config or {}, listener.hear)
    stopper = Stopper()
    try:
        async with anyio.create_task_group() as group:
            stopper.watch(group)
            work.leases.start(group)
            group.start_soon(listener.watch, group)
            group.start_soon(_report, store, work.batch, progress)
            async with anyio.create_task_group() as workers:
                for _ in range(min(len(work.todo), places())):
                    workers.start_soon(work.run)
            group.cancel_scope.cancel()
    except BaseExceptionGroup as errors:
        error = first_error(errors)
        with suppress(StoreError):  # the error that is on its way to the user says it
            work.close(progress(), f"stopped: {error}")
        raise error from None
    finally:
        engine.close()  # ends what cancelled tasks left running in their threads
    ended = "nobody read its output" if listener.gone else "interrupted" if stopper.stopped else "done"
    work.close(progress(), ended)
    listener.raise_if_gone("what was judged is stored, and the same command continues")
    return work.outcome()


async def _report(store: Store, batch: int, progress: Callable[[], dict[str, Any]]) -> None:
    while True:
        await anyio.sleep(REPORT_S)
        await in_thread(store.batches.report, batch, progress())


class _Work:
    """The attempts to judge, and what came of them."""

    def __init__(
        self,
        run_ids: Sequence[int],
        settings: Callable[[RunSettings, StoredAttempt], VerifySettings],
        store: Store,
        engine: Engine,
        again: bool,
        only: Collection[int] | None,
        config: dict[str, Any],
        on_event: OnEvent,
    ) -> None:
        self._settings, self._store, self._on_event = settings, store, on_event
        self._purpose = Purpose.MEASUREMENT if again else Purpose.CURRENT
        self.leases = LeaseKeeper(store)
        self._judge = Judge(engine, store, self.leases, anyio.CapacityLimiter(places()))
        config = {"rejudge": {**config, "again": again}}
        self._since = _since(store, list(run_ids), config)
        self.batch = store.batches.begin(
            self.leases.owner, None, list(run_ids), {**config, "since": self._since}
        )
        self.todo: deque[int] = deque()
        self._without_program = 0
        for run_id in run_ids:
            for state in store.attempts_of(run_id).values():
                if only is not None and state.id not in only:
                    continue
                if state.has_candidate:
                    self.todo.append(state.id)
                else:
                    self._without_program += 1
        self._total = len(self.todo)
        self._statuses: dict[int, Status] = {}
        self._changed: dict[int, tuple[Status, Status]] = {}
        self._kept = 0

    async def run(self) -> None:
        """Takes attempts until none is left."""
        while self.todo:
            await self._one(self.todo.popleft())

    async def _one(self, attempt_id: int) -> None:
        stored = await in_thread(self._store.load_attempt, attempt_id)
        assert stored.extraction is not None
        settings, before = self._settings(stored.run, stored), stored.verdict
        keep = AppendTo(
            attempt_id,
            "again" if stored.verifications else "first",
            finish=settings.setting == stored.run.verify.setting,
        )
        job = Job(stored.problem, stored.extraction, settings, keep, self._purpose, self._since)

        def on_stage(stage: str) -> None:
            event = Event(stored.run.model, stored.key, Phase.JUDGING, note=stage, attempt_id=stored.id)
            self._on_event(event)

        verdict = await self._judge.submit(job, on_stage)
        assert verdict is not None and verdict.verification is not None
        if verdict.reused:
            self._kept += 1
        elif before is not None and before.verification.status is not verdict.status:
            self._changed[attempt_id] = before.verification.status, verdict.status
        self._ended(stored, verdict.verification, kept=verdict.reused)

    def _ended(self, stored: StoredAttempt, verdict: Verification, *, kept: bool = False) -> None:
        self._statuses[stored.id] = verdict.status
        facts: dict[str, Any] = {"attempt_id": stored.id, "status": verdict.status, "kept": kept}
        model, key = stored.run.model, stored.key
        self._on_event(Event(model, key, Phase.ENDED, verification=verdict, **facts))
        self._on_event(Event(model, key, Phase.OVER, **facts))

    def close(self, progress: dict[str, Any], ended: str) -> None:
        """Gives the leases back and says how it ended."""
        self.leases.close()
        self._store.batches.report(self.batch, progress, ended)

    def outcome(self) -> Rejudged:
        """What came of it."""
        missing = self._total - len(self._statuses)
        return Rejudged(self._statuses, self._kept, self._without_program, missing, self._changed)


def _since(store: Store, run_ids: list[int], config: dict[str, Any]) -> str:
    """When this rejudging began: now, or earlier when the newest one like it did not come to its end."""
    for batch in store.batches.newest(most=50):
        told = dict(batch.config)
        began = told.pop("since", None)
        if list(batch.runs) == run_ids and told == config:
            return str(began) if began and batch.ended != "done" else utc_now()
    return utc_now()
