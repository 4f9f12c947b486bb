"""Rows back into nouns: `load_attempts` reads everything stored about some attempts, `Newest` one line for
each new attempt. Callers of `load_attempts` hold the transaction.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import Any, NamedTuple, cast

from pydantic import ValidationError
from sqlalchemy import BindParameter, ColumnElement, Select, bindparam, func, select, text
from sqlalchemy.orm import Session, aliased

from kernelproof.db import models, reported
from kernelproof.db.attempts import retracted
from kernelproof.db.batches import is_alive
from kernelproof.db.connection import HasDatabase, read_transaction
from kernelproof.db.counting import order_in_sql
from kernelproof.db.models import Batch, Reported, Retraction, RunTag
from kernelproof.db.rows import Library, Reading, record_of, whole
from kernelproof.db.scores.filters import Filters, problem_passes, run_passes
from kernelproof.db.views import StoredAttempt, StoredResponse, StoredVerification
from kernelproof.errors import StoreError, UsageError
from kernelproof.hashing import sha256_json
from kernelproof.types import (
    Build,
    Candidate,
    Check,
    Environment,
    Extraction,
    Finding,
    FrozenRecord,
    Interval,
    Measurement,
    Pace,
    Problem,
    Prompt,
    Response,
    RunSettings,
    Status,
    Usage,
    Verification,
)
from kernelproof.types.record import STORED, explain


def load_attempt(session: Session, attempt_id: int) -> StoredAttempt:
    """The attempt; a text that was altered since it was stored is read as it is now and named in
    `alterations`.

    Raises UsageError when there is no such attempt, StoreError when its rows make no sense.
    """
    return load_attempts(session, [attempt_id])[0]


def load_attempts(session: Session, numbers: Sequence[int]) -> list[StoredAttempt]:
    """Some attempts in this order, at most as many as `db/rows.py` allows, with a query for each table.

    Raises as `load_attempt`.
    """
    these = {"attempts": [*dict.fromkeys(numbers)]}
    heads = {head[0].id: cast(_Head, head) for head in _HEADS.rows(session, these)}
    for number in numbers:
        if number not in heads:
            raise UsageError(f"there is no attempt {number}; kernelproof leaderboard lists attempts")
    responses = _by_attempt(_RESPONSES.objects(session, these))
    candidates = {
        row.attempt_id: row for row in _CANDIDATES.objects(session, these)
    }  # the last is the newest
    claims = reported.newest(session, these["attempts"])
    number = numbers[0]
    try:
        judged = _judged(session, these)
        parts = {
            number: _Attempt(
                *heads[number],
                responses.get(number, []),
                candidates.get(number),
                judged.get(number, []),
                claims.get(number),
            )
            for number in these["attempts"]
        }
        texts = Library(session)
        texts.read_ahead(key for attempt in parts.values() for key in attempt.texts)
        found = []
        for number in numbers:
            found.append(_stored(parts[number], texts.another()))
        return found
    except (ValidationError, json.JSONDecodeError) as error:
        told = explain(error) if isinstance(error, ValidationError) else error
        raise StoreError(
            f"attempt {number} cannot be read: edited, or written by another version ({told})"
        ) from error


@dataclass(frozen=True)
class _Attempt:
    row: models.Attempt
    problem: models.Problem
    run: models.Run
    prompt: models.Prompt | None
    responses: list[models.Response]
    candidate: models.Candidate | None
    judged: list[_Judged]
    claim: models.Reported | None

    @property
    def texts(self) -> Iterator[str | None]:
        for each in self.responses:
            yield from (each.text_sha256, each.reasoning_sha256, each.raw_sha256)
        yield self.problem.sha256
        if self.candidate is not None:
            yield self.candidate.source_sha256
        if self.prompt is not None:
            yield from (self.prompt.system_sha256, self.prompt.user_sha256, self.prompt.history_sha256)
        for judged in self.judged:
            yield from judged.texts


def _stored(found: _Attempt, texts: Library) -> StoredAttempt:
    row, problem = found.row, problem_of(found.problem, texts)
    stored: dict[str, Any] = {
        "run": _run(found.run, texts),
        "prompt": _prompt(found.prompt, texts) if found.prompt else None,
        "responses": tuple(_response(each, texts) for each in found.responses),
        "extraction": extraction_of(found.candidate, texts) if found.candidate else None,
        "verifications": tuple(_stored_verification(each, texts) for each in found.judged),
        "reported": reported.of_row(found.claim, texts) if found.claim else None,
    }
    key = {"problem_id": problem.id, "problem_sha256": problem.sha256, "sample": row.sample, "turn": row.turn}
    return record_of(StoredAttempt, row, key=key, problem=problem, alterations=tuple(texts), **stored)


def _by_attempt(rows: Iterable[models.Response]) -> dict[int, list[models.Response]]:
    found: defaultdict[int, list[models.Response]] = defaultdict(list)
    for row in rows:
        found[row.attempt_id].append(row)
    return found


_ATTEMPTS: BindParameter[int] = bindparam("attempts", expanding=True)
_Head = tuple[models.Attempt, models.Problem, models.Run, models.Prompt | None]
_HEADS = Reading(
    (models.Attempt, models.Problem, models.Run, models.Prompt),
    whole(models.Attempt, models.Problem, models.Run, models.Prompt)
    .join_from(models.Attempt, models.Problem, models.Problem.id == models.Attempt.problem)
    .join(models.Run, models.Run.id == models.Attempt.run_id)
    .outerjoin(models.Prompt, models.Prompt.id == models.Attempt.prompt)
    .where(models.Attempt.id.in_(_ATTEMPTS)),
)
_RESPONSES = Reading(
    (models.Response,),
    whole(models.Response).where(models.Response.attempt_id.in_(_ATTEMPTS)).order_by(models.Response.id),
)
_CANDIDATES = Reading(
    (models.Candidate,),
    whole(models.Candidate).where(models.Candidate.attempt_id.in_(_ATTEMPTS)).order_by(models.Candidate.id),
)
_VERIFICATIONS = Reading(
    (models.Verification, models.Measurement, models.Environment),
    whole(models.Verification, models.Measurement, models.Environment)
    .outerjoin_from(
        models.Verification, models.Measurement, models.Measurement.verification_id == models.Verification.id
    )
    .outerjoin(models.Environment, models.Environment.id == models.Verification.environment_id)
    .where(models.Verification.attempt_id.in_(_ATTEMPTS))
    .order_by(models.Verification.id),
)


@cache
def _of_verifications(part: Any, order: str) -> Reading:
    v = models.Verification
    mine = whole(part).join_from(part, v, v.id == part.verification_id).where(v.attempt_id.in_(_ATTEMPTS))
    return Reading((part,), mine.order_by(part.verification_id, getattr(part, order)))


@dataclass(frozen=True)
class _Judged:
    row: models.Verification
    measurement: models.Measurement | None
    environment: models.Environment | None
    parts: dict[Any, list[Any]]
    retraction: Retraction | None
    """The newest word on whether it counts."""

    @property
    def texts(self) -> list[str | None]:
        return [self.row.details_sha256, *(build.log_sha256 for build in self.parts[models.Build])]


def _judged(session: Session, these: dict[str, list[int]]) -> dict[int, list[_Judged]]:
    rows = _VERIFICATIONS.rows(session, these)
    found: defaultdict[int, list[_Judged]] = defaultdict(list)
    if not rows:
        return found
    orders = {models.Build: "position", models.Finding: "position", models.Check: "position"}
    parts: dict[Any, dict[int, list[Any]]] = {}
    for part, order in {**orders, Retraction: "id"}.items():
        some = _of_verifications(part, order).objects(session, these)
        parts[part] = {number: [*own] for number, own in groupby(some, lambda each: each.verification_id)}
    for row, measurement, environment in rows:
        found[row.attempt_id].append(
            _Judged(
                *(row, measurement, environment),
                {part: parts[part].get(row.id, []) for part in orders},
                next(reversed(parts[Retraction].get(row.id, [])), None),
            )
        )
    return found


def _run(row: models.Run, texts: Library) -> RunSettings:
    if sha256_json(row.settings) != row.key:
        texts.note(f"run settings: altered, their SHA-256 should be {row.key}")
    return RunSettings.model_validate(row.settings, context=STORED)


def problem_of(row: models.Problem, texts: Library) -> Problem:
    return record_of(Problem, row, id=row.problem_id, source=texts.get(row.sha256, "problem source"))


def _prompt(row: models.Prompt, texts: Library) -> Prompt:
    return record_of(
        *(Prompt, row),
        system=texts.get(row.system_sha256, "prompt's system text"),
        user=texts.get(row.user_sha256, "prompt's user text"),
        history=texts.get_json(row.history_sha256, "prompt history", ()),
    )


def _response(row: models.Response, texts: Library) -> StoredResponse:
    if row.error is not None:
        return StoredResponse(response=None, error=row.error, retriable=row.retriable, created=row.created)
    usage = record_of(Usage, row)
    response = record_of(
        *(Response, row),
        text=texts.get_optional(row.text_sha256, "response text"),
        reasoning=texts.get_optional(row.reasoning_sha256, "response reasoning"),
        usage=None if usage == Usage() else usage,
        raw=texts.get_json(row.raw_sha256, "raw response", {}),
    )
    return StoredResponse(
        response=response, error=None, reused=row.reused_from is not None, created=row.created
    )


def newest_candidate(session: Session, attempt_id: int) -> models.Candidate | None:
    found: list[models.Candidate] = _CANDIDATES.objects(session, {"attempts": [attempt_id]})
    return found[-1] if found else None


def extraction_of(row: models.Candidate, texts: Library) -> Extraction:
    candidate = None
    if row.source_sha256 is not None:
        source = texts.get(row.source_sha256, "candidate source")
        candidate = Candidate(source=source, sha256=row.source_sha256)
    span = None if row.span_start is None or row.span_end is None else (row.span_start, row.span_end)
    return record_of(Extraction, row, candidate=candidate, span=span)


def _stored_verification(judged: _Judged, texts: Library) -> StoredVerification:
    row, retraction = judged.row, judged.retraction
    retracted = retraction.reason if retraction and not retraction.counts else None
    verification = _verification(judged, texts)
    return record_of(StoredVerification, row, retracted=retracted, verification=verification)


def _verification(judged: _Judged, texts: Library) -> Verification:
    row, measurement, environment = judged.row, judged.measurement, judged.environment
    parts = {
        "environment": _environment(environment, texts) if environment else None,
        "builds": tuple(_build(b, texts) for b in judged.parts[models.Build]),
        "findings": tuple(record_of(Finding, f) for f in judged.parts[models.Finding]),
        "checks": tuple(record_of(Check, c) for c in judged.parts[models.Check]),
        "measurement": _measurement(measurement) if measurement else None,
        "details": texts.get_optional(row.details_sha256, "verification details") or "",
    }
    return record_of(Verification, row, **parts)


def _build(row: models.Build, texts: Library) -> Build:
    return record_of(Build, row, log=texts.get_optional(row.log_sha256, "build log") or "")


def _environment(row: models.Environment, texts: Library) -> Environment:
    if sha256_json(row.facts) != row.fingerprint:
        texts.note(f"environment: altered, its SHA-256 should be {row.fingerprint}")
    return Environment.model_validate(row.facts)


def _measurement(row: models.Measurement) -> Measurement:
    return record_of(Measurement, row, speedup_interval={"low": row.speedup_low, "high": row.speedup_high})


_APPENDED = (
    *(models.Attempt, models.Response, models.Candidate, models.Verification),
    *(Retraction, Reported, models.Run, models.Problem),
)
MOST_BATCHES = 20
"""Batches that a page shows, and whose processes are looked for: the newest."""


class State(NamedTuple):
    """Two states of a database are equal where nothing changed that a page shows."""

    results: str
    """Of attempts, answers, verifications, retractions and tags: a hash."""
    batches: str
    """Of the signs of life of batches: a hash."""


class AttemptLine(FrozenRecord):
    id: int
    run_id: int
    run: str | None
    model: str
    problem_id: str
    problem: str
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


class Newest(HasDatabase):
    def require(self) -> None:
        """Raises StoreError where the database is no longer where it was opened."""
        self._database.require()

    def state(self) -> State:
        """The state of the database: it counts attempts by status, and looks for the newest rows."""
        return self._database.read(_state)

    @read_transaction
    def attempts(
        self, session: Session, filters: Filters, most: int, before: int | None = None
    ) -> list[AttemptLine]:
        """The newest first. `before`: only those with a smaller number.

        Of the filters those on runs, problems and days are asked.
        """
        query = _lines(_passing(session, filters))
        if before is not None:
            query = query.where(models.Attempt.id < before)
        return _read(session, query.order_by(models.Attempt.id.desc()).limit(most))

    @read_transaction
    def sample_of(self, session: Session, attempt_id: int) -> list[AttemptLine]:
        """The attempts of an attempt's sample, by turn; none where there is no such attempt."""
        a, row = models.Attempt, session.get(models.Attempt, attempt_id)
        if row is None:
            return []
        same = [a.run_id == row.run_id, a.problem == row.problem, a.sample == row.sample]
        return _read(session, _lines(same).order_by(a.turn))


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
    from kernelproof.db.scores.score_table import read_problems, read_runs  # they bring numpy

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
        more = {"run": run, "model": model, "problem_id": problem_id, "problem": problem, "status": status}
        interval = None if low is None or high is None else Interval(low=low, high=high)
        found.append(record_of(AttemptLine, row, **more, speedup=speedup, interval=interval, pace=pace))
    return found
