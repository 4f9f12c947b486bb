"""The facts of pages: scores, attempts, and sentences that say what the figures of a board are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kernelproof.choices import RunKind
from kernelproof.db.scores.filters import Filters
from kernelproof.db.scores.groups import Curves
from kernelproof.db.scores.records import Evidence, ProblemScores, Scores, Source
from kernelproof.db.store import Store
from kernelproof.db.views import StoredAttempt
from kernelproof.errors import UsageError
from kernelproof.report.leaderboard import audit_of, nothing, place_of, places, remarks, title_of
from kernelproof.types import Verification
from kernelproof.types.measurement import resolved

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
    bundle: bytes | None = None
    """From which anybody reproduces it; None where there is none."""

    @property
    def title(self) -> str:
        """The source of its program, and the setting under which it was judged."""
        setting = (self.verification or self.attempt.run.verify).setting
        return title_of((_SOURCES.get(self.attempt.run.kind, "model"), setting))


Bundler = Callable[[Store, int, int | None], bytes | None]
"""Makes the bundle of an attempt and one of its verifications; None where there is none to make."""
MOST_BUNDLE = 500_000
"""Bytes of a bundle that a page holds."""


def attempt_page(
    store: Store, attempt_id: int, verification_id: int | None = None, bundler: Bundler | None = None
) -> AttemptPage:
    """The facts of an attempt. `verification_id`: which of its verifications is shown; None: the one that
    counts, else the newest. `bundler`: makes the bundle that the page holds; None: it holds none.

    Raises UsageError when there is no such attempt, StoreError when its rows make no sense.
    """
    attempt = store.load_attempt(attempt_id)
    shown = attempt.verdict or (attempt.verifications[-1] if attempt.verifications else None)
    if verification_id is not None:
        shown = next(found for found in attempt.verifications if found.id == verification_id)
    bundle = bundler(store, attempt_id, shown.id) if bundler and shown else None
    return AttemptPage(
        attempt=attempt,
        verification=shown.verification if shown else None,
        parent=None if attempt.parent_id is None else store.load_attempt(attempt.parent_id),
        bundle=bundle if bundle is not None and len(bundle) <= MOST_BUNDLE else None,
    )


@dataclass(frozen=True)
class Board:
    """The results that may be compared: one source, one setting."""

    title: str
    models: list[Scores]
    problems: list[ProblemScores]
    curves: dict[str, Curves]
    """By model."""
    evidence: dict[int, Evidence]
    """By verification: what the problems' best kernels rest on."""
    audit: str = ""
    """When it was last audited, and how many of its best kernels held; empty where it never was."""


@dataclass(frozen=True)
class Report:
    """The leaderboard as a page shows it."""

    boards: list[Board]
    remarks: list[str]
    """A sentence for each reason why attempts are left out of the figures."""
    kernels: list[AttemptPage]
    """Those whose claim is highest come first."""
    left_out: int
    """Best kernels of problems that have no section."""


def gather(store: Store, filters: Filters, most_kernels: int = 0, bundler: Bundler | None = None) -> Report:
    """The report's facts. `most_kernels`: kernels with a section of their own; `bundler` makes their bundles.

    Raises UsageError when no finished attempt passes the filters.
    """
    board = store.scores.leaderboard(filters, ("model", "problem"))
    found = places(board)
    if not found:
        raise UsageError(nothing(board, "report"))
    curves = store.scores.curves(filters)
    ranked = sorted(
        (problem.best for problem in board.problems if problem.best is not None),
        key=lambda best: -resolved(best.interval.low, best.pace),
    )
    evidence = store.scores.evidence([best.verification_id for best in ranked])
    return Report(
        boards=[
            Board(
                title=title_of(place),
                models=[scores for scores in board.models if place_of(scores) == place],
                problems=[problem for problem in board.problems if place_of(problem) == place],
                curves={each.model: each for each in curves if (each.source, each.setting) == place},
                evidence=evidence,
                audit=audit_of(board, place),
            )
            for place in found
        ],
        remarks=remarks(board),
        kernels=[
            attempt_page(store, best.attempt_id, best.verification_id, bundler)
            for best in ranked[:most_kernels]
        ],
        left_out=max(len(ranked) - most_kernels, 0),
    )
