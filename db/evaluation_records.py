"""The records that the queue of the evaluation service takes and gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from kernelproof.backends import backend
from kernelproof.choices import Role
from kernelproof.types import FrozenRecord, Problem, VerifySettings

State = Literal["queued", "building", "built", "running", "done", "failed", "expired", "cancelled"]
WAITING: tuple[State, ...] = ("queued", "built")
"""Nobody has it."""
TAKEN: tuple[State, ...] = ("building", "running")
"""A builder or a worker has it, under a lease."""
OPEN: tuple[State, ...] = (*WAITING, *TAKEN)
WORK, ENDED = "work", "ended"
"""Channels of notifications: there is something to take; something ended."""
LEASE_S = 30.0
"""A worker that did not renew its lease for so many seconds loses it."""
TOGETHER = 2
"""An evaluation that was lost so often is taken alone: so it is clear which one ends its daemons."""
MOST_LOSSES = 5
"""An evaluation that was lost so often ends without a result. The first TOGETHER losses may be another's
doing. The others are its own, or machines failed: that they do so three times within one is not likely."""


class QueueFull(Exception):
    """The queue, or the caller's quota, has no place for so many evaluations."""

    def __init__(self, new: int, waiting: int, most: int, *, quota: bool) -> None:
        """`new`: evaluations that need a place; `waiting`: those that have one, of `most` in all."""
        super().__init__(new, waiting, most)
        self.new, self.waiting, self.most, self.quota = new, waiting, most, quota


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
    artefact: str | None
    built: float | None
    late_builds: int
    losses: int

    @property
    def queue_seconds(self) -> float | None:
        """Seconds from the submission to the last start of its judging; None before it."""
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
    artefact: str | None = None
    """Key of what a builder published for it."""
    alone: bool = False
    """Whether its daemon takes no other one meanwhile."""


@dataclass(frozen=True)
class Wanted:
    """Which evaluations a daemon takes."""

    role: Role
    backends: tuple[str, ...]
    """Those whose candidates it can build or judge."""

    @property
    def taken(self) -> State:
        """The state in which it has them."""
        return "building" if self.role is Role.BUILD else "running"

    @property
    def waiting(self) -> tuple[tuple[State, str], ...]:
        """The states in which it takes them, each with the backend."""
        builds, rest = split(self.backends)
        if self.role is Role.BUILD:
            return tuple(("queued", name) for name in builds)
        queued = rest if self.role is Role.JUDGE else self.backends
        built = tuple[tuple[State, str], ...](("built", name) for name in self.backends)
        return built + tuple(("queued", name) for name in queued)


def split(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Backends whose candidates are built before they run, and those that compile at the first call."""
    builds = [name for name in names if backend(name).first_call is None]
    return builds, [name for name in names if name not in builds]


@dataclass(frozen=True)
class NoResult:
    """Why an evaluation ended without a result."""

    why: str
    infrastructure: bool
    """A failure of ours, and no fault of the request."""
