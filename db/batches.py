"""What stands beside runs: batches, one row for each command that asks or judges, which `--like` and the
status of runs read; the tags that people put on runs; and batches of questions at a model's server.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import delete, or_, select
from sqlalchemy.orm import Session

from kernelproof.db import attempts
from kernelproof.db.columns import utc_now
from kernelproof.db.connection import HasDatabase, read_transaction, write_transaction
from kernelproof.db.leases import is_free
from kernelproof.db.models import Batch, Run, RunTag, ServerBatch
from kernelproof.db.rows import record_of
from kernelproof.db.views import StoredBatch
from kernelproof.providers import BatchJournal, OpenBatch


class Batches(HasDatabase):
    @write_transaction
    def begin(
        self, session: Session, owner: str, name: str | None, runs: list[int], config: dict[str, Any]
    ) -> int:
        row = Batch(owner=owner, name=name, runs=runs, config=config, progress={}, created=utc_now())
        row.renewed = time.time()
        session.add(row)
        session.flush()
        return row.id

    @write_transaction
    def report(
        self, session: Session, batch_id: int, progress: dict[str, Any], ended: str | None = None
    ) -> None:
        """A sign of life: how far the batch is, and how it ended when it did."""
        row = session.get_one(Batch, batch_id)
        row.progress, row.renewed = progress, time.time()
        if ended is not None:
            row.ended, row.finished = ended, utc_now()

    @read_transaction
    def newest(self, session: Session, run: str | None = None, most: int = 20) -> list[StoredBatch]:
        """Batches, the newest first; `run` is the name or the number of a run they add to."""
        query = select(Batch).order_by(Batch.id.desc())
        rows = list(session.scalars(query if run is not None else query.limit(most)))
        if run is not None:
            chosen = set(runs_named(session, run))
            rows = [row for row in rows if chosen.intersection(row.runs)][:most]
        return [_stored(row) for row in rows]


def runs_named(session: Session, text: str) -> list[int]:
    """The numbers of the runs with this name, or of the run with this number; oldest first."""
    found = re.fullmatch(r"#?([0-9]{1,18})", text)
    number = int(found[1]) if found else None
    query = select(Run.id).where(or_(Run.name == text, Run.id == number)).order_by(Run.id)
    return list(session.scalars(query))


def _stored(row: Batch) -> StoredBatch:
    silent = max(0.0, time.time() - row.renewed)
    return record_of(StoredBatch, row, silent_s=silent, alive=is_alive(row))


def is_alive(row: Batch) -> bool:
    return row.ended is None and not is_free(row.owner, row.renewed)


class Tags(HasDatabase):
    @write_transaction
    def add(self, session: Session, runs: Sequence[int], tags: Sequence[str]) -> int:
        """Puts tags on runs; how many were not there before."""
        there = self._of(session, runs)
        new = {(run, tag) for run in runs for tag in tags} - there
        session.add_all(RunTag(run_id=run, tag=tag, created=utc_now()) for run, tag in sorted(new))
        return len(new)

    @write_transaction
    def remove(self, session: Session, runs: Sequence[int], tags: Sequence[str]) -> int:
        """Takes tags off runs; how many were there."""
        before = self._of(session, runs)
        session.execute(delete(RunTag).where(RunTag.run_id.in_(runs), RunTag.tag.in_(tags)))
        return len(before) - len(self._of(session, runs))

    def of(self, runs: Sequence[int]) -> dict[int, list[str]]:
        found: dict[int, list[str]] = {run: [] for run in runs}
        for run, tag in sorted(self._database.read(lambda session: self._of(session, runs))):
            found[run].append(tag)
        return found

    @staticmethod
    def _of(session: Session, runs: Sequence[int]) -> set[tuple[int, str]]:
        rows = session.execute(select(RunTag.run_id, RunTag.tag).where(RunTag.run_id.in_(runs)))
        return {(row.run_id, row.tag) for row in rows}


class ServerBatchJournal(HasDatabase, BatchJournal):
    """The table `server_batches`. A batch is open as long as a question of it has no answer in the store."""

    @write_transaction
    def open_batches(self, session: Session, model: str, base_url: str | None) -> list[OpenBatch]:
        """The open batches of a model; those whose answers are all stored are closed now."""
        mine = (ServerBatch.model == model, ServerBatch.base_url.is_(base_url))
        query = select(ServerBatch).where(*mine, ServerBatch.open.is_(True)).order_by(ServerBatch.id)
        rows = session.scalars(query).all()
        stored = attempts.answered(session, {key for row in rows for key in row.keys}) if rows else set()
        for row in rows:
            row.open = not stored.issuperset(row.keys)
        return [
            OpenBatch(row.server_id, [key for key in row.keys if key not in stored])
            for row in rows
            if row.open
        ]

    def submitted(self, model: str, base_url: str | None, batch_id: str, keys: Sequence[str]) -> None:
        row = ServerBatch(server_id=batch_id, model=model, base_url=base_url, keys=list(keys), open=True)
        row.created = utc_now()
        self._database.write(lambda session: session.add(row))

    @write_transaction
    def renamed(self, session: Session, batch_id: str, new: str) -> None:
        """Puts the server's id in the place of our own."""
        for row in _rows(session, batch_id):
            row.server_id = new

    @write_transaction
    def closed(self, session: Session, batch_id: str, keys: Collection[str] | None = None) -> None:
        """Takes questions out of a batch, or closes it."""
        gone = None if keys is None else set(keys)
        for row in _rows(session, batch_id):
            left = [] if gone is None else [key for key in row.keys if key not in gone]
            if left:
                row.keys = left
            else:
                row.open = False


def _rows(session: Session, batch_id: str) -> Sequence[ServerBatch]:
    query = select(ServerBatch).where(ServerBatch.server_id == batch_id, ServerBatch.open.is_(True))
    return session.scalars(query).all()
