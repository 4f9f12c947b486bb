"""The engines that the benchmarks put behind the service, and call directly: with a note of every call.

The stand-in answers with the record of a real verification after a given time, in which it uses no core. So
compilers do not share the cores with the service, and its own cost is seen. As an engine has one device and
so many compilers, the stand-in has slots: who calls it waits for one.
"""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import IO, Any, Protocol

from kernelproof.hashing import sha256_text
from kernelproof.types import Problem, Verification, VerifySettings


class Verifies(Protocol):
    """The methods of an engine that a worker calls."""

    def verify(
        self, source: str, problem: Problem, settings: VerifySettings, *more: Any, **named: Any
    ) -> Verification: ...

    def close(self) -> None: ...


class StandIn:
    """Answers every candidate with the same verification, after so many seconds."""

    def __init__(self, verdict: Verification, seconds: float) -> None:
        """`seconds`: on average. A candidate's own time, always the same, lies between half and one and a
        half of that: calls that began together do not all end together."""
        self._verdict, self._seconds = verdict, seconds
        self._closed = threading.Event()

    def verify(
        self, source: str, problem: Problem, settings: VerifySettings, *more: Any, **named: Any
    ) -> Verification:
        """The record, as one of this candidate."""
        key = sha256_text(source)
        self._closed.wait(self._seconds * (0.5 + int(key[:8], 16) / 16**8))
        of = {"problem_id": problem.id, "problem_sha256": problem.sha256, "settings": settings}
        return self._verdict.model_copy(update={**of, "candidate_sha256": key})

    def close(self) -> None:
        """Ends the calls that are under way."""
        self._closed.set()


class Noted:
    """An engine, each of whose calls is noted in a file: which candidate, when it began, when it ended."""

    def __init__(self, engine: Verifies, notes: Path, slots: int) -> None:
        """`slots`: calls that the engine has at once; the others wait, and have not begun."""
        self._engine = engine
        self._file: IO[str] = notes.open("a", buffering=1)
        self._turn = threading.Lock()
        self._slots = threading.Semaphore(slots)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def __enter__(self) -> Noted:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def verify(
        self, source: str, problem: Problem, settings: VerifySettings, *more: Any, **named: Any
    ) -> Verification:
        """The engine's answer."""
        with self._slots:
            began = time.time()
            verdict = self._engine.verify(source, problem, settings, *more, **named)
            ended = time.time()
        line = json.dumps([sha256_text(source), began, ended])
        with self._turn:
            self._file.write(line + "\n")
        return verdict

    def close(self) -> None:
        """Ends the engine."""
        self._engine.close()


def read_notes(notes: Path) -> dict[str, tuple[float, float]]:
    """Beginning and end, in Unix time, of the last call for each candidate, by the SHA-256 of its source."""
    found = {}
    for line in notes.read_text().splitlines():
        key, began, ended = json.loads(line)
        found[key] = (began, ended)
    return found
