"""The table that scores are computed from: keeps its packed cells up to date, and reads it as `ScoreTable`.

A million attempts are too many to walk through for each question. So the leaderboard's columns of 1,024
samples of a run and problem lie packed in one row of `score_cells`. Triggers list the samples that change
in `score_changes`. Their rows are read anew and merged into their cells, whose other rows stay as they are.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import Connection, text

from kernelproof.db.columns import AnyText
from kernelproof.db.scores.filters import Facts, Filters, ProblemFacts, RunFacts, problem_passes, run_passes
from kernelproof.db.scores.packing import CHUNK, ROW, PackedRecords, Records, Rows, pack

RETRACTED = "retracted"
"""The status of an attempt all of whose verifications are retracted."""
BATCH = 8192
CELLS = 64
ALL = 1 << 62
_NAN = math.nan
_NO_TIMES: tuple[float, ...] = (_NAN,) * 9
_NOTHING_SPENT = (0, 0, 0, 0, 0.0)

_CHANGES = "SELECT run_id, problem, sample FROM score_changes ORDER BY run_id, problem, sample LIMIT :most"


class _Statements:
    """The questions about the attempts of some cells or samples."""

    def __init__(self, chosen: str, samples: str) -> None:
        """`chosen`: a query of runs, problems, and cells or samples. `samples`: those of a row `c` of it."""
        # SQLite does CROSS JOIN in the order of the words: by what is chosen, and not by attempt.
        cells = f"({chosen}) AS c CROSS JOIN attempts a"
        inside = f"a.run_id = c.run_id AND a.problem = c.problem AND {samples}"
        self.rows = text(
            f"SELECT a.sample / {CHUNK}, a.id, a.run_id, a.problem, a.sample, a.turn, a.status, "
            "a.created, v.id, v.status, v.backend, v.size, v.environment_id, v.numerics, "
            "v.purity, v.own_kernel, v.rigor, v.policy, v.screening, v.error_class, v.flags, m.pace, "
            "m.baseline, m.speedup, m.speedup_low, m.speedup_high, m.candidate_ms, m.baseline_ms, "
            "m.compile_speedup, m.compile_speedup_low, m.compile_speedup_high, m.roofline_fraction "
            f"FROM {cells} "
            "LEFT JOIN verifications v ON v.attempt_id = a.id AND v.kind <> 'reproduce' "
            f"LEFT JOIN measurements m ON m.verification_id = v.id WHERE {inside} "
            "ORDER BY c.run_id, c.problem, a.sample, a.turn, v.id"
        )
        self.spent = text(
            "SELECT r.attempt_id, COUNT(*), COUNT(r.prompt_tokens + r.completion_tokens), COUNT(r.cost_usd), "
            "CAST(COALESCE(SUM(r.prompt_tokens + r.completion_tokens), 0) AS BIGINT), "
            "COALESCE(SUM(r.cost_usd), 0.0) "
            f"FROM {cells} CROSS JOIN responses r WHERE {inside} AND r.attempt_id = a.id "
            "AND r.error IS NULL AND r.reused_from IS NULL GROUP BY r.attempt_id"
        )


_CHANGED = _Statements(_CHANGES, "a.sample = c.sample")
_PACKED = text("SELECT packed FROM score_cells WHERE run_id = :run AND problem = :problem AND chunk = :chunk")
_STORE = text(
    "INSERT INTO score_cells (run_id, problem, chunk, packed) VALUES (:run, :problem, :chunk, :packed) "
    "ON CONFLICT (run_id, problem, chunk) DO UPDATE SET packed = excluded.packed"
)
_DONE = text(f"DELETE FROM score_changes WHERE (run_id, problem, sample) IN ({_CHANGES})")
_CHANGED_CELLS = f"SELECT run_id, problem, sample / {CHUNK} FROM score_changes"
_NEXT = (
    "FROM score_cells WHERE (run_id, problem, chunk) > (:run, :problem, :chunk) "
    f"AND (run_id, problem, chunk) NOT IN ({_CHANGED_CELLS}) ORDER BY run_id, problem, chunk LIMIT {CELLS}"
)
"""Cells in which nothing changed since they were packed, some after the other."""
_NEXT_PACKED = text(f"SELECT run_id, problem, chunk, packed {_NEXT}")
_NEXT_CELLS = _Statements(
    f"SELECT run_id, problem, chunk {_NEXT}",
    f"a.sample >= c.chunk * {CHUNK} AND a.sample < (c.chunk + 1) * {CHUNK}",
)
_MISSING = text(
    f"SELECT DISTINCT run_id, problem, sample / {CHUNK} FROM attempts "
    f"EXCEPT SELECT run_id, problem, chunk FROM score_cells EXCEPT {_CHANGED_CELLS}"
)
_RUNS = text("SELECT id, backend, size, numerics, purity, own_kernel, settings FROM runs")
_DEVICES = text("SELECT id, device_name FROM environments").columns(device_name=AnyText)
_RETRACTIONS = text("SELECT verification_id, counts FROM retractions ORDER BY id")


class Cell(NamedTuple):
    """Which samples are packed together."""

    run: int
    problem: int
    chunk: int


class FactIndex:
    """The numbers of `Facts`, as `score_facts` has them. New ones get the next numbers."""

    def __init__(self, connection: Connection) -> None:
        rows = connection.execute(text("SELECT id, facts FROM score_facts ORDER BY id")).all()
        self._numbers: dict[Facts, int] = {Facts(*json.loads(facts)): number for number, facts in rows}
        self._stored = len(self._numbers)

    def number(self, facts: Facts) -> int:
        return self._numbers.setdefault(facts, len(self._numbers))

    @property
    def facts(self) -> list[Facts]:
        return list(self._numbers)

    def store(self, connection: Connection) -> None:
        new = [
            {"id": number, "facts": json.dumps(facts)}
            for facts, number in self._numbers.items()
            if number >= self._stored
        ]
        if new:
            connection.execute(text("INSERT INTO score_facts (id, facts) VALUES (:id, :facts)"), new)
            self._stored = len(self._numbers)


def any_changed(connection: Connection) -> bool:
    return connection.execute(text(_CHANGES), {"most": 1}).first() is not None


def pack_some(connection: Connection) -> bool:
    """Packs up to BATCH samples within the caller's transaction; whether more are left."""
    if not any_changed(connection):
        return False
    book = FactIndex(connection)
    cells = [{**cell._asdict(), "packed": packed} for cell, packed in merged(connection, book, BATCH)]
    book.store(connection)
    if cells:
        connection.execute(_STORE, cells)
    connection.execute(_DONE, {"most": BATCH})
    return any_changed(connection)


def merged(connection: Connection, book: FactIndex, most: int = ALL) -> Iterator[tuple[Cell, bytes]]:
    """The cells of the first `most` changed samples, with these samples' rows as the tables have them now."""
    for cell, changed in _read(connection, book, _CHANGED, {"most": most}):
        packed = connection.execute(_PACKED, cell._asdict()).scalars()
        rows = PackedRecords(packed.all()).all()
        rows = np.concatenate((rows[~np.isin(rows["sample"], changed["sample"])], changed))
        yield cell, pack(rows[np.argsort(rows["sample"], kind="stable")])


def _read(
    connection: Connection, book: FactIndex, statements: _Statements, chosen: dict[str, int]
) -> Iterator[tuple[Cell, Records]]:
    reader = _Reader(connection, book, statements, chosen)
    rows = map(tuple, connection.execute(statements.rows, chosen))
    for place, group in groupby(rows, key=itemgetter(2, 3, 0)):
        yield Cell(*place), reader.packed(group)


def altered(connection: Connection) -> Iterator[Cell]:
    """Cells whose rows are not what the tables say, or that are not there: somebody edited them.

    Cells that are to be packed anew are not looked at.
    Raises ValueError where `score_facts` is no longer what it was.
    """
    yield from (Cell(*row) for row in connection.execute(_MISSING))
    book, last = FactIndex(connection), Cell(-1, -1, -1)
    while True:
        stored = {Cell(*row[:3]): row[3] for row in connection.execute(_NEXT_PACKED, last._asdict())}
        if not stored:
            return
        found = dict(_read(connection, book, _NEXT_CELLS, last._asdict()))
        for cell, packed in stored.items():
            if cell not in found or packed != pack(found[cell]):
                yield cell
        last = max(stored)


_RULES = slice(9, 23)
"""The columns of `_Statements.rows` that facts are made of."""
_FIGURES = slice(23, 32)
_SCREENING = 18


class _Reader:
    """Makes records of rows, which are plain tuples: a batch may touch cells of a hundred thousand."""

    def __init__(
        self, connection: Connection, book: FactIndex, statements: _Statements, chosen: dict[str, int]
    ) -> None:
        self._book = book
        self._spent = {row[0]: tuple(row[1:]) for row in connection.execute(statements.spent, chosen)}
        self._devices = {row[0]: row[1] for row in connection.execute(_DEVICES)}
        newest = {row[0]: row[1] for row in connection.execute(_RETRACTIONS)}
        self._gone = {verification for verification, counts in newest.items() if not counts}
        self._runs = {row.id: row for row in connection.execute(_RUNS)}
        self._rigor = {
            number: json.loads(row.settings)["verify"].get("rigor") for number, row in self._runs.items()
        }
        self._known: dict[tuple[Any, ...], int] = {}
        """The numbers of facts, by the columns that they are made of."""

    def packed(self, rows: Iterable[tuple[Any, ...]]) -> Records:
        records: list[tuple[Any, ...]] = []
        for _, group in groupby(rows, key=itemgetter(1)):
            found = list(group)
            counting = [row for row in found if row[8] and row[8] not in self._gone]
            if counting:
                records += [self._record(row, self._judged(row[_RULES])) for row in counting]
            else:
                _, _, run, _, _, _, ended, _, verification = found[0][:9]
                status = RETRACTED if verification else ended
                records.append(self._record(found[0], self._unjudged(run, status), bare=True))
        return np.array(records, ROW)

    def _judged(self, rules: tuple[Any, ...]) -> int:
        if (number := self._known.get(rules)) is not None:
            return number
        status, backend, size, device, numerics, purity, own, rigor, policy, screening, *others = rules
        error_class, flags, pace, baseline = others
        facts = Facts(
            *(status, True, backend, size, self._devices.get(device), numerics, purity, bool(own), rigor),
            *(policy, bool(screening), error_class, flags),
            *((None, None) if screening else (pace, baseline)),
        )
        return self._known.setdefault(rules, self._book.number(facts))

    def _unjudged(self, run_id: int, status: str | None) -> int:
        """The number of the facts of an attempt of a run without a verification."""
        if (number := self._known.get((run_id, status))) is not None:
            return number
        run = self._runs[run_id]
        facts = Facts(
            *(status, False, run.backend, run.size, None, run.numerics, run.purity, bool(run.own_kernel)),
            *(self._rigor[run_id], None, False, None, "[]", None, None),
        )
        return self._known.setdefault((run_id, status), self._book.number(facts))

    def _record(self, row: tuple[Any, ...], facts: int, *, bare: bool = False) -> tuple[Any, ...]:
        _, attempt, run, problem, sample, turn, _, created, verification = row[:9]
        answers, with_tokens, with_cost, tokens, cost = self._spent.get(attempt, _NOTHING_SPENT)
        if bare or row[_SCREENING]:  # the best of many is the luckiest as well
            times = _NO_TIMES
        else:
            times = tuple([_NAN if figure is None else figure for figure in row[_FIGURES]])
        return (
            *(attempt, 0 if bare else verification, run, problem, sample, turn),
            *(facts, answers, answers - with_tokens, answers - with_cost),
            *(datetime.fromisoformat(created).timestamp(), tokens, cost),
            *times,
        )


_RUN_FACTS = text("SELECT id, name, kind, model, template, strategy FROM runs ORDER BY id").columns(
    name=AnyText, model=AnyText, template=AnyText, strategy=AnyText
)
_TAGS = text("SELECT run_id, tag FROM run_tags").columns(tag=AnyText)
_PROBLEMS = text("SELECT id, problem_id, name, sha256, suite, level FROM problems ORDER BY id").columns(
    problem_id=AnyText, name=AnyText, suite=AnyText
)
_ALL_PACKED = text("SELECT run_id, problem, chunk, packed FROM score_cells")


@dataclass(frozen=True)
class ScoreTable:
    runs: dict[int, RunFacts]
    problems: dict[int, ProblemFacts]
    facts: list[Facts]
    rows: Rows


def read_runs(connection: Connection) -> dict[int, RunFacts]:
    tags: defaultdict[int, set[str]] = defaultdict(set)
    for run, tag in connection.execute(_TAGS):
        tags[run].add(tag)
    rows = connection.execute(_RUN_FACTS).all()
    return {row.id: RunFacts._make((*row, frozenset(tags[row.id]))) for row in rows}


def read_problems(connection: Connection) -> dict[int, ProblemFacts]:
    return {row[0]: ProblemFacts(*row) for row in connection.execute(_PROBLEMS)}


def read_book(connection: Connection, filters: Filters) -> ScoreTable:
    """The rows of the runs and problems that pass; what changed since it was packed comes from the tables."""
    runs = {n: run for n, run in read_runs(connection).items() if run_passes(run, filters)}
    problems = {n: p for n, p in read_problems(connection).items() if problem_passes(p, filters)}
    book = FactIndex(connection)
    cells = {Cell(*row[:3]): row[3] for row in connection.execute(_ALL_PACKED)}
    if any_changed(connection):
        cells |= merged(connection, book)
    passing = [cells[cell] for cell in sorted(cells) if cell.run in runs and cell.problem in problems]
    return ScoreTable(runs, problems, book.facts, Rows(PackedRecords(passing)))
