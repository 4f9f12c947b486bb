"""The store: nouns in, nouns out. Threads may share one; processes may share one file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Self

from sqlalchemy import func, literal, select
from sqlalchemy.orm import Session

from kernelproof.db import attempts, leases, loading, models, records, reported
from kernelproof.db.batches import Batches, ServerBatchJournal, Tags, runs_named
from kernelproof.db.columns import utc_now
from kernelproof.db.connection import (
    Database,
    HasDatabase,
    open_database,
    reading,
    write_transaction,
    writing,
)
from kernelproof.db.leases import Leases
from kernelproof.db.loading import Newest
from kernelproof.db.models import Retraction
from kernelproof.db.reported import Audits
from kernelproof.db.rows import Library, batched
from kernelproof.db.scores.queries import ScoreQueries
from kernelproof.db.service import ServiceData
from kernelproof.db.views import (
    AttemptLease,
    StoredAttempt,
)
from kernelproof.errors import NothingStored, UsageError
from kernelproof.types import (
    AttemptKey,
    Extraction,
    Prompt,
    Response,
    RunSettings,
    Status,
)
from kernelproof.types.record import STORED
from kernelproof.workspace import DatabasePlace


def open_store(place: DatabasePlace, *, create: bool = True, only_read: bool = False) -> Store:
    """The store in a SQLite file or on a server, migrated to the newest schema; made when `create` is true.

    `only_read`: nothing but caches will be stored, so that a read-only directory does, and nothing is made.
    Raises UsageError when it is missing and not to be made; StoreError when it cannot be used: newer schema,
    another program's database, damaged, read-only, full disk, locked for two minutes, server away.
    """
    return Store(open_database(place, create=create and not only_read, only_read=only_read))


def open_if_there(place: DatabasePlace) -> Store | None:
    """The store at `place`, to read; None where nothing was stored yet. Raises StoreError as `open_store`."""
    try:
        return open_store(place, only_read=True)
    except NothingStored:
        return None


class Store(HasDatabase):
    """All that is stored. Every writing method is one transaction: all of it is stored, or nothing."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.leases = Leases(database)
        self.batches = Batches(database)
        self.server_batches = ServerBatchJournal(database)
        self.scores = ScoreQueries(database)
        self.newest = Newest(database)
        self.audits = Audits(database)
        self.service = ServiceData(database)
        self.tags = Tags(database)

    @property
    def place(self) -> DatabasePlace:
        return self._database.place

    @property
    def path(self) -> Path:
        """The SQLite file. Raises UsageError where the store is on a server."""
        if not isinstance(self.place, Path):
            raise UsageError(f"{self.place} is on a server; this works on a SQLite file")
        return self.place

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the file. The store must not be used afterwards."""
        self._database.close()

    begin_run = writing(records.ensure_run)
    add_problem = writing(records.ensure_problem)
    add_finished = writing(attempts.add_finished)
    add_imported = writing(reported.add)
    record_verification = writing(records.add_verification)
    spent = reading(attempts.spent)
    answered = reading(attempts.answered)
    usage_of = reading(attempts.usage_of)
    attempts_of = reading(attempts.states)
    attempts_by_content = reading(attempts.by_content)
    load_attempt = reading(loading.load_attempt)

    def runs_named(self, text: str) -> dict[int, RunSettings]:
        """The runs with this name, or the one with this number: number to settings, oldest first.

        Raises UsageError when there is none.
        """

        def query(session: Session) -> dict[int, RunSettings]:
            rows = [session.get_one(models.Run, number) for number in runs_named(session, text)]
            return {row.id: RunSettings.model_validate(row.settings, context=STORED) for row in rows}

        runs = self._database.read(query)
        if not runs:
            named = select(models.Run.name).where(models.Run.name.is_not(None)).distinct()
            names = self._database.read(lambda session: list(session.scalars(named)))
            near = " or ".join(map(repr, get_close_matches(text, [name for name in names if name])))
            hint = f"did you mean {near}? " if near else ""
            raise UsageError(f"there is no run {text!r}; {hint}kernelproof leaderboard --by run lists them")
        return runs

    def run_id(self, settings: RunSettings) -> int | None:
        """The run with these settings; None when there is none."""
        r = models.Run
        return self._database.read(lambda session: session.scalar(select(r.id).where(r.key == settings.key)))

    def begin_attempt(
        self, run_id: int, key: AttemptKey, prompt: Prompt | None = None, parent_id: int | None = None
    ) -> int:
        """The id of the attempt, which is made when there is none. `add_problem` comes before.

        A prompt rendered anew replaces the stored one only as long as no answer to it is stored.
        """

        return self._database.write(
            lambda session: attempts.begin(session, run_id, key, prompt, parent_id).id
        )

    @write_transaction
    def lease_attempt(
        self,
        session: Session,
        run_id: int,
        key: AttemptKey,
        prompt: Prompt,
        parent_id: int | None,
        question_key: str,
        owner: str,
        plan: int | None = None,
    ) -> AttemptLease:
        """Begins an attempt, as `begin_attempt` does, and takes the lease on its question in one step.

        `plan`: which of the parent's plans it carries out, from 1.

        Where the lease is granted and another attempt has an answer to the same question, this attempt has
        it from then on.
        """
        row = attempts.begin(session, run_id, key, prompt, parent_id, question_key, plan)
        return attempts.lease(session, row, owner)

    def lease_stored(self, attempt_id: int, owner: str) -> AttemptLease:
        return self._database.write(
            lambda session: attempts.lease(session, session.get_one(models.Attempt, attempt_id), owner)
        )

    @write_transaction
    def record_response(self, session: Session, attempt_id: int, response: Response) -> None:
        """Appends an answer; call it before anything is parsed. The first answer of an attempt counts: one
        that comes later is kept, and paid for, and changes nothing.
        """
        attempts.append(session, attempt_id, records.unsaved_response(session, response))

    def record_provider_error(self, attempt_id: int, message: str, *, retriable: bool | None = None) -> None:
        """Appends what the provider said instead of an answer, and whether asking again can help."""
        error = models.Response(error=message, retriable=retriable)
        self._database.write(lambda session: attempts.append(session, attempt_id, error))

    @write_transaction
    def record_extraction(self, session: Session, attempt_id: int, extraction: Extraction) -> None:
        """Appends what extraction found, unless the newest row says the same."""
        newest = loading.newest_candidate(session, attempt_id)
        if newest is None or loading.extraction_of(newest, Library(session)) != extraction:
            session.add(records.unsaved_candidate(session, attempt_id, extraction))

    @write_transaction
    def finish_attempt(
        self, session: Session, attempt_id: int, status: Status, owner: str | None = None
    ) -> None:
        """Sets how the attempt ended; a retried attempt may end anew. Frees the lease that `owner` has on it.

        Raises UsageError when there is no such attempt.
        """
        row = session.get(models.Attempt, attempt_id)
        if row is None:
            raise UsageError(f"there is no attempt {attempt_id}")
        row.status, row.finished = status, utc_now()
        if owner is not None:
            leases.give_back(session, attempts.lease_key(row), owner)

    def load_attempts(self, numbers: Iterable[int]) -> Iterator[StoredAttempt]:
        """The same of many, in their order; few of them are in memory."""
        for some in batched(numbers, 50):
            yield from self._database.read(partial(loading.load_attempts, numbers=some))

    def load_sample(self, run_id: int, key: AttemptKey) -> list[StoredAttempt]:
        """Everything stored about the attempts of the sample that `key` belongs to, by turn."""
        one = (key.problem_id, key.problem_sha256, key.sample)
        states = self.attempts_of(run_id).items()
        same = [(k.turn, s.id) for k, s in states if (k.problem_id, k.problem_sha256, k.sample) == one]
        return list(self.load_attempts(number for _, number in sorted(same)))

    @write_transaction
    def retract(self, session: Session, verification_id: int, reason: str, *, counts: bool = False) -> bool:
        """Says that a verification no longer counts, or with `counts` that it does again. It stays readable.
        The verification that it repeats, and all that repeat it, change with it.

        False when that was said before, and nothing changed. Raises UsageError when there is no such
        verification.
        """
        if session.get(models.Verification, verification_id) is None:
            raise UsageError(f"there is no verification {verification_id}")
        gone = session.scalar(select(attempts.retracted(literal(verification_id))))
        if bool(gone) is not counts:
            return False
        said = {"counts": counts, "reason": reason, "created": utc_now()}
        for number in records.alike(session, verification_id):
            session.add(Retraction(verification_id=number, **said))
        return True

    def latest_attempt_id(self) -> int | None:
        """The attempt begun last; None in an empty store."""
        return self._database.read(lambda session: session.scalar(select(func.max(models.Attempt.id))))

    def resolve_attempt(self, text: str) -> int:
        """The attempt that `17`, `#17` or `last` means.

        Raises UsageError for another spelling, and when there is no such attempt.
        """
        last = self.latest_attempt_id()
        if last is None:
            raise UsageError(f"no attempts are stored in {self.place} yet; run kernelproof generate first")
        if text == "last":
            return last
        match = re.fullmatch(r"#?([0-9]{1,18})", text)
        if match is None:
            raise UsageError(f"{text!r} names no attempt; give its number (17 or #17), or: last")
        number = int(match[1])
        if not self._database.read(lambda session: session.get(models.Attempt, number)):
            raise UsageError(f"there is no attempt {number}; the last one is {last}")
        return number
