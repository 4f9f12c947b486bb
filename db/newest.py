"""The newest attempts, the attempts of a sample, and whether anything is new: what a live page asks."""

from __future__ import annotations

from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, func, select, text
from sqlalchemy.orm import Session, aliased

from kernelproof.db import models
from kernelproof.db.attempts import retracted
from kernelproof.db.batches import is_alive
from kernelproof.db.connection import Database
from kernelproof.db.counting import order_in_sql
from kernelproof.db.models import Batch, Reported, Retraction, RunTag
from kernelproof.db.scores.filters import Filters, problem_passes, run_passes
from kernelproof.hashing import sha256_json
from kernelproof.types import FrozenRecord, Interval, Pace, Status

_APPENDED = (
    *(models.Attempt, models.Response, models.Candidate, models.Verification),
    *(Retraction, Reported, models.Run, models.Problem),
)
"""Tables whose new rows a page may show."""
MOST_BATCHES = 20
"""Batches that a page shows, and whose processes are looked for: the newest."""


class State(NamedTuple):
    """Two states of a database are equal where nothing changed that a page shows."""

    results: str
    """Of attempts, answers, verifications, retractions and tags: a hash."""
    batches: str
    """Of the signs of life of batches: a hash."""


class AttemptLine(FrozenRecord):
    """An attempt in a list."""

    id: int
    run_id: int
    run: str | None
    """The run's name."""
    model: str
    problem_id: str
    problem: str
    """The problem's name."""
    sample: int
    turn: int
    parent_id: int | None
    created: str
    status: Status | None
    """That of the verification that counts, else the attempt's own. None while in progress."""
    speedup: float | None
    """None unless correct and measured."""
    interval: Interval | None
    pace: Pace | None


class Newest:
    """The newest attempts of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def require(self) -> None:
        """Raises StoreError where the database is no longer where it was opened."""
        self._database.require()

    def state(self) -> State:
        """The state of the database: it counts attempts by status, and looks for the newest rows."""
        return self._database.read(_state)

    def attempts(self, filters: Filters, most: int, before: int | None = None) -> list[AttemptLine]:
        """The newest first. `before`: only those with a smaller number.

        Of the filters those on runs, problems and days are asked.
        """

        def found(session: Session) -> list[AttemptLine]:
            query = _lines(_passing(session, filters))
            if before is not None:
                query = query.where(models.Attempt.id < before)
            return _read(session, query.order_by(models.Attempt.id.desc()).limit(most))

        return self._database.read(found)

    def sample_of(self, attempt_id: int) -> list[AttemptLine]:
        """The attempts of an attempt's sample, by turn; none where there is no such attempt."""

        def found(session: Session) -> list[AttemptLine]:
            a, row = models.Attempt, session.get(models.Attempt, attempt_id)
            if row is None:
                return []
            same = [a.run_id == row.run_id, a.problem == row.problem, a.sample == row.sample]
            return _read(session, _lines(same).order_by(a.turn))

        return self._database.read(found)


def _state(session: Session) -> State:
    ended = select(models.Attempt.status, func.count()).group_by(models.Attempt.status)
    results: list[Any] = [session.scalar(select(func.max(table.id))) for table in _APPENDED]
    results += sorted(map(str, session.execute(ended)))
    results += session.execute(select(func.count(), func.max(RunTag.created))).one()
    newest = select(func.max(Batch.id), func.max(Batch.renewed), func.count(Batch.ended))
    working = select(Batch).where(Batch.ended.is_(None)).order_by(Batch.id.desc()).limit(MOST_BATCHES)
    alive = [is_alive(batch) for batch in session.scalars(working)]
    return State(sha256_json(results), sha256_json([*session.execute(newest).one(), *alive]))


def _passing(session: Session, filters: Filters) -> list[ColumnElement[bool]]:
    """Conditions: an attempt passes the filters on runs, problems, turns and days."""
    from kernelproof.db.scores.reading import read_problems, read_runs  # they bring numpy

    a, connection = models.Attempt, session.connection()
    runs, problems = read_runs(connection), read_problems(connection)
    right_runs = [number for number, run in runs.items() if run_passes(run, filters)]
    right_problems = [number for number, problem in problems.items() if problem_passes(problem, filters)]
    asked: list[ColumnElement[bool]] = []
    if len(right_runs) < len(runs):
        asked.append(a.run_id.in_(right_runs))
    if len(right_problems) < len(problems):
        asked.append(a.problem.in_(right_problems))
    if filters.turns is not None:
        asked.append(a.turn <= filters.turns)
    if filters.since is not None:
        asked.append(func.substr(a.created, 1, 10) >= filters.since.isoformat())
    if filters.until is not None:
        asked.append(func.substr(a.created, 1, 10) <= filters.until.isoformat())
    return asked


def _lines(asked: list[ColumnElement[bool]]) -> Select[Any]:
    """The columns of lines, of attempts that fulfil all conditions."""
    a, r, p, v, m = models.Attempt, models.Run, models.Problem, models.Verification, models.Measurement
    w = aliased(v, name="w")
    counting = (
        select(w.id)
        .where(w.attempt_id == a.id, w.kind != "reproduce", ~retracted(w.id))
        .order_by(text(order_in_sql("w")))
        .limit(1)
        .scalar_subquery()
    )
    columns: tuple[Any, ...] = (a, r.name, r.model, p.problem_id, p.name, v.status)
    return (
        select(*columns, m.speedup, m.speedup_low, m.speedup_high, m.pace)
        .join(r, r.id == a.run_id)
        .join(p, p.id == a.problem)
        .outerjoin(v, v.id == counting)
        .outerjoin(m, m.verification_id == v.id)
        .where(*asked)
    )


def _read(session: Session, query: Select[Any]) -> list[AttemptLine]:
    found = []
    for row, run, model, problem_id, problem, judged, *times in session.execute(query):
        status = judged or row.status
        speedup, low, high, pace = times if status == Status.CORRECT else (None,) * 4
        found.append(
            AttemptLine(
                id=row.id,
                run_id=row.run_id,
                run=run,
                model=model,
                problem_id=problem_id,
                problem=problem,
                sample=row.sample,
                turn=row.turn,
                parent_id=row.parent_id,
                created=row.created,
                status=status,
                speedup=speedup,
                interval=None if low is None or high is None else Interval(low=low, high=high),
                pace=pace,
            )
        )
    return found
