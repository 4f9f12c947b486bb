"""GPUs of the evaluation service: which judge holds which, and which are set aside.

A judge takes a GPU under a lease with a fencing token, and renews the lease while it lives. A lease that was
not renewed passes to the next judge. All times are of the database's clock, as those of evaluations are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import select
from sqlalchemy.orm import Session

from kernelproof.db.columns import clock, utc_now
from kernelproof.db.connection import HasDatabase, read_transaction, write_transaction
from kernelproof.db.evaluations import LEASE_S
from kernelproof.db.leases import is_gone
from kernelproof.db.models import Gpu
from kernelproof.db.rows import record_of
from kernelproof.types import FrozenRecord

GpuState = Literal["free", "held", "set aside"]


@dataclass(frozen=True)
class LeasedGpu:
    uuid: str
    owner: str
    token: int
    unproven: bool
    """Whether it has to pass the canary first."""


class StoredGpu(FrozenRecord):
    uuid: str
    name: str
    host: str
    state: GpuState
    owner: str | None
    reason: str | None
    unproven: bool
    silent_s: float
    """Seconds since its judge's last sign of life."""
    token: int


class Gpus(HasDatabase):
    """The GPUs in a database. Every method is one transaction."""

    @write_transaction
    def take(
        self, session: Session, uuid: str, owner: str, *, name: str, host: str, lease_s: float = LEASE_S
    ) -> LeasedGpu | StoredGpu:
        """The lease on a GPU, or the GPU as it is, where another judge holds it or it is set aside."""
        now = clock(session)
        row = _row(session, uuid)
        if row is None:
            row = Gpu(uuid=uuid, name=name, host=host, token=0, renewed=now, unproven=False)
            row.created = utc_now()
            session.add(row)
        seen = _view(row, now)
        if seen.state == "set aside" or (seen.state == "held" and seen.owner != owner):
            return seen
        row.name, row.host, row.owner = name, host, owner
        row.token, row.renewed, row.leased = row.token + 1, now, now + lease_s
        return LeasedGpu(uuid, owner, row.token, row.unproven)

    @write_transaction
    def renew(self, session: Session, lease: LeasedGpu, lease_s: float = LEASE_S) -> bool:
        """Renews a lease; False where it was lost, or the GPU was set aside."""
        row = _held(session, lease)
        if row is None:
            return False
        now = clock(session)
        row.renewed, row.leased = now, now + lease_s
        return True

    @write_transaction
    def give_back(self, session: Session, lease: LeasedGpu) -> None:
        """Frees a GPU, if the lease on it is still held."""
        row = _held(session, lease)
        if row is not None:
            row.owner, row.leased = None, None

    @write_transaction
    def prove(self, session: Session, lease: LeasedGpu) -> None:
        """The GPU passed the canary."""
        row = _held(session, lease)
        if row is not None:
            row.unproven = False

    @write_transaction
    def set_aside(self, session: Session, uuid: str, reason: str) -> bool:
        """Takes a GPU from its judge, and gives it to none. The first reason stays. False for an unknown
        GPU."""
        row = _row(session, uuid)
        if row is None:
            return False
        row.owner, row.leased, row.set_aside = None, None, row.set_aside or reason
        return True

    @write_transaction
    def put_back(self, session: Session, uuid: str) -> bool:
        """Lets judges take a GPU again that was set aside: the next one asks the canary first.

        False for a GPU that is unknown or not set aside.
        """
        row = _row(session, uuid)
        if row is None or row.set_aside is None:
            return False
        row.set_aside, row.unproven = None, True
        return True

    @read_transaction
    def all(self, session: Session) -> Sequence[StoredGpu]:
        """All GPUs, by host and UUID."""
        now = clock(session)
        return [_view(row, now) for row in session.scalars(select(Gpu).order_by(Gpu.host, Gpu.uuid))]


def is_held(session: Session, lease: LeasedGpu) -> bool:
    """Whether nobody took the GPU since, and it was not set aside. The row is locked until the transaction's
    end."""
    return _held(session, lease) is not None


def _held(session: Session, lease: LeasedGpu) -> Gpu | None:
    """The GPU's row, if the lease on it was neither lost to another judge nor ended by setting it aside.

    A lease whose time is over still holds as long as no other judge has taken the GPU.
    """
    row = _row(session, lease.uuid)
    return row if row is not None and (row.owner, row.token) == (lease.owner, lease.token) else None


def _row(session: Session, uuid: str) -> Gpu | None:
    return session.get(Gpu, uuid, with_for_update=True)


def _view(row: Gpu, now: float) -> StoredGpu:
    state: GpuState = "free"
    if row.set_aside is not None:
        state = "set aside"
    elif row.owner is not None and (row.leased or 0) >= now and not is_gone(row.owner):
        state = "held"
    owner, silent = row.owner if state == "held" else None, max(0.0, now - row.renewed)
    return record_of(StoredGpu, row, state=state, owner=owner, reason=row.set_aside, silent_s=silent)
