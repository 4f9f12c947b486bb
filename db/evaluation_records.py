"""The records that the queue of the evaluation service takes and gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kernelproof.types import FrozenRecord, Problem, VerifySettings

State = Literal["queued", "running", "done", "failed", "expired", "cancelled"]
OPEN: tuple[State, ...] = ("queued", "running")
LEASE_S = 30.0
"""A worker that did not renew its lease for so many seconds loses it."""


class QueueFull(Exception):
    """The queue, or the caller's quota, has no place for so many evaluations."""

    def __init__(self, waiting: int, most: int, *, quota: bool) -> None:
        super().__init__(waiting, most)
        self.waiting, self.most, self.quota = waiting, most, quota


class KeyTaken(Exception):
    """An idempotency key came with another request than before."""


@dataclass(frozen=True)
class Submitted:
    """An evaluation as a caller sends it."""

    problem: Problem
    text: str
    """A program, or an answer that holds one."""
    settings: VerifySettings
    request_sha256: str
    label: str | None = None
    priority: int = 0
    deadline_s: float | None = None
    """Seconds from now after which it is not begun any more."""
    idempotency_key: str | None = None
    reuse: bool = False
    """Whether the result of equal work may be taken."""


class StoredEvaluation(FrozenRecord):
    """An evaluation as it is now."""

    id: str
    caller: str
    state: State
    priority: int
    problem_id: str
    submitted: float
    deadline: float | None
    started: float | None
    finished: float | None
    attempt_id: int | None
    reused: bool
    error: str | None
    infrastructure: bool
    """Whether `error` is a failure of ours, and no fault of the request."""
    token: int
    late_verdicts: int

    @property
    def queue_seconds(self) -> float | None:
        """Seconds from the submission to the last start; None before it."""
        return None if self.started is None else max(0.0, self.started - self.submitted)


@dataclass(frozen=True)
class Taken:
    """An evaluation in a worker's hands."""

    id: str
    token: int
    problem: Problem
    text: str
    settings: VerifySettings
    label: str | None


@dataclass(frozen=True)
class NoResult:
    """Why an evaluation ended without a result."""

    why: str
    infrastructure: bool
    """A failure of ours, and no fault of the request."""
