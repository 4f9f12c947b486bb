"""Programs that were imported, with what was reported of them; callers hold the transaction. And audits:
results that led the leaderboard, and whether they held when they were verified once more.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, bindparam, func, select
from sqlalchemy.orm import Session

from kernelproof.db import attempts, models, records
from kernelproof.db.columns import utc_now
from kernelproof.db.connection import HasDatabase
from kernelproof.db.models import Audit, Reported
from kernelproof.db.rows import Library, Reading, batched, keep_optional, record_of, whole
from kernelproof.types import Extraction, Problem, Reproduction, Response, RunSettings
from kernelproof.types import ReproductionFinding as Finding
from kernelproof.types.reproduction import ReportedResult


class Imported(NamedTuple):
    problem: Problem
    response: Response
    extraction: Extraction
    reported: ReportedResult


class Kept(NamedTuple):
    attempt_id: int
    new: bool
    """False when it was there before."""


class _Content(NamedTuple):
    """Which program it is: the same file with the same text in the same run is stored once."""

    source: str
    problem: int
    text_sha256: str | None


def add(session: Session, settings: RunSettings, items: Sequence[Imported]) -> tuple[int, list[Kept]]:
    """The run's number, and for each program its attempt: all are stored, or none.

    A program that the run has already, from the same file with the same text, stays as it is; a claim
    about it that is new is appended. One that is to be judged has no status.
    """
    run_id = records.ensure_run(session, settings)
    known = _known(session, run_id)
    kept = []
    for item in items:
        problem = records.ensure_problem(session, item.problem)
        content = _Content(item.reported.source, problem, keep_optional(session, item.response.text))
        before = known.get(content)
        attempt_id = before if before is not None else _begin(session, run_id, problem, item)
        values = _values(session, item.reported)
        if before is None or _newest_values(session, attempt_id) != values:
            session.add(Reported(attempt_id=attempt_id, created=utc_now(), **values))
        known[content] = attempt_id
        kept.append(Kept(attempt_id, before is None))
    return run_id, kept


def _known(session: Session, run_id: int) -> dict[_Content, int]:
    a, r = models.Attempt, models.Response
    query = (
        select(Reported.source, a.problem, r.text_sha256, a.id)
        .join(a, a.id == Reported.attempt_id)
        .join(r, r.attempt_id == a.id)
        .where(a.run_id == run_id)
    )
    return {_Content(*row[:3]): row[3] for row in session.execute(query).all()}


def _begin(session: Session, run_id: int, problem: int, item: Imported) -> int:
    """A new attempt with its answer and what was found in it: the next sample of its problem."""
    a = models.Attempt
    last = session.scalar(select(func.max(a.sample)).where(a.run_id == run_id, a.problem == problem))
    row = a(run_id=run_id, problem=problem, turn=1, created=utc_now())
    row.sample = 0 if last is None else last + 1
    if item.extraction.candidate is None:
        row.status, row.finished = item.extraction.status, utc_now()
    session.add(row)
    session.flush()
    attempts.append(session, row.id, records.unsaved_response(session, item.response))
    session.add(records.unsaved_candidate(session, row.id, item.extraction))
    return row.id


def _values(session: Session, reported: ReportedResult) -> dict[str, Any]:
    raw = None if reported.raw is None else json.dumps(reported.raw, sort_keys=True)
    return {**reported.model_dump(exclude={"raw"}), "raw_sha256": keep_optional(session, raw)}


def _newest(session: Session, attempt_id: int) -> Reported | None:
    query = select(Reported).where(Reported.attempt_id == attempt_id).order_by(Reported.id.desc()).limit(1)
    return session.scalars(query).first()


def _newest_values(session: Session, attempt_id: int) -> dict[str, Any] | None:
    row = _newest(session, attempt_id)
    return None if row is None else {name: getattr(row, name) for name in _COLUMNS}


_COLUMNS = (*(name for name in ReportedResult.model_fields if name != "raw"), "raw_sha256")


def newest(session: Session, attempts: Collection[int]) -> dict[int, Reported]:
    """The row that was last reported of each attempt; those that were not imported have none."""
    return {row.attempt_id: row for row in _REPORTED.objects(session, {"attempts": list(attempts)})}


_REPORTED = Reading(
    (Reported,),
    whole(Reported)
    .where(Reported.attempt_id.in_(bindparam("attempts", expanding=True)))
    .order_by(Reported.id),
)


def of_row(row: Reported, texts: Library) -> ReportedResult:
    return record_of(ReportedResult, row, raw=texts.get_json(row.raw_sha256, "claim", None))


class AuditResult(NamedTuple):
    finding: Finding
    created: str


class Audits(HasDatabase):
    def record(self, began: str, seed: int | None, verification_id: int, found: Reproduction) -> None:
        row = Audit(began=began, seed=seed, verification_id=verification_id, created=utc_now())
        row.reproduction_id, row.finding, row.reason = found.verification_id, found.finding, found.reason
        self._database.write(lambda session: session.add(row))

    def newest(self, verifications: Collection[int]) -> dict[int, AuditResult]:
        """Verification to its newest audit, of those that have one."""
        return self._database.read(lambda session: newest_audits(session.connection(), verifications))


def newest_audits(connection: Connection, verifications: Collection[int]) -> dict[int, AuditResult]:
    """Verification to its newest audit, of those that have one."""
    these = Audit.verification_id.in_(bindparam("these", expanding=True))
    query = select(Audit.verification_id, Audit.finding, Audit.created).where(these).order_by(Audit.id)
    found: dict[int, AuditResult] = {}
    for some in batched(sorted(verifications)):
        for row in connection.execute(query, {"these": some}):
            found[row.verification_id] = AuditResult(Finding(row.finding), row.created)
    return found
