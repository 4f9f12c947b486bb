"""Leases: a process says that it is at work on a question, so that no other one asks it, too.

A lease is taken in the transaction that begins the attempt, renewed while the process lives, and given back
with the attempt's end. It passes to whoever asks next when its owner is gone, or was silent for `LEASE_S`
seconds.
"""

from __future__ import annotations

import functools
import secrets
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import psutil
from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from kernelproof.db.connection import HasDatabase, read_transaction, write_transaction
from kernelproof.db.models import Lease
from kernelproof.hashing import sha256_text

_STARTED_TOLERANCE_S = 2.0
"""psutil computes the moment of a start from the boot time, which a corrected clock moves a little."""


def new_owner() -> str:
    """An owner's name for this process, different each time: `MACHINE:PROCESS:STARTED:TOKEN`.

    Two processes of one boot of one machine, in one namespace of process numbers, have the same MACHINE. Each
    of them can see whether the other is gone. Of every other owner only the lease says.
    """
    process = psutil.Process()
    return f"{_machine()}:{process.pid}:{process.create_time():.2f}:{secrets.token_hex(4)}"


def is_gone(owner: str) -> bool:
    """True when the owner was a process of this machine and ended; False for all that cannot be known."""
    machine, _, rest = owner.partition(":")
    number, _, rest = rest.partition(":")
    if machine != _machine() or not number.isdecimal():
        return False
    try:
        process = psutil.Process(int(number))
        if process.status() == psutil.STATUS_ZOMBIE:
            return True
        return bool(abs(process.create_time() - float(rest.partition(":")[0])) > _STARTED_TOLERANCE_S)
    except psutil.NoSuchProcess:
        return True
    except (psutil.Error, ValueError):
        return False


@functools.cache
def _machine() -> str:
    facts = []
    with suppress(OSError):
        facts.append(Path("/proc/sys/kernel/random/boot_id").read_text())
        facts.append(str(Path("/proc/self/ns/pid").readlink()))
    return sha256_text("|".join(facts))[:16] if len(facts) == 2 else f"unknown-{secrets.token_hex(8)}"


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


class Leases(HasDatabase):
    """The leases of a database, as one owner sees them."""

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

    @write_transaction
    def give_back(self, session: Session, owner: str, key: str | None = None) -> None:
        """Frees one lease of an owner; or all of them, and with them those of owners that are gone: a command
        that was killed between storing and giving back leaves a lease that nobody may ever ask for again."""
        if key is not None:
            give_back(session, key, owner)
            return
        owners = session.scalars(select(Lease.owner).distinct()).all()
        over = [each for each in owners if each == owner or is_gone(each)]
        session.execute(delete(Lease).where(Lease.owner.in_(over)))

    @read_transaction
    def held(self, session: Session, keys: Iterable[str], owner: str) -> set[str]:
        """Which of these leases live owners other than `owner` hold."""
        wanted = set(keys)
        gone: dict[str, bool] = {}
        rows = session.execute(
            select(Lease.key, Lease.owner, Lease.renewed).where(Lease.owner != owner)
        ).all()
        kept = set()
        for key, other, renewed in rows:
            if key in wanted and not is_free(other, renewed, gone):
                kept.add(key)
        return kept


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
