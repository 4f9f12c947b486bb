"""Stored answers judged again: under other settings, at other sizes, by the current policy. Asks nothing."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import anyio

from kernelproof.db.columns import utc_now
from kernelproof.db.store import Store
from kernelproof.db.views import StoredAttempt
from kernelproof.errors import StoreError
from kernelproof.jobs import Job, Judge, Purpose
from kernelproof.jobs.judge import places
from kernelproof.jobs.leases import LeaseKeeper, in_thread
from kernelproof.runs.events import Event, OnEvent, Phase
from kernelproof.runs.shutdown import Report, Shutdown
from kernelproof.types import RunSettings, Status, Verification, VerifySettings
from kernelproof.verifier.engine.engine import Engine


@dataclass(frozen=True)
class Rejudged:
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
    sanitize: bool = False,
    config: dict[str, Any] | None = None,
    on_event: OnEvent = lambda _: None,
    progress: Callable[[], dict[str, Any]] = dict,
    unread: Callable[[], bool] = lambda: False,
) -> Rejudged:
    """Verifies every stored program of these runs, and keeps each verification beside the earlier ones.

    `only`: the attempts that are meant, where not all of the runs are.
    An attempt that has a verification with these settings by this version of kernelproof is left alone,
    unless `again`, or with `sanitize` one of which sanitizers were not asked. The same call after an
    interruption does the rest. Raises what `Engine.verify` raises, and OutputClosed when `on_event` or
    `unread` says that nobody reads any more.
    """
    shutdown = Shutdown(on_event, unread)
    chosen = (again, only, sanitize)
    work = _Work(run_ids, settings, store, engine, *chosen, config or {}, shutdown.hear, progress)
    try:
        async with shutdown.work(engine) as group:
            work.leases.start(group)
            group.start_soon(work.report.run)
            async with anyio.create_task_group() as workers:
                for _ in range(min(len(work.todo), places())):
                    workers.start_soon(work.run)
    except BaseException as error:
        with suppress(StoreError):  # the error that is on its way to the user says it
            work.close(f"stopped: {error}")
        raise
    work.close(shutdown.words())
    shutdown.raise_if_gone("what was judged is stored, and the same command continues")
    return work.outcome()


class _Work:
    def __init__(
        self,
        run_ids: Sequence[int],
        settings: Callable[[RunSettings, StoredAttempt], VerifySettings],
        store: Store,
        engine: Engine,
        again: bool,
        only: Collection[int] | None,
        sanitize: bool,
        config: dict[str, Any],
        on_event: OnEvent,
        progress: Callable[[], dict[str, Any]],
    ) -> None:
        self._settings, self._store, self._on_event = settings, store, on_event
        self._sanitize = sanitize
        self._purpose = Purpose.MEASUREMENT if again else Purpose.CURRENT
        self.leases = LeaseKeeper(store)
        self._judge = Judge(engine, store, self.leases, anyio.CapacityLimiter(places()))
        config = {"rejudge": {**config, "again": again}}
        self._since = _since(store, list(run_ids), config)
        config = {**config, "since": self._since}
        self.report = Report(store, self.leases.owner, None, list(run_ids), config, progress)
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
        while self.todo:
            await self._one(self.todo.popleft())

    async def _one(self, attempt_id: int) -> None:
        stored = await in_thread(self._store.load_attempt, attempt_id)
        settings, before = self._settings(stored.run, stored), stored.verdict
        job = Job.of_attempt(
            *(stored, settings, "again" if stored.verifications else "first"),
            finish=settings.setting == stored.run.verify.setting,
            purpose=self._purpose,
            since=self._since,
            sanitize=self._sanitize,
        )

        def on_stage(stage: str) -> None:
            event = Event(stored.run.model, stored.key, Phase.JUDGING, note=stage, attempt_id=stored.id)
            self._on_event(event)

        verdict = await self._judge.submit(job, stored, on_stage)
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

    def close(self, ended: str) -> None:
        self.leases.close()
        self.report.close(ended)

    def outcome(self) -> Rejudged:
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
