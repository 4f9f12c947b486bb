"""The arguments of `verify`, `Verifier` and `Scorer` as problems and settings, and their engine and store."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from kernelproof.api.results import CandidateLike
from kernelproof.db.store import Store, open_store
from kernelproof.errors import UsageError
from kernelproof.jobs import Job, Judge, NewAttempt, Purpose
from kernelproof.jobs.judge import files_run, without_program
from kernelproof.problems import Suite, open_suite, read_problem
from kernelproof.runs.candidates import candidate_from_text
from kernelproof.runs.files import read_text
from kernelproof.runs.sizes import choose_size
from kernelproof.types import Problem, Verification, VerifySettings
from kernelproof.types.record import explain
from kernelproof.verifier.devices.discovery import default_backend
from kernelproof.verifier.engine.engine import Engine, require_device
from kernelproof.verifier.engine.stop import Stop
from kernelproof.workspace import DatabasePlace


class Rules:
    """Gives the problems that the arguments name, and the settings of each."""

    def __init__(self, suite: str | Path | None, unsafe: bool, settings: dict[str, Any]) -> None:
        """Raises UsageError for settings that make no sense."""
        self._path = Path(suite) if suite is not None else None
        self._suite: Suite | None = open_suite(self._path) if suite is not None else None
        chosen = {"backend": default_backend(), **settings}
        self._size = chosen.pop("size", None)
        try:
            self.settings = VerifySettings(unsafe=unsafe, **chosen)
        except ValidationError as error:
            raise UsageError(explain(error, known=VerifySettings.model_fields)) from None

    def problem(self, named: str | Path | Problem) -> Problem:
        """The problem that `named` means. Raises UsageError when there is none."""
        if isinstance(named, Problem):
            return named
        if isinstance(named, Path):
            return read_problem(named)
        if self._suite is None:
            self._suite = open_suite(self._path)
        return self._suite.find(named)

    def settings_for(self, problem: Problem) -> VerifySettings:
        """The settings with the size that this problem is verified at. Raises UsageError when it lacks it."""
        size = choose_size(self._size, self.settings.backend, [problem])
        return self.settings.model_copy(update={"size": size})


def text_of(source: str | Path) -> str:
    """The text itself, or what the file of this path holds. Raises UsageError as `read_text` does."""
    return read_text(source) if isinstance(source, Path) else source


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
