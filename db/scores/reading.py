"""Reading: the packed rows of the runs and problems that the filters let pass."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from sqlalchemy import Connection, text

from kernelproof.db.columns import AnyText
from kernelproof.db.scores.cells import Cell, FactBook, any_changed, merged
from kernelproof.db.scores.filters import (
    Facts,
    Filters,
    ProblemFacts,
    RunFacts,
    problem_passes,
    run_passes,
)
from kernelproof.db.scores.layout import Rows
from kernelproof.db.scores.packing import PackedRecords

_RUNS = text("SELECT id, name, kind, model, template, strategy FROM runs ORDER BY id").columns(
    name=AnyText, model=AnyText, template=AnyText, strategy=AnyText
)
_TAGS = text("SELECT run_id, tag FROM run_tags").columns(tag=AnyText)
_PROBLEMS = text("SELECT id, problem_id, name, sha256, suite, level FROM problems ORDER BY id").columns(
    problem_id=AnyText, name=AnyText, suite=AnyText
)
_PACKED = text("SELECT run_id, problem, chunk, packed FROM score_cells")


@dataclass(frozen=True)
class Book:
    """All that scores are computed from."""

    runs: dict[int, RunFacts]
    problems: dict[int, ProblemFacts]
    facts: list[Facts]
    """By the number that rows have."""
    rows: Rows


def read_runs(connection: Connection) -> dict[int, RunFacts]:
    """All runs by number."""
    tags: defaultdict[int, set[str]] = defaultdict(set)
    for run, tag in connection.execute(_TAGS):
        tags[run].add(tag)
    rows = connection.execute(_RUNS).all()
    return {row.id: RunFacts._make((*row, frozenset(tags[row.id]))) for row in rows}


def read_problems(connection: Connection) -> dict[int, ProblemFacts]:
    """All problems by number."""
    return {row[0]: ProblemFacts(*row) for row in connection.execute(_PROBLEMS)}


def read_book(connection: Connection, filters: Filters) -> Book:
    """The rows of the runs and problems that pass; what changed since it was packed comes from the tables."""
    runs = {n: run for n, run in read_runs(connection).items() if run_passes(run, filters)}
    problems = {n: p for n, p in read_problems(connection).items() if problem_passes(p, filters)}
    book = FactBook(connection)
    cells = {Cell(*row[:3]): row[3] for row in connection.execute(_PACKED)}
    if any_changed(connection):
        cells |= merged(connection, book)
    passing = [cells[cell] for cell in sorted(cells) if cell.run in runs and cell.problem in problems]
    return Book(runs, problems, book.facts, Rows(PackedRecords(passing)))
