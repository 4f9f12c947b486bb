"""The engine and the store of a `Verifier`, as long as it is open."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kernelproof.api.results import CandidateLike
from kernelproof.api.rules import Rules, text_of
from kernelproof.db.store import Store, open_store
from kernelproof.jobs import Job, Judge, NewAttempt, Purpose
from kernelproof.jobs.job import files_run, without_program
from kernelproof.runs.candidates import candidate_from_text
from kernelproof.types import Verification
from kernelproof.verifier.engine.engine import Engine, require_device
from kernelproof.verifier.engine.stop import Stop
from kernelproof.workspace import DatabasePlace

CLOSING_SECONDS = 10.0
"""Most seconds to wait for threads whose candidates were ended."""


class Judging:
    """Judges candidates in the threads that call, and keeps the results where there is a store."""

    def __init__(
        self, rules: Rules, cache: Path | None, place: DatabasePlace | None, label: str | None
    ) -> None:
        """Raises MachineError for what this machine lacks, StoreError when the store cannot be used."""
        require_device(rules.settings.backend)
        self._rules, self._label = rules, label
        self._store: Store | None = open_store(place) if place is not None else None
        self._engine = Engine(cache, unsafe=rules.settings.unsafe, many=True)
        self._judge = Judge(self._engine, self._store)
        self._changed = threading.Condition()
        self._at_work = 0

    def judge(self, candidate: CandidateLike, stop: Stop) -> tuple[Verification, int | None]:
        """The verification, and the number of the attempt that keeps it. What comes after `stop` was asked is
        not kept. Raises UsageError, MachineError, Stopped."""
        with self._counted():
            stop.check()
            problem = self._rules.problem(candidate.problem)
            settings = self._rules.settings_for(problem)
            given = candidate_from_text("", text_of(candidate.source), problem)
            keep = NewAttempt(files_run(settings, self._label), given.response) if self._store else None
            job = Job(problem, given.extraction, settings, keep, Purpose.MEASUREMENT)
            verdict = self._judge.judge(job, stop=stop)
            return verdict.verification or without_program(job), verdict.attempt_id

    @contextmanager
    def _counted(self) -> Iterator[None]:
        with self._changed:
            self._at_work += 1
        try:
            yield
        finally:
            with self._changed:
                self._at_work -= 1
                self._changed.notify_all()

    def close(self) -> None:
        """Ends everything that was started, and closes the store. Every candidate's stop is asked before."""
        self._engine.close()
        with self._changed:
            self._changed.wait_for(lambda: not self._at_work, CLOSING_SECONDS)
        if self._store is not None:
            self._store.close()
