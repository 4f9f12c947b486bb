"""Workers of the evaluation service: their signs of life, for people and for `/v1/workers`."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from kernelproof.db.clock import clock
from kernelproof.db.connection import Database
from kernelproof.db.evaluation_records import LEASE_S
from kernelproof.db.service_tables import Worker
from kernelproof.db.types import utc_now
from kernelproof.types import FrozenRecord

FORGOTTEN_S = 86_400.0
"""Seconds after its last sign of life when a worker is no longer listed."""


class StoredWorker(FrozenRecord):
    """One worker, as of its last sign of life."""

    owner: str
    """Machine and process."""
    role: str
    """`all`, `build` or `judge`."""
    backend: str
    """Backends that it takes, separated by commas."""
    device: str
    places: int
    """Evaluations that it has at once."""
    running: int
    done: int
    silent_s: float
    """Seconds since its last sign of life."""
    alive: bool
    ended: str | None
    gpu: str | None
    """UUID of the one GPU that it measures on."""
    waits: str | None
    """Why it takes no evaluations now."""


class Workers:
    """The workers in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def report(self, owner: str, **facts: str | int | None) -> None:
        """A sign of life. `facts`: the columns `role`, `backend`, `device`, `places`, `running`, `done`,
        `gpu` and `waits`."""

        def report(session: Session) -> None:
            now = clock(session)
            session.execute(delete(Worker).where(Worker.renewed < now - FORGOTTEN_S))
            row = session.get(Worker, owner)
            if row is None:
                session.add(Worker(owner=owner, created=utc_now(), renewed=now, ended=None, **facts))
                return
            row.renewed, row.ended = now, None
            for name, value in facts.items():
                setattr(row, name, value)

        self._database.change(report)

    def end(self, owner: str) -> None:
        """The worker ended by itself."""

        def end(session: Session) -> None:
            row = session.get(Worker, owner)
            if row is not None:
                row.ended, row.running = utc_now(), 0

        self._database.change(end)

    def all(self) -> Sequence[StoredWorker]:
        """Those of the last day, the newest sign of life first."""

        def found(session: Session) -> list[StoredWorker]:
            now = clock(session)
            rows = session.scalars(select(Worker).order_by(Worker.renewed.desc(), Worker.owner))
            return [_view(row, now) for row in rows]

        return self._database.read(found)


def _view(row: Worker, now: float) -> StoredWorker:
    silent = max(0.0, now - row.renewed)
    names = ("owner", "role", "backend", "device", "places", "running", "done", "ended", "gpu", "waits")
    return StoredWorker(
        **{name: getattr(row, name) for name in names},
        silent_s=silent,
        alive=row.ended is None and silent <= LEASE_S,
    )
