"""The store: nouns in, nouns out. Threads may share one; processes may share one file."""

from __future__ import annotations

import re
from pathlib import Path
from types import TracebackType
from typing import Self

from sqlalchemy import ColumnElement, exists, func, select
from sqlalchemy.orm import Session

from db import loading, models, records
from db.connection import Database, open_database
from db.leaderboard import leaderboard
from db.texts import Library
from db.types import utc_now
from db.views import AttemptState, Content, Leaderboard, LeaderboardFilters, StoredAttempt, VerificationKind
from pipeline.errors import UsageError
from pipeline.types import (
    AttemptKey,
    Extraction,
    Problem,
    Prompt,
    Response,
    RunSettings,
    Status,
    Verification,
)


def open_store(path: Path, *, create: bool = True, only_read: bool = False) -> Store:
    """The store in the SQLite file `path`, migrated to the newest schema; made when `create` is true.

    `only_read`: nothing will be stored, so that a read-only directory does, and nothing is made. Raises
    UsageError when it is missing and not to be made; StoreError when the file cannot be used: newer schema,
    another program's database, damaged, read-only, full disk, locked for a minute.
    """
    return Store(open_database(path, create=create and not only_read, only_read=only_read))


class Store:
    """All that is stored. Every writing method is one transaction: all of it is stored, or nothing."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @property
    def path(self) -> Path:
        """The SQLite file."""
        return self._database.path

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the file. The store must not be used afterwards."""
        self._database.close()

    def begin_run(self, settings: RunSettings) -> int:
        """The id of the run with these settings, which is made when there is none."""
        return self._database.write(lambda session: records.run_row(session, settings))

    def add_problem(self, problem: Problem) -> None:
        """Stores a problem, unless one with the same id and source is there."""
        self._database.write(lambda session: records.problem_row(session, problem))

    def attempts_of(self, run_id: int) -> dict[AttemptKey, AttemptState]:
        """How far each attempt of a run has come."""
        a, p = models.Attempt, models.Problem
        query = (
            select(a, p.problem_id, p.sha256, _has_response(), _has_candidate(), _has_verification())
            .join(p, p.id == a.problem)
            .where(a.run_id == run_id)
        )

        def states(session: Session) -> dict[AttemptKey, AttemptState]:
            found = {}
            for row, problem_id, sha256, response, candidate, verification in session.execute(query):
                key = AttemptKey(
                    problem_id=problem_id, problem_sha256=sha256, sample=row.sample, turn=row.turn
                )
                found[key] = AttemptState(
                    id=row.id,
                    status=Status(row.status) if row.status else None,
                    has_response=response,
                    has_candidate=bool(candidate),
                    has_verification=verification,
                )
            return found

        return self._database.read(states)

    def attempts_by_content(self, run_id: int) -> dict[Content, list[int]]:
        """The attempts of a run that are over, by what was given; oldest first where several were given it.

        For runs of kind `verify`, whose attempts have one answer and one extraction each.
        """
        a, p, r, c = models.Attempt, models.Problem, models.Response, models.Candidate
        query = (
            select(a.id, p.problem_id, p.sha256, r.text_sha256, c.source_sha256, c.status)
            .join(p, p.id == a.problem)
            .join(r, r.attempt_id == a.id)
            .join(c, c.attempt_id == a.id)
            .where(a.run_id == run_id, a.status.is_not(None))
            .order_by(a.id)
        )

        def found(session: Session) -> dict[Content, list[int]]:
            ids: dict[Content, list[int]] = {}
            for number, problem_id, problem_sha256, text, source, none in session.execute(query):
                content = Content(problem_id, problem_sha256, text, source, none)
                ids.setdefault(content, []).append(number)
            return ids

        return self._database.read(found)

    def begin_attempt(
        self, run_id: int, key: AttemptKey, prompt: Prompt | None = None, parent_id: int | None = None
    ) -> int:
        """The id of the attempt, which is made when there is none. `add_problem` comes before.

        A prompt rendered anew replaces the stored one only as long as no answer to it is stored.
        """

        def begin(session: Session) -> int:
            a = models.Attempt
            problem = records.problem_number(session, key.problem_id, key.problem_sha256)
            prompt_id = records.prompt_row(session, prompt) if prompt else None
            row = session.scalars(
                select(a).where(
                    a.run_id == run_id, a.problem == problem, a.sample == key.sample, a.turn == key.turn
                )
            ).one_or_none()
            if row is None:
                row = a(run_id=run_id, problem=problem, sample=key.sample, turn=key.turn, created=utc_now())
                row.prompt, row.parent_id = prompt_id, parent_id
                session.add(row)
            elif prompt_id is not None and not session.scalar(select(_has_response()).where(a.id == row.id)):
                row.prompt = prompt_id
            session.flush()
            return row.id

        return self._database.write(begin)

    def add_finished(
        self,
        settings: RunSettings,
        problem: Problem,
        response: Response,
        extraction: Extraction,
        verification: Verification | None,
        status: Status,
    ) -> int:
        """The id of a new attempt that is over: the next sample of its run, whichever process asks first.

        Run, problem, attempt and everything about it in one transaction: a kill leaves the whole or nothing.
        """

        def add(session: Session) -> int:
            a = models.Attempt
            run_id = records.run_row(session, settings)
            number = records.problem_row(session, problem)
            last = session.scalar(select(func.max(a.sample)).where(a.run_id == run_id, a.problem == number))
            row = a(run_id=run_id, problem=number, turn=1, created=utc_now())
            row.sample = 0 if last is None else last + 1
            row.status, row.finished = status, utc_now()
            session.add(row)
            session.flush()
            _append(session, row.id, records.response_row(session, response))
            session.add(records.candidate_row(session, row.id, extraction))
            if verification is not None:
                records.verification_rows(session, row.id, verification, "first")
            return row.id

        return self._database.write(add)

    def record_response(self, attempt_id: int, response: Response) -> None:
        """Appends an answer; call it before anything is parsed."""

        def record(session: Session) -> None:
            _append(session, attempt_id, records.response_row(session, response))

        self._database.write(record)

    def record_provider_error(self, attempt_id: int, message: str) -> None:
        """Appends what the provider said instead of an answer."""
        self._database.write(lambda session: _append(session, attempt_id, models.Response(error=message)))

    def record_extraction(self, attempt_id: int, extraction: Extraction) -> None:
        """Appends what extraction found, unless the newest row says the same."""

        def record(session: Session) -> None:
            newest = loading.newest_candidate(session, attempt_id)
            if newest is None or loading.extraction_of(newest, Library(session)) != extraction:
                session.add(records.candidate_row(session, attempt_id, extraction))

        self._database.write(record)

    def record_verification(
        self, attempt_id: int, verification: Verification, kind: VerificationKind = "first"
    ) -> int:
        """Appends a verification with all its evidence and returns its id. The attempt's status stays."""
        return self._database.write(
            lambda session: records.verification_rows(session, attempt_id, verification, kind)
        )

    def finish_attempt(self, attempt_id: int, status: Status) -> None:
        """Sets how the attempt ended; a retried attempt may end anew.

        Raises UsageError when there is no such attempt.
        """

        def finish(session: Session) -> None:
            row = session.get(models.Attempt, attempt_id)
            if row is None:
                raise UsageError(f"there is no attempt {attempt_id}")
            row.status, row.finished = status, utc_now()

        self._database.write(finish)

    def load_attempt(self, attempt_id: int) -> StoredAttempt:
        """Everything stored about an attempt, with what was altered since.

        Raises UsageError when there is no such attempt, StoreError when its rows make no sense.
        """
        return self._database.read(lambda session: loading.load_attempt(session, attempt_id))

    def retract(self, verification_id: int, reason: str) -> None:
        """Says that a verification no longer counts. It stays readable; a second retraction changes nothing.

        Raises UsageError when there is no such verification.
        """

        def retract(session: Session) -> None:
            if session.get(models.Verification, verification_id) is None:
                raise UsageError(f"there is no verification {verification_id}")
            if session.get(models.Retraction, verification_id) is None:
                session.add(
                    models.Retraction(verification_id=verification_id, reason=reason, created=utc_now())
                )

        self._database.write(retract)

    def latest_attempt_id(self) -> int | None:
        """The attempt begun last; None in an empty store."""
        return self._database.read(lambda session: session.scalar(select(func.max(models.Attempt.id))))

    def resolve_attempt(self, text: str) -> int:
        """The attempt that `17`, `#17` or `last` means.

        Raises UsageError for another spelling, and when there is no such attempt.
        """
        last = self.latest_attempt_id()
        if last is None:
            raise UsageError(f"no attempts are stored in {self.path} yet; run kernelproof generate first")
        if text == "last":
            return last
        match = re.fullmatch(r"#?([0-9]{1,18})", text)
        if match is None:
            raise UsageError(f"{text!r} names no attempt; give its number (17 or #17), or: last")
        number = int(match[1])
        if not self._database.read(lambda session: session.get(models.Attempt, number)):
            raise UsageError(f"there is no attempt {number}; the last one is {last}")
        return number

    def leaderboard(self, filters: LeaderboardFilters | None = None) -> Leaderboard:
        """Best speedups by problem and rates by model, as docs/guide/leaderboard.md defines them."""
        chosen = filters or LeaderboardFilters()
        return self._database.read(lambda session: leaderboard(session.connection(), chosen))


def _append(session: Session, attempt_id: int, row: models.Response) -> None:
    r = models.Response
    newest = session.scalar(select(func.max(r.ordinal)).where(r.attempt_id == attempt_id))
    row.attempt_id, row.ordinal, row.created = attempt_id, (newest or 0) + 1, utc_now()
    session.add(row)


def _has_response() -> ColumnElement[bool]:
    r = models.Response
    return exists().where(r.attempt_id == models.Attempt.id, r.error.is_(None)).correlate(models.Attempt)


def _has_candidate() -> ColumnElement[bool]:
    """NULL when nothing was extracted yet; else whether the newest extraction found a program."""
    c = models.Candidate
    return (
        select(c.source_sha256.is_not(None))
        .where(c.attempt_id == models.Attempt.id)
        .order_by(c.id.desc())
        .limit(1)
        .correlate(models.Attempt)
        .scalar_subquery()
    )


def _has_verification() -> ColumnElement[bool]:
    v, r = models.Verification, models.Retraction
    return (
        exists()
        .where(v.attempt_id == models.Attempt.id, v.kind != "reproduce")
        .where(~exists().where(r.verification_id == v.id))
        .correlate(models.Attempt)
    )
