"""Attempts that are over when they are stored: candidates that somebody gave, with their verification."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from kernelproof.db import attempts, models, records
from kernelproof.db.types import utc_now
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
    a = models.Attempt
    run_id = records.run_row(session, done.run)
    number = records.problem_row(session, done.problem)
    last = session.scalar(select(func.max(a.sample)).where(a.run_id == run_id, a.problem == number))
    row = a(run_id=run_id, problem=number, turn=1, parent_id=done.parent_id, created=utc_now())
    row.sample = 0 if last is None else last + 1
    row.status, row.finished = done.status, utc_now()
    session.add(row)
    session.flush()
    attempts.append(session, row.id, records.response_row(session, done.response))
    session.add(records.candidate_row(session, row.id, done.extraction))
    if done.verification is not None:
        records.verification_rows(session, row.id, done.verification, "first")
    return row.id
