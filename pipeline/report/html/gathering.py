"""The facts of a report: scores from the query layer, and from the store the kernels that have a section."""

from __future__ import annotations

from dataclasses import dataclass

from kernelproof.db.scores.filters import Filters
from kernelproof.db.scores.records import Leaderboard, ProblemScores, Scores, ViewName
from kernelproof.db.store import Store
from kernelproof.errors import UsageError
from kernelproof.report.html.attempts import AttemptPage, attempt_page
from kernelproof.report.leaderboard import Place, place_of, places, remarks, title_of
from kernelproof.types.measurement import resolved

MOST_TURNS = 12
"""Points of the curve over turns."""
_BY_MODEL: tuple[ViewName, ...] = ("model",)


@dataclass(frozen=True)
class Board:
    """The results that may be compared: one source, one setting."""

    title: str
    models: list[Scores]
    problems: list[ProblemScores]
    speedups: dict[str, list[float]]
    """Model to the speedups of its correct measured samples; one of unresolved pace is 1 at most."""
    by_turns: list[tuple[int, list[Scores]]]
    """The models' scores where a sample may have so many turns."""


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
    board = store.scores.leaderboard(filters, ("model", "problem", "kernel"))
    found = places(board)
    if not found:
        raise UsageError(_nothing(board))
    by_turns = _by_turns(store, filters, board)
    ranked = sorted(
        (problem.best for problem in board.problems if problem.best is not None),
        key=lambda best: -resolved(best.interval.low, best.pace),
    )
    return Report(
        filters=filters.model_dump(mode="json", exclude_defaults=True),
        boards=[_board(board, place, by_turns) for place in found],
        remarks=remarks(board),
        kernels=[
            attempt_page(store, best.attempt_id, best.verification_id) for best in ranked[:most_kernels]
        ],
        left_out=max(len(ranked) - most_kernels, 0),
    )


def _nothing(board: Leaderboard) -> str:
    """Why there is no report, and what to do."""
    if board.hints:
        return "\n  ".join(("no finished attempt passes these filters", *board.hints))
    said = " ".join(remarks(board))
    return f"no finished attempt to report: {said or 'make some with kernelproof generate'}".rstrip(".")


def _board(board: Leaderboard, place: Place, by_turns: list[tuple[int, Leaderboard]]) -> Board:
    speedups: dict[str, list[float]] = {}
    for row in board.kernels:
        if place_of(row) == place:
            speedup = resolved(row.kernel.speedup, row.kernel.pace)
            speedups.setdefault(row.kernel.model, []).append(speedup)
    return Board(
        title=title_of(place),
        models=[scores for scores in board.models if place_of(scores) == place],
        problems=[problem for problem in board.problems if place_of(problem) == place],
        speedups=speedups,
        by_turns=[
            (turns, [scores for scores in found.models if place_of(scores) == place])
            for turns, found in by_turns
        ],
    )


def _by_turns(store: Store, filters: Filters, board: Leaderboard) -> list[tuple[int, Leaderboard]]:
    """The scores with one turn, two ... until more turns bring no more attempts."""
    every = sum(scores.attempts for scores in board.models)
    found = []
    for turns in range(1, min(filters.turns or MOST_TURNS, MOST_TURNS) + 1):
        some = store.scores.leaderboard(filters.model_copy(update={"turns": turns}), _BY_MODEL)
        found.append((turns, some))
        if sum(scores.attempts for scores in some.models) == every:
            break
    return found
