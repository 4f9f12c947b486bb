"""`Scorer`: one number and one text for each program, for a search that another program leads."""

from __future__ import annotations

import atexit
import os
import threading
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from kernelproof.api.judging import Rules, text_of
from kernelproof.db.store import Store, open_store
from kernelproof.errors import MachineError, UsageError
from kernelproof.jobs import Job, Judge, NewAttempt, Verdict
from kernelproof.jobs.judge import files_run
from kernelproof.runs.candidates import candidate_from_text
from kernelproof.runs.prompts import feedback_text, first_question, template_of_searches
from kernelproof.types import Problem, Prompt, Status, Verification
from kernelproof.verifier.devices.discovery import interprets
from kernelproof.verifier.engine.engine import Engine, require_device
from kernelproof.workspace import open_workspace


@dataclass(frozen=True)
class Score:
    """The score of one program, and a text for its author."""

    value: float
    """The lower end of the speedup's interval, 1 at most where the pace is unresolved; 0 for a program that
    is not correct."""
    feedback: str
    """The evidence, in the words of a repair prompt: errors, or the times and what bounds them."""
    status: Status
    verification: Verification | None
    """None when the text held no program."""
    attempt_id: int
    """Its number in the workspace: `kernelproof show NUMBER`."""
    kept: bool
    """Whether it was verified before, and is taken from the workspace."""
    busy: str = ""
    """What shows that the machine was busy meanwhile, so that noise may have lowered the score; empty where
    it was quiet enough. The sentence is for people."""

    @property
    def correct(self) -> bool:
        """Whether the program may be the answer."""
        return self.status is Status.CORRECT


class Scorer:
    """Scores programs for one problem. Thread-safe.

        scorer = Scorer("level1/2", backend="cpp", rigor="quick", run="my search")
        score = scorer.score(source)
        score.value, score.feedback

    The program is text for the process that calls: it is built and run in the sandbox alone. Every result is
    kept in the workspace, as an attempt of the run. A program with a kept result is not verified again.
    Processes of the scorer end with `close`, with the `with` block, or with the caller's process.
    """

    def __init__(
        self,
        problem: str | Path | Problem,
        *,
        run: str | None = None,
        workspace: str | Path | None = None,
        suite: str | Path | None = None,
        unsafe: bool = False,
        cache: str | Path | None = None,
        **settings: Any,
    ) -> None:
        """`run`: the name that the results are kept under. `workspace`: as `--workspace` of the commands. The
        rest is as in `verify`. Starts nothing.

        Raises UsageError for bad arguments, MachineError where this machine cannot run or time the backend.
        """
        rules = Rules(suite, unsafe, settings)
        self.problem = rules.problem(problem)
        self.settings = rules.settings_for(self.problem)
        if not self.settings.measure:
            raise UsageError("a score is a speedup: leave measure on")
        require_device(self.settings.backend)
        if interprets(self.settings.backend):
            raise MachineError(f"{self.settings.backend} programs are interpreted here, and never timed")
        self._run, self._cache = run, Path(cache) if cache is not None else None
        self._workspace = open_workspace(Path(workspace) if workspace is not None else None)
        self._open: _Open | None = None
        self._lock = threading.Lock()

    @cached_property
    def prompt(self) -> Prompt:
        """The first question about the problem: rules, reference, and an example of an answer."""
        return first_question(self.problem, self.settings, template_of_searches())

    def score(self, source: str | Path) -> Score:
        """The score of a program: its text or a model's answer that holds one, or the path of a file.

        Raises MachineError when this machine failed: nothing is known of the program, so it has no score, not
        even 0. Raises UsageError for a file that cannot be read, and a problem whose own code fails.
        """
        text = text_of(source)
        given = candidate_from_text(self._run or "score", text, self.problem)
        opened = self._opened()
        keep = NewAttempt(files_run(self.settings, self._run), given.response)
        done = opened.judge.judge(Job(self.problem, given.extraction, self.settings, keep))
        if not done.status.counts_against_model:
            why = done.verification.reason if done.verification else done.status.meaning
            raise MachineError(f"this machine failed, and the program has no score: {why}")
        return self._scored(done)

    def _scored(self, done: Verdict) -> Score:
        assert done.attempt_id is not None
        measured = done.measurement
        value = measured.claimed if measured is not None and done.status is Status.CORRECT else 0.0
        return Score(
            value=value,
            feedback=feedback_text(self.problem, self.settings, done.extraction, done.verification),
            status=done.status,
            verification=done.verification,
            attempt_id=done.attempt_id,
            kept=done.reused,
            busy=measured.busy if measured is not None else "",
        )

    def _opened(self) -> _Open:
        """Engine and store of this process; a forked child has its own."""
        with self._lock:
            if self._open is None or self._open.process != os.getpid():
                store = open_store(self._workspace.database)
                engine = Engine(self._cache, unsafe=self.settings.unsafe, many=True)
                self._open = _Open(os.getpid(), engine, store, Judge(engine, store))
                atexit.register(self.close)
            return self._open

    def close(self) -> None:
        """Ends what the scorer has started. A score that is asked for afterwards starts it anew."""
        with self._lock:
            opened, self._open = self._open, None
        if opened is not None and opened.process == os.getpid():
            atexit.unregister(self.close)
            opened.engine.close()
            opened.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(frozen=True)
class _Open:
    """The engine and the store that a scorer has opened, and the process that did."""

    process: int
    engine: Engine
    store: Store
    judge: Judge
