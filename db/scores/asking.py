"""The query layer: one place that scores are asked of, for the terminal, pages and exports.

`leaderboard` and `comparison` take a connection whose transaction sees one state of the database.
`ScoreQueries` calls them, and packs what changed before.
"""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Connection, text

from kernelproof.db.scores.boards import kernel_scores, problem_scores
from kernelproof.db.scores.comparing import Comparison, Kind, compare, kind_of
from kernelproof.db.scores.filters import Filters
from kernelproof.db.scores.groups import by_model, by_run, by_strategy, by_template, group_scores
from kernelproof.db.scores.hints import NEUTRAL, hints
from kernelproof.db.scores.reading import read_book, read_runs
from kernelproof.db.scores.records import Audited, Counts, Leaderboard, ProblemScores, ViewName
from kernelproof.db.scores.selecting import Selected, select

_GROUPS = {
    "models": ("model", by_model),
    "runs": ("run", by_run),
    "templates": ("template", by_template),
    "strategies": ("strategy", by_strategy),
}
_ANY_AUDIT = text("SELECT id FROM audits LIMIT 1")


def selected(connection: Connection, filters: Filters) -> Selected:
    """The attempts that pass the filters."""
    return select(read_book(connection, filters), filters)


def leaderboard(
    connection: Connection, filters: Filters, views: Collection[ViewName], top: int | None
) -> Leaderboard:
    """The views that are asked for. `top`: most kernels of each setting; None for all."""
    turns = selected(connection, filters)
    samples = turns.samples()
    groups = {
        field: group_scores(turns, samples, owner)
        for field, (view, owner) in _GROUPS.items()
        if view in views
    }
    status = turns.rows["facts"]
    ever_audited = connection.execute(_ANY_AUDIT).first() is not None
    problems = problem_scores(samples) if ever_audited or "problem" in views else ()
    refused = turns.facts.correct[status] & ~turns.correct
    return Leaderboard(
        filters=filters,
        counts=Counts(
            unfinished=int((~turns.facts.finished[status]).sum()),
            refused=int(refused.sum()),
            retracted=turns.retracted,
            stale=turns.stale,
            stale_samples=turns.stale_samples,
            kernels=int(samples.measured.sum()),
        ),
        **groups,
        problems=problems if "problem" in views else (),
        kernels=kernel_scores(samples, top) if "kernel" in views else (),
        audits=_audited(connection, problems) if ever_audited else (),
        hints=() if len(samples.rows) else _hints(connection, filters),
    )


def _audited(connection: Connection, problems: Collection[ProblemScores]) -> tuple[Audited, ...]:
    from kernelproof.db.scores.audited import audited

    return audited(connection, problems)


def _hints(connection: Connection, filters: Filters) -> tuple[str, ...]:
    if filters == Filters():
        return ()
    book = read_book(connection, NEUTRAL)
    return hints(filters, book) if len(book.rows) else ()


def comparison(
    connection: Connection, filters: Filters, a: str, b: str, kind: Kind | None
) -> tuple[Comparison, ...]:
    """A and B, for each setting under which both were judged on a problem.

    Raises UsageError where A and B name nothing, or things of different kinds.
    """
    chosen = kind_of(read_runs(connection), a, b, kind)
    return compare(selected(connection, filters).samples(), a, b, chosen)
