"""Leases: a process says that it is at work on a question, so that no other one asks it, too.

A lease is taken in the transaction that begins the attempt, renewed while the process lives, and given back
with the attempt's end. It passes to whoever asks next when its owner is gone, or was silent for `LEASE_S`
seconds.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from kernelproof.db.connection import Database
from kernelproof.db.owners import is_gone
from kernelproof.db.work import Lease

LEASE_S = 60.0
"""Any process may take a lease that was not renewed for so many seconds."""


def take(session: Session, key: str, owner: str) -> bool:
    """Whether `owner` holds the lease now: it was free, its own already, or its owner is gone."""
    row = session.get(Lease, key)
    if row is None:
        session.add(Lease(key=key, owner=owner, renewed=time.time()))
        return True
    if row.owner != owner and not is_free(row.owner, row.renewed):
        return False
    row.owner, row.renewed = owner, time.time()
    return True


def give_back(session: Session, key: str, owner: str) -> None:
    """Frees a lease, if `owner` still holds it."""
    session.execute(delete(Lease).where(Lease.key == key, Lease.owner == owner))


class Leases:
    """The leases of a database, as one owner sees them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def take(self, owner: str, key: str) -> bool:
        """Takes a lease that belongs to no attempt; False where another live owner holds it."""
        return self._database.write(lambda session: take(session, key, owner))

    def renew(self, owner: str) -> None:
        """All leases of an owner last for another `LEASE_S` seconds."""
        self._database.write(
            lambda session: session.execute(
                update(Lease).where(Lease.owner == owner).values(renewed=time.time())
            )
        )

    def give_back(self, owner: str, key: str | None = None) -> None:
        """Frees one lease of an owner, or all of them."""

        def free(session: Session) -> None:
            if key is not None:
                give_back(session, key, owner)
            else:
                session.execute(delete(Lease).where(Lease.owner == owner))

        self._database.write(free)

    def held(self, keys: Iterable[str], owner: str) -> set[str]:
        """Which of these leases live owners other than `owner` hold."""
        wanted = set(keys)

        def found(session: Session) -> set[str]:
            gone: dict[str, bool] = {}
            rows = session.execute(
                select(Lease.key, Lease.owner, Lease.renewed).where(Lease.owner != owner)
            ).all()
            kept = set()
            for key, other, renewed in rows:
                if key in wanted and not is_free(other, renewed, gone):
                    kept.add(key)
            return kept

        return self._database.read(found)


def is_free(owner: str, renewed: float, known: dict[str, bool] | None = None) -> bool:
    """Whether anybody may take a lease: its owner is gone, or was silent too long.

    `known` holds which owners are gone, so that each is looked at once.
    """
    # A clock that was set back must not make a lease eternal.
    if abs(time.time() - renewed) > LEASE_S:
        return True
    if known is None:
        return is_gone(owner)
    if owner not in known:
        known[owner] = is_gone(owner)
    return known[owner]
