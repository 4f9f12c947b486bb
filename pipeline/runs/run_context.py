"""What the conversations of a run share, and the records that they pass on."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import anyio

from kernelproof.db.columns import utc_now
from kernelproof.db.store import Store
from kernelproof.db.views import AttemptLease, AttemptState, StoredAttempt
from kernelproof.extraction.normalise import normalized_hash
from kernelproof.jobs import Judge
from kernelproof.jobs.leases import LeaseKeeper
from kernelproof.prompting import Failure
from kernelproof.runs.events import OnEvent
from kernelproof.runs.gain_scheduler import GainScheduler
from kernelproof.runs.model_client import ModelClient
from kernelproof.runs.strategies import StrategyClass
from kernelproof.types import (
    AttemptKey,
    Measurement,
    Plan,
    Prompt,
    Response,
    RunSettings,
    Status,
    Verification,
)


@dataclass
class RunContext:
    """What the conversations of a run share, and how many may be in each stage at once."""

    store: Store
    judge: Judge
    client: ModelClient
    leases: LeaseKeeper
    run_id: int
    settings: RunSettings
    strategy: StrategyClass
    generated: Path | None
    answer_slots: anyio.CapacityLimiter
    """Answers that are in memory though nobody had to wait for their server: of a batch, or stored before."""
    on_event: OnEvent
    scheduler: GainScheduler | None = None
    """Decides which sample asks next, where questions are divided by expected gain; None: none waits."""
    again: frozenset[Status] = frozenset()
    """Only attempts that ended so are done again, and nothing else is done; empty: all that is left to do."""
    began: str = field(default_factory=utc_now)
    known: dict[AttemptKey, AttemptState] = field(default_factory=dict)
    first_prompts: dict[str, Prompt] = field(default_factory=dict)
    """By the problem's SHA-256: all samples of a problem begin with the same question."""


@dataclass(frozen=True)
class Judged:
    """An attempt that came to a judgement, with what a question that is built on it has to show."""

    id: int
    prompt: Prompt
    response: Response
    failure: Failure
    verification: Verification | None
    source: str | None
    parent_id: int | None
    plan: int | None = None
    """The number of the parent's plan that it carries out, from 1; None: no plan."""
    plans: tuple[Plan, ...] = ()

    @property
    def times(self) -> Measurement | None:
        """The measurement of a correct program; None where it is not correct, or was not timed."""
        verdict = self.verification
        return verdict.measurement if verdict and verdict.status is Status.CORRECT else None

    @cached_property
    def normalized_hash(self) -> str | None:
        """As `Result.normalized_hash`."""
        return None if self.source is None else normalized_hash(self.source)


@dataclass(frozen=True)
class Answered:
    """A leased attempt with its answer, and what was stored of it before."""

    lease: AttemptLease
    before: StoredAttempt | None
    """None where the answer has just come."""
    response: Response


class AnswerSlot:
    """A slot for one answer in memory: free until `enter` returns."""

    def __init__(self, limiter: anyio.CapacityLimiter) -> None:
        self._limiter, self._inside = limiter, False

    async def enter(self) -> None:
        """Waits for the slot; at once where it is held already."""
        if not self._inside:
            await self._limiter.acquire_on_behalf_of(self)
            self._inside = True

    def leave(self) -> None:
        if self._inside:
            self._limiter.release_on_behalf_of(self)
            self._inside = False
