"""Batches: one row for each command that asks or judges; what `kernelproof status` and `--like` read."""

from __future__ import annotations

import re
import time
from typing import Any

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from kernelproof.db.columns import utc_now
from kernelproof.db.connection import Database
from kernelproof.db.leases import is_free
from kernelproof.db.models import Batch, Run
from kernelproof.db.views import StoredBatch


class Batches:
    """The batches of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(self, owner: str, name: str | None, runs: list[int], config: dict[str, Any]) -> int:
        """The id of a new batch."""

        def begin(session: Session) -> int:
            row = Batch(owner=owner, name=name, runs=runs, config=config, progress={}, created=utc_now())
            row.renewed = time.time()
            session.add(row)
            session.flush()
            return row.id

        return self._database.write(begin)

    def report(self, batch_id: int, progress: dict[str, Any], ended: str | None = None) -> None:
        """A sign of life: how far the batch is, and how it ended when it did."""

        def report(session: Session) -> None:
            row = session.get_one(Batch, batch_id)
            row.progress, row.renewed = progress, time.time()
            if ended is not None:
                row.ended, row.finished = ended, utc_now()

        self._database.write(report)

    def newest(self, run: str | None = None, most: int = 20) -> list[StoredBatch]:
        """Batches, the newest first; `run` is the name or the number of a run they add to."""

        def found(session: Session) -> list[StoredBatch]:
            query = select(Batch).order_by(Batch.id.desc())
            rows = list(session.scalars(query if run is not None else query.limit(most)))
            if run is not None:
                chosen = set(runs_named(session, run))
                rows = [row for row in rows if chosen.intersection(row.runs)][:most]
            return [_stored(row) for row in rows]

        return self._database.read(found)


def runs_named(session: Session, text: str) -> list[int]:
    """The numbers of the runs with this name, or of the run with this number; oldest first."""
    found = re.fullmatch(r"#?([0-9]{1,18})", text)
    number = int(found[1]) if found else None
    query = select(Run.id).where(or_(Run.name == text, Run.id == number)).order_by(Run.id)
    return list(session.scalars(query))


def _stored(row: Batch) -> StoredBatch:
    silent = time.time() - row.renewed
    return StoredBatch(
        id=row.id,
        name=row.name,
        runs=tuple(row.runs),
        config=row.config,
        progress=row.progress,
        created=row.created,
        finished=row.finished,
        ended=row.ended,
        silent_s=max(0.0, silent),
        alive=is_alive(row),
    )


def is_alive(row: Batch) -> bool:
    """Whether the process of a batch is at work."""
    return row.ended is None and not is_free(row.owner, row.renewed)
