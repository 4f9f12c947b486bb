"""The facts of one attempt's page: the attempt, what it was built on, and the verification that is shown."""

from __future__ import annotations

from dataclasses import dataclass

from kernelproof.choices import RunKind
from kernelproof.db.scores.records import Source
from kernelproof.db.store import Store
from kernelproof.db.views import StoredAttempt
from kernelproof.report.leaderboard import title_of
from kernelproof.types import Verification

_SOURCES: dict[RunKind, Source] = {"verify": "file", "tune": "tuner"}
"""The source of programs that no model wrote."""


@dataclass(frozen=True)
class AttemptPage:
    """One attempt with its evidence."""

    attempt: StoredAttempt
    verification: Verification | None
    """The one that is shown; None where nothing was verified."""
    parent: StoredAttempt | None
    """The attempt that it was built on."""

    @property
    def title(self) -> str:
        """The source of its program, and the setting under which it was judged."""
        setting = (self.verification or self.attempt.run.verify).setting
        return title_of((_SOURCES.get(self.attempt.run.kind, "model"), setting))


def attempt_page(store: Store, attempt_id: int, verification_id: int | None = None) -> AttemptPage:
    """The page's facts. `verification_id`: which of its verifications is shown; None: the one that counts,
    else the newest.

    Raises UsageError when there is no such attempt, StoreError when its rows make no sense.
    """
    attempt = store.load_attempt(attempt_id)
    shown = attempt.verdict or (attempt.verifications[-1] if attempt.verifications else None)
    if verification_id is not None:
        shown = next(found for found in attempt.verifications if found.id == verification_id)
    return AttemptPage(
        attempt=attempt,
        verification=shown.verification if shown else None,
        parent=None if attempt.parent_id is None else store.load_attempt(attempt.parent_id),
    )
