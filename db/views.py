"""Frozen views of the store, for reports and batches."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

from kernelproof.db.counting import VerificationRank, rank_verification
from kernelproof.types import (
    AttemptKey,
    Extraction,
    Flag,
    FrozenRecord,
    Problem,
    Prompt,
    Response,
    RunSettings,
    Status,
    Verification,
    VerifySettings,
)
from kernelproof.types.reproduction import ReportedResult
from kernelproof.version import policy_of

VerificationKind = Literal["first", "again", "reproduce"]
"""`first` and `again` count for the leaderboard; `reproduce` checks a number and never does."""


class AttemptState(FrozenRecord):
    """How far an attempt has come: what a batch that continues still has to do."""

    id: int
    status: Status | None
    """None while in progress."""
    has_response: bool
    """An answer (not a provider's error) is stored."""
    has_candidate: bool
    """The newest extraction found a program."""
    has_verification: bool
    """A verification of kind first or again is stored and not retracted."""
    retriable: bool = True
    """False when the newest thing the provider said is an error that asking again cannot mend."""


class AttemptLease(FrozenRecord):
    state: AttemptState
    """How far it is now, whoever brought it there."""
    key: str
    """Its lease: the question's key, or `attempt:N`."""
    granted: bool
    """False: another process is at work on the same question; wait until its lease is free."""
    reused: bool
    """True when the answer was found with another attempt that has the same question key."""


class Spent(FrozenRecord):
    """Tokens and cost of the answers of some runs so far. Reused answers cost nothing."""

    answers: int = 0
    prompt_tokens: int = 0
    """Cached ones included."""
    cached_tokens: int = 0
    completion_tokens: int = 0
    """Reasoning included."""
    reasoning_tokens: int = 0
    cost_usd: float = 0.0
    """Of the answers whose cost is known."""
    unknown_cost: int = 0
    """Answers whose cost is not known."""
    unknown_tokens: int = 0
    """Answers without token counts."""
    device_s: float = 0.0
    """Seconds in which verifications held the device, reproductions left out."""

    @property
    def tokens(self) -> int:
        """All tokens, both ways."""
        return self.prompt_tokens + self.completion_tokens


class ModelUsage(FrozenRecord):
    """Tokens and cost of a model's stored answers, of those whose tokens are known."""

    answers: int
    prompt_bytes: int
    """Of their prompts, in UTF-8."""
    prompt_tokens: int
    completion_tokens: int
    priced: int
    cost_usd: float
    """Of these."""


class StoredBatch(FrozenRecord):
    id: int
    name: str | None
    runs: tuple[int, ...]
    """The runs it adds to, one for each model."""
    config: dict[str, Any]
    progress: dict[str, Any]
    created: str
    finished: str | None
    ended: str | None
    """How it ended; None while it works, and when it was killed."""
    silent_s: float
    """Seconds since its last sign of life."""
    alive: bool
    """True while the process is at work."""


class Content(NamedTuple):
    """Identifies a candidate given as a file: the same content in the same run need not be verified again."""

    problem_id: str
    problem_sha256: str
    text_sha256: str | None
    """SHA-256 of what was given, before anything was extracted."""
    source_sha256: str | None
    """SHA-256 of the program found in it; None where none was."""
    none: str | None
    """The status that says why none was found."""


class StoredResponse(FrozenRecord):
    """One answer or one provider error; exactly one of the two is set."""

    response: Response | None
    error: str | None
    retriable: bool | None = None
    """Of an error: whether asking again can help; None where that is unknown."""
    reused: bool = False
    """True when another attempt's answer to the same question was taken."""
    created: str


class StoredVerification(FrozenRecord):
    id: int
    kind: VerificationKind
    created: str
    retracted: str | None
    """Why it no longer counts; None while it does."""
    reused_from: int | None = None
    """The verification of the same program that it repeats; None for one that was made."""
    verification: Verification


class StoredAttempt(FrozenRecord):
    id: int
    run_id: int
    run: RunSettings
    key: AttemptKey
    problem: Problem
    parent_id: int | None
    plan: int | None
    """Which of the parent's plans it carries out, from 1; None: none."""
    status: Status | None
    created: str
    finished: str | None
    prompt: Prompt | None
    responses: tuple[StoredResponse, ...]
    """In the order in which they came."""
    extraction: Extraction | None
    verifications: tuple[StoredVerification, ...]
    """In the order in which they were stored."""
    reported: ReportedResult | None = None
    """What was claimed of it and where it came from; None where it was not imported."""
    alterations: tuple[str, ...]
    """Texts that do not match their SHA-256, a line for each; empty when all are untouched."""

    @property
    def response(self) -> Response | None:
        """The first answer: it counts, whatever came later."""
        return next((r.response for r in self.responses if r.response is not None), None)

    @property
    def source(self) -> str | None:
        """The candidate's source, as the newest extraction found it."""
        candidate = self.extraction.candidate if self.extraction else None
        return candidate.source if candidate else None

    @property
    def verdict(self) -> StoredVerification | None:
        """The verification that counts by the rule of `kernelproof.db.counting`; None when there is none.

        It is chosen among the verifications under all settings.
        """
        return _counting(self.verifications)

    def verdict_for(self, settings: VerifySettings) -> StoredVerification | None:
        """The verification that counts of those with these settings; None when there is none.

        A verification records how many threads it had; settings that leave them open mean any number. What
        was interpreted is never timed, whatever the settings say. A screening fits whatever
        its bar was.
        """

        def fits(judged: Verification) -> bool:
            left_open: dict[str, Any] = {} if settings.threads else {"threads": judged.settings.threads}
            if settings.bar is not None and judged.settings.bar is not None:
                left_open["bar"] = judged.settings.bar
            if Flag.INTERPRETED in judged.flags:
                left_open["measure"] = False
            return judged.settings == settings.model_copy(update=left_open)

        return _counting(v for v in self.verifications if fits(v.verification))


def _counting(verifications: Iterable[StoredVerification]) -> StoredVerification | None:
    counting = [v for v in verifications if v.kind != "reproduce" and v.retracted is None]
    return max(counting, key=_rank, default=None)


def _rank(stored: StoredVerification) -> VerificationRank:
    v = stored.verification
    return rank_verification(policy_of(v.verifier), v.status, v.settings.bar is not None, stored.id)
