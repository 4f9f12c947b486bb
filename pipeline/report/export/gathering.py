"""The attempts of an export, read some at a time: few of them are in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from kernelproof.db.audits import Found
from kernelproof.db.portions import portions
from kernelproof.db.scores.choosing import Chosen, ChosenAttempt
from kernelproof.db.scores.filters import Filters
from kernelproof.db.scores.records import Setting
from kernelproof.db.store import Store
from kernelproof.db.views import StoredAttempt, StoredVerification
from kernelproof.errors import UsageError
from kernelproof.report.leaderboard import nothing, remarks
from kernelproof.types import Measurement, Stage, Status

Message = dict[str, str]
"""`role` and `content`."""
TOGETHER = 50
"""Attempts that are read at once."""


@dataclass(frozen=True)
class Row:
    """An attempt under one setting."""

    attempt: StoredAttempt
    setting: Setting
    judged: StoredVerification | None
    """The verification that counts there."""
    decides: bool
    audit: Found | None = None
    """The newest audit of that verification."""

    @property
    def status(self) -> Status:
        """The verdict, else how the attempt ended."""
        if self.judged is not None:
            return self.judged.verification.status
        assert self.attempt.status is not None
        return self.attempt.status

    @property
    def reason(self) -> str:
        """Why, in a sentence."""
        if self.judged is not None:
            return self.judged.verification.reason
        return self.attempt.extraction.reason if self.attempt.extraction else self.status.meaning

    @property
    def built(self) -> bool:
        """Whether the program was built, or needed no build."""
        late = self.status.stage not in (Stage.PROVIDER, Stage.EXTRACTION, Stage.POLICY, Stage.BUILD)
        return (
            late and self.status is not Status.INFRASTRUCTURE_ERROR
        ) or self.status is Status.BUILT_NOT_RUN

    @property
    def measured(self) -> Measurement | None:
        """The times that count: those of a correct program, but of no quick look."""
        judged = self.judged.verification if self.judged else None
        if judged is None or judged.status is not Status.CORRECT or judged.settings.bar is not None:
            return None
        return judged.measurement

    @cached_property
    def messages(self) -> list[Message] | None:
        """The question, as messages; None for a program given as a file."""
        prompt = self.attempt.prompt
        if prompt is None:
            return None
        return [{"role": role, "content": content} for role, content in prompt.turns if content]

    @property
    def answer(self) -> str | None:
        """The text of the answer."""
        response = self.attempt.response
        return response.text if response else None


@dataclass(frozen=True)
class Export:
    """The attempts of an export."""

    store: Store
    filters: Filters
    chosen: Chosen
    remarks: tuple[str, ...]
    """A sentence for each reason why attempts are left out."""

    def rows(self, chosen: Iterable[ChosenAttempt] | None = None) -> Iterator[Row]:
        """The attempts, all or those of `chosen`, one after the other."""
        for some in portions(self.chosen if chosen is None else chosen, TOGETHER):
            audits = self.store.audits.newest([each.verification_id for each in some if each.verification_id])
            attempts = self.store.load_attempts([each.attempt_id for each in some])
            for each, attempt in zip(some, attempts, strict=True):
                judged = next((v for v in attempt.verifications if v.id == each.verification_id), None)
                audit = audits.get(each.verification_id) if each.verification_id else None
                yield Row(attempt, each.setting, judged, each.decides, audit)


def gather(store: Store, filters: Filters) -> Export:
    """The attempts that pass the filters. Raises UsageError, with the values that there are, for none."""
    chosen = store.scores.chosen(filters)
    board = store.scores.leaderboard(filters, ())
    if not len(chosen):
        raise UsageError(nothing(board, "export"))
    return Export(store, filters, chosen, tuple(remarks(board)))
