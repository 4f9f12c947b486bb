"""An audit: the results that lead the leaderboard, verified once more."""

from __future__ import annotations

from typing import NamedTuple

from kernelproof.db.scores.filters import Filters
from kernelproof.db.scores.records import Kernel, Setting, Source, ViewName
from kernelproof.db.store import Store
from kernelproof.errors import UsageError

_BY_PROBLEM: tuple[ViewName, ...] = ("problem",)


class Leader(NamedTuple):
    """The result that leads a problem of a board."""

    source: Source
    setting: Setting
    problem_id: str
    best: Kernel


def leaders(store: Store, filters: Filters) -> list[Leader]:
    """The best of each problem of each board, in the leaderboard's order.

    Raises UsageError where nothing that passes the filters ranks.
    """
    board = store.scores.leaderboard(filters, _BY_PROBLEM)
    found = [
        Leader(row.source, row.setting, row.problem_id, row.best)
        for row in board.problems
        if row.best is not None
    ]
    if not found:
        raise UsageError("\n  ".join(("no measured result that passes these filters ranks", *board.hints)))
    return found
