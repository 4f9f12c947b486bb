"""The evaluation service's part of the database."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from kernelproof.db.columns import clock, utc_now
from kernelproof.db.connection import (
    Database,
    HasDatabase,
    change_transaction,
    read_transaction,
    write_transaction,
)
from kernelproof.db.evaluations import LEASE_S, Evaluations
from kernelproof.db.gpus import Gpus
from kernelproof.db.models import Caller, Worker
from kernelproof.db.queue import JobQueue
from kernelproof.db.rows import record_of
from kernelproof.errors import UsageError
from kernelproof.hashing import sha256_text
from kernelproof.types import FrozenRecord

FORGOTTEN_S = 86_400.0
"""Seconds after its last sign of life when a worker is no longer listed."""


class StoredWorker(FrozenRecord):
    owner: str
    """Machine and process."""
    role: str
    """`all`, `build` or `judge`."""
    backend: str
    """Backends that it takes, separated by commas."""
    device: str
    places: int
    running: int
    done: int
    silent_s: float
    """Seconds since its last sign of life."""
    alive: bool
    ended: str | None
    gpu: str | None
    """UUID of the one GPU that it measures on."""
    waits: str | None


class Workers(HasDatabase):
    @change_transaction
    def report(self, session: Session, /, owner: str, **facts: str | int | None) -> None:
        """A sign of life. `facts`: the columns `role`, `backend`, `device`, `places`, `running`, `done`,
        `gpu` and `waits`."""
        now = clock(session)
        session.execute(delete(Worker).where(Worker.renewed < now - FORGOTTEN_S))
        row = session.get(Worker, owner)
        if row is None:
            session.add(Worker(owner=owner, created=utc_now(), renewed=now, ended=None, **facts))
            return
        row.renewed, row.ended = now, None
        for name, value in facts.items():
            setattr(row, name, value)

    @change_transaction
    def end(self, session: Session, owner: str) -> None:
        row = session.get(Worker, owner)
        if row is not None:
            row.ended, row.running = utc_now(), 0

    @read_transaction
    def all(self, session: Session) -> Sequence[StoredWorker]:
        """Those of the last day, the newest sign of life first."""
        now = clock(session)
        rows = session.scalars(select(Worker).order_by(Worker.renewed.desc(), Worker.owner))
        return [_worker_view(row, now) for row in rows]


def _worker_view(row: Worker, now: float) -> StoredWorker:
    silent = max(0.0, now - row.renewed)
    return record_of(StoredWorker, row, silent_s=silent, alive=row.ended is None and silent <= LEASE_S)


PREFIX = "kp_"
"""So that a token is found where somebody leaves it, by those who look for such things."""


class StoredCaller(FrozenRecord):
    name: str
    quota: int | None
    """Most evaluations that may wait or run; None: no limit."""
    created: str
    revoked: str | None


class Callers(HasDatabase):
    def add(self, name: str, quota: int | None = None) -> str:
        """The new token of a caller, which cannot be read again. Raises UsageError where it has one."""
        token = PREFIX + secrets.token_urlsafe(32)

        def add(session: Session) -> None:
            row = session.get(Caller, name)
            if row is not None and row.revoked is None:
                raise UsageError(f"caller {name!r} has a token; revoke it first, or choose another name")
            session.merge(
                Caller(
                    name=name, token_sha256=sha256_text(token), quota=quota, created=utc_now(), revoked=None
                )
            )

        self._database.write(add)
        return token

    @write_transaction
    def revoke(self, session: Session, name: str) -> None:
        """The caller's token is accepted no more. Raises UsageError where there is none."""
        row = session.get(Caller, name)
        if row is None or row.revoked is not None:
            known = [each.name for each in self._all(session) if each.revoked is None]
            there = f"callers with a token: {', '.join(known)}" if known else "no caller has a token"
            raise UsageError(f"caller {name!r} has no token; {there}")
        row.revoked = utc_now()

    @read_transaction
    def with_token(self, session: Session, token: str) -> StoredCaller | None:
        """Whose token it is; None for one that is not accepted."""
        c = Caller
        wanted = select(c).where(c.token_sha256 == sha256_text(token), c.revoked.is_(None))
        row = session.scalar(wanted)
        return None if row is None else record_of(StoredCaller, row)

    def all(self) -> Sequence[StoredCaller]:
        """All of them, by name, revoked ones too."""
        return self._database.read(
            lambda session: [record_of(StoredCaller, row) for row in self._all(session)]
        )

    def count(self) -> int:
        wanted = select(func.count()).where(Caller.revoked.is_(None))
        return int(self._database.read(lambda session: session.scalar(wanted)) or 0)

    @staticmethod
    def _all(session: Session) -> Sequence[Caller]:
        return session.scalars(select(Caller).order_by(Caller.name)).all()


class ServiceData:
    """Queue, callers, workers and GPUs of the evaluation service."""

    def __init__(self, database: Database) -> None:
        self.evaluations = Evaluations(database)
        self.queue = JobQueue(database)
        self.callers = Callers(database)
        self.workers = Workers(database)
        self.gpus = Gpus(database)
