"""The facts of a report: scores from the query layer, and from the store the kernels that have a section."""

from __future__ import annotations

from dataclasses import dataclass

from kernelproof.db.scores.curves import Curves
from kernelproof.db.scores.filters import Filters
from kernelproof.db.scores.records import Leaderboard, ProblemScores, Scores
from kernelproof.db.store import Store
from kernelproof.errors import UsageError
from kernelproof.report.html.attempts import AttemptPage, attempt_page
from kernelproof.report.leaderboard import Place, audit_of, nothing, place_of, places, remarks, title_of
from kernelproof.types import Roofline
from kernelproof.types.measurement import resolved


@dataclass(frozen=True)
class Board:
    """The results that may be compared: one source, one setting."""

    title: str
    models: list[Scores]
    problems: list[ProblemScores]
    curves: dict[str, Curves]
    """By model."""
    rooflines: dict[int, Roofline]
    """By verification: those of the problems' best kernels that have one."""
    audit: str = ""
    """When it was last audited, and how many of its best kernels held; empty where it never was."""


@dataclass(frozen=True)
class Report:
    """All that the page shows."""

    filters: dict[str, object]
    """Those that were given."""
    boards: list[Board]
    remarks: list[str]
    """A sentence for each reason why attempts are left out of the figures."""
    kernels: list[AttemptPage]
    """Those whose claim is highest come first."""
    left_out: int
    """Best kernels of problems that have no section."""


def gather(store: Store, filters: Filters, most_kernels: int) -> Report:
    """The report's facts. `most_kernels`: sections of kernels.

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
    rooflines = store.scores.rooflines(
        [best.verification_id for best in ranked if best.roofline_fraction is not None]
    )
    return Report(
        filters=filters.model_dump(mode="json", exclude_defaults=True),
        boards=[_board(board, place, curves, rooflines) for place in found],
        remarks=remarks(board),
        kernels=[
            attempt_page(store, best.attempt_id, best.verification_id) for best in ranked[:most_kernels]
        ],
        left_out=max(len(ranked) - most_kernels, 0),
    )


def _board(
    board: Leaderboard, place: Place, curves: tuple[Curves, ...], rooflines: dict[int, Roofline]
) -> Board:
    return Board(
        title=title_of(place),
        models=[scores for scores in board.models if place_of(scores) == place],
        problems=[problem for problem in board.problems if place_of(problem) == place],
        curves={found.model: found for found in curves if (found.source, found.setting) == place},
        rooflines=rooflines,
        audit=audit_of(board, place),
    )
