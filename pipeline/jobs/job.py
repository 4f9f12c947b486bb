"""A job: a candidate to judge, which stored verdicts answer it, and where a new one is stored."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum, auto
from typing import Any

from kernelproof.db.views import Content, StoredAttempt, StoredVerification, VerificationKind
from kernelproof.extraction import extract
from kernelproof.hashing import sha256_text
from kernelproof.types import (
    Extraction,
    Problem,
    Response,
    RunSettings,
    Status,
    Verification,
    VerifySettings,
)
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
    """One candidate to judge."""

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
        if verification.status in RETRIED:
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
    """How a job ended."""

    extraction: Extraction
    status: Status
    verification: Verification | None
    """None where extraction found no program."""
    attempt_id: int | None = None
    """The attempt that keeps it; None where nothing is stored."""
    verification_id: int | None = None
    """Of the verification, where it was appended to an attempt."""
    reused: bool = False
    """Whether it was stored before."""


def files_run(settings: VerifySettings, label: str | None) -> RunSettings:
    """The run that keeps candidates given as files, verified with these settings."""
    return RunSettings(name=label, kind="verify", model=FILE_MODEL, verify=settings)


def without_program(job: Job) -> Verification:
    """The verification of a text in which extraction found no program."""
    return Verification(
        status=job.extraction.status or Status.NO_CODE,
        reason=job.extraction.reason,
        problem_id=job.problem.id,
        problem_sha256=job.problem.sha256,
        candidate_sha256=None,
        settings=job.settings,
        verifier=VERIFIER,
        created=datetime.now(UTC).isoformat(timespec="milliseconds"),
    )
