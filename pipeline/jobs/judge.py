"""A job is a candidate to judge: it says which stored verdicts answer it, and where a new one is stored.
`Judge` judges jobs in this process: looks for a stored verdict, takes the lease, has the engine build and
verify, tries again what our side failed at, and stores the verdict.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import Enum, auto
from typing import Any

import anyio
import anyio.to_thread

from kernelproof.db.attempts import Finished
from kernelproof.db.store import Store
from kernelproof.db.views import Content, StoredAttempt, StoredVerification, VerificationKind
from kernelproof.extraction import extract
from kernelproof.hashing import sha256_text
from kernelproof.jobs.leases import LeaseKeeper, in_thread
from kernelproof.types import (
    Extraction,
    Measurement,
    Problem,
    Response,
    RunSettings,
    Status,
    Verification,
    VerifySettings,
)
from kernelproof.verifier.engine.build_stage import Prebuilt
from kernelproof.verifier.engine.engine import Engine
from kernelproof.verifier.engine.referee_process import OnStage
from kernelproof.verifier.engine.sanitizers import is_sanitized
from kernelproof.verifier.engine.stop import Stop
from kernelproof.version import POLICY, VERIFIER, __version__, policy_of

RETRIED = (Status.PROVIDER_ERROR, Status.INFRASTRUCTURE_ERROR)
"""Attempts that ended so are taken up again when the same command is run again."""
FILE_MODEL = "file"
"""What the leaderboard calls the author of candidates given as files."""


class Purpose(Enum):
    """Which stored verdicts answer a job."""

    VERDICT = auto()
    """Each that was made under the job's settings."""
    CURRENT = auto()
    """One that this version of kernelproof made."""
    MEASUREMENT = auto()
    """None: the candidate is judged now."""


@dataclass(frozen=True)
class NewAttempt:
    """The verdict is stored as the next sample of a run whose candidates are given, not generated."""

    run: RunSettings
    response: Response
    parent_id: int | None = None
    shared: bool = True
    """Whether a stored attempt answers every job with the same content; otherwise it answers one."""


@dataclass(frozen=True)
class AppendTo:
    """The verdict is appended to an attempt that is stored."""

    attempt_id: int
    kind: VerificationKind = "again"
    finish: bool = False
    """Whether the attempt ends with the verdict's status."""


@dataclass(frozen=True)
class Job:
    problem: Problem
    extraction: Extraction
    settings: VerifySettings
    keep: NewAttempt | AppendTo | None = None
    """Where the verdict is stored; None: nowhere."""
    purpose: Purpose = Purpose.VERDICT
    since: str | None = None
    """Verdicts stored from this time on answer it, whatever its purpose: its command had begun."""
    again: frozenset[Status] = frozenset()
    """Verdicts with these statuses do not answer it, unless they were stored since then."""
    sanitize: bool = False
    """Whether it is called once more under sanitizers; then a verdict without that does not answer it."""

    @classmethod
    def of_text(cls, text: str, problem: Problem, settings: VerifySettings) -> Job:
        """Of a program, or of an answer that holds one; the verdict is not stored."""
        return cls(problem, extract(Response(text=text)), settings)

    @classmethod
    def of_attempt(
        cls,
        attempt: StoredAttempt,
        settings: VerifySettings,
        kind: VerificationKind = "again",
        *,
        finish: bool = False,
        **which: Any,
    ) -> Job:
        """Of the program of a stored attempt, to which the verdict is appended. `finish`: as `AppendTo`.
        `which`: the fields that say which stored verdicts answer it."""
        assert attempt.extraction is not None
        keep = AppendTo(attempt.id, kind, finish)
        return cls(attempt.problem, attempt.extraction, settings, keep, **which)

    def is_answered_by(self, stored: StoredVerification) -> bool:
        """Whether a stored verification under the job's settings is its verdict."""
        verification = stored.verification
        if verification.status in RETRIED or (self.sanitize and not is_sanitized(verification)):
            return False
        if self.since is not None and stored.created >= self.since:
            return True
        if verification.status in self.again or self.purpose is Purpose.MEASUREMENT:
            return False
        made_by = verification.verifier.split(" ")[0], policy_of(verification.verifier)
        return self.purpose is Purpose.VERDICT or made_by == (__version__, POLICY)

    @property
    def content(self) -> Content:
        """Identifies what was given. Only for a verdict that becomes a new attempt."""
        assert isinstance(self.keep, NewAttempt)
        text, candidate = self.keep.response.text, self.extraction.candidate
        return Content(
            problem_id=self.problem.id,
            problem_sha256=self.problem.sha256,
            text_sha256=None if text is None else sha256_text(text),
            source_sha256=candidate.sha256 if candidate else None,
            none=self.extraction.status,
        )


@dataclass(frozen=True)
class Verdict:
    extraction: Extraction
    status: Status
    verification: Verification | None
    """None where extraction found no program."""
    attempt_id: int | None = None
    """The attempt that keeps it; None where nothing is stored."""
    verification_id: int | None = None
    """Of the verification, where it was appended to an attempt."""
    reused: bool = False

    @property
    def measurement(self) -> Measurement | None:
        """Its times; None where nothing was timed."""
        return self.verification.measurement if self.verification else None


def files_run(settings: VerifySettings, label: str | None) -> RunSettings:
    """The run that keeps candidates given as files, verified with these settings."""
    return RunSettings(name=label, kind="verify", model=FILE_MODEL, verify=settings)


def without_program(job: Job) -> Verification:
    """The verification of a text in which extraction found no program."""
    return Verification(
        status=job.extraction.why_none,
        reason=job.extraction.reason,
        problem_id=job.problem.id,
        problem_sha256=job.problem.sha256,
        candidate_sha256=None,
        settings=job.settings,
        verifier=VERIFIER,
        created=datetime.now(UTC).isoformat(timespec="milliseconds"),
    )


RETRIES = 2
"""How often a candidate that was lost to our side is verified again."""
_FEWEST, _FOR_EACH_CORE = 16, 3


def places() -> int:
    """Candidates between build and verdict: enough that neither a referee nor the compilers wait.

    A slow kernel may have the GPU for a minute. The compilers go on meanwhile, and what they made waits.
    """
    return _FEWEST + _FOR_EACH_CORE * len(os.sched_getaffinity(0))


def _silent(_: str) -> None:
    """Says nothing."""


class Judge:
    """Judges jobs on this machine. Thread-safe."""

    def __init__(
        self,
        engine: Engine,
        store: Store | None = None,
        leases: LeaseKeeper | None = None,
        limiter: anyio.CapacityLimiter | None = None,
    ) -> None:
        """`store`: for jobs whose verdict is stored. `leases` and `limiter`, of the jobs that are judged at
        the same time: for `submit`."""
        self._engine, self._store, self._leases, self._limiter = engine, store, leases, limiter
        self._lock = threading.Lock()
        self._contents: dict[str, dict[Content, list[int]]] = {}
        """By the run's key: attempts that answer one job each, and answered none yet."""

    def judge(
        self,
        job: Job,
        on_stage: OnStage = _silent,
        stop: Stop | None = None,
        prebuilt: Prebuilt | None = None,
    ) -> Verdict:
        """The verdict on a job. Whoever appends it to an attempt holds the lease on that, or needs none.

        Raises what `Engine.verify` raises; Stopped, and nothing is stored, where `stop` was asked meanwhile.
        """
        if isinstance(job.keep, NewAttempt) and (known := self._known(job, job.keep)) is not None:
            return known
        extraction, verification = job.extraction, None
        if extraction.candidate is not None:
            source = extraction.candidate.source
            verification = self._verified(job, source, on_stage, stop, prebuilt)
            if job.sanitize:
                verification = self._engine.sanitize(source, job.problem, verification, on_stage, stop)
            if stop is not None:
                stop.check()
        status = verification.status if verification else extraction.why_none
        return self._kept(Verdict(extraction, status, verification), job)

    async def submit(
        self, job: Job, attempt: StoredAttempt, on_stage: OnStage = _silent, *, wait: bool = True
    ) -> Verdict | None:
        """The verdict on a job that is appended to an attempt, under the lease on that.

        `attempt`: as it was loaded just now. Where another command has the lease it is waited for; without
        `wait` the result is None. Raises what `Engine.verify` raises.
        """
        assert self._store is not None and self._leases is not None and isinstance(job.keep, AppendTo)
        store, number, owner = self._store, attempt.id, self._leases.owner
        while True:
            if (stored := await in_thread(self._stored, job, attempt)) is not None:
                return stored
            lease = await in_thread(store.lease_stored, number, owner)
            if lease.granted:
                break
            if not wait:
                return None
            await self._leases.freed(lease.key)
            attempt = await in_thread(store.load_attempt, number)
        attempt = await in_thread(store.load_attempt, number)
        # Whoever held the lease before may have made it.
        verdict = await in_thread(self._stored, job, attempt)
        if verdict is None:
            verdict = await self.in_place(job, on_stage)
            if job.keep.finish:
                await in_thread(store.finish_attempt, number, verdict.status, owner)
                return verdict
        await in_thread(store.leases.give_back, owner, lease.key)
        return verdict

    async def in_place(self, job: Job, on_stage: OnStage = _silent) -> Verdict:
        """`judge` in a thread, when one of the places is free. Raises what `judge` raises."""
        return await anyio.to_thread.run_sync(
            lambda: self.judge(job, on_stage), limiter=self._limiter, abandon_on_cancel=True
        )

    def _stored(self, job: Job, attempt: StoredAttempt) -> Verdict | None:
        """The stored verdict that answers a job on an attempt; None where there is none."""
        assert self._store is not None and isinstance(job.keep, AppendTo)
        newest = attempt.verdict_for(job.settings)
        if newest is None or not job.is_answered_by(newest):
            return None
        status = newest.verification.status
        if job.keep.finish and attempt.status is not status:  # its command was killed in between
            self._store.finish_attempt(attempt.id, status)
        return Verdict(job.extraction, status, newest.verification, attempt.id, reused=True)

    def _verified(
        self, job: Job, source: str, on_stage: OnStage, stop: Stop | None, prebuilt: Prebuilt | None
    ) -> Verification:
        """The engine's verification, up to RETRIES times again while the status is infrastructure_error."""
        tries = 0
        while True:
            verification = self._engine.verify(source, job.problem, job.settings, on_stage, stop, prebuilt)
            tries += 1
            if verification.status is not Status.INFRASTRUCTURE_ERROR or tries > RETRIES:
                return verification

    def _kept(self, verdict: Verdict, job: Job) -> Verdict:
        keep, verification = job.keep, verdict.verification
        if keep is None or self._store is None:
            return verdict
        if isinstance(keep, NewAttempt):
            number = self._store.add_finished(
                Finished(
                    *(keep.run, job.problem, keep.response, job.extraction),
                    *(verification, verdict.status, keep.parent_id),
                )
            )
            return replace(verdict, attempt_id=number)
        assert verification is not None
        stored = self._store.record_verification(keep.attempt_id, verification, keep.kind)
        return replace(verdict, attempt_id=keep.attempt_id, verification_id=stored)

    def _known(self, job: Job, keep: NewAttempt) -> Verdict | None:
        """How the same content ended in the same run before, the newest first; None where it did not."""
        if self._store is None or job.purpose is Purpose.MEASUREMENT:
            return None
        for number in self._numbers(self._store, job, keep):
            if verdict := _final(self._store.load_attempt(number)):
                return verdict
        return None

    def _numbers(self, store: Store, job: Job, keep: NewAttempt) -> Iterator[int]:
        """Stored attempts with the job's content, the newest first."""
        content = job.content
        if keep.shared:
            run_id = store.run_id(keep.run)
            ids = store.attempts_by_content(run_id, content.text_sha256) if run_id is not None else {}
            yield from reversed(ids.get(content, []))
            return
        with self._lock:
            key = keep.run.key
            if key not in self._contents:
                self._contents[key] = store.attempts_by_content(store.begin_run(keep.run))
            free = self._contents[key].get(content, [])
        while True:
            with self._lock:
                if not free:
                    return
                number = free.pop()
            yield number


def _final(attempt: StoredAttempt) -> Verdict | None:
    """The verdict on an attempt that was given; None where it is to be judged again."""
    verification = attempt.verdict.verification if attempt.verdict else None
    judged = verification is not None or attempt.source is None
    if not judged or attempt.extraction is None or attempt.status is None or attempt.status in RETRIED:
        return None
    return Verdict(attempt.extraction, attempt.status, verification, attempt.id, reused=True)
