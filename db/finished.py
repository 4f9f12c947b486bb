"""Attempts that are over when they are stored: candidates that somebody gave, with their verification."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import bindparam, func, select
from sqlalchemy.orm import Session

from kernelproof.db import attempts, models, records
from kernelproof.db.types import utc_now
from kernelproof.db.writing import insert
from kernelproof.types import Extraction, Problem, Response, RunSettings, Status, Verification


@dataclass(frozen=True)
class Finished:
    """All that is stored of such an attempt."""

    run: RunSettings
    problem: Problem
    response: Response
    extraction: Extraction
    verification: Verification | None
    """None where the text held no program."""
    status: Status
    parent_id: int | None = None


def add_finished(session: Session, done: Finished) -> int:
    """The id of the new attempt: the next sample of its run, whichever process asks first."""
    run_id = records.run_row(session, done.run)
    problem = records.problem_row(session, done.problem)
    of = {"run": run_id, "problem": problem}
    last, now = session.connection().execute(_LAST, of).scalar(), utc_now()
    row = models.Attempt(run_id=run_id, problem=problem, turn=1, parent_id=done.parent_id, created=now)
    row.sample, row.status, row.finished = 0 if last is None else last + 1, done.status, now
    number = insert(session, row)
    attempts.append(session, number, records.response_row(session, done.response))
    insert(session, records.candidate_row(session, number, done.extraction))
    if done.verification is not None:
        records.verification_rows(session, number, done.verification, "first")
    return number


_LAST = select(func.max(models.Attempt.sample)).where(
    models.Attempt.run_id == bindparam("run"), models.Attempt.problem == bindparam("problem")
)
