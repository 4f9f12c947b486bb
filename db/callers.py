"""Callers of the evaluation service. Of a token only its hash is stored."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from kernelproof.db.connection import Database
from kernelproof.db.service_tables import Caller
from kernelproof.db.types import utc_now
from kernelproof.errors import UsageError
from kernelproof.hashing import sha256_text
from kernelproof.types import FrozenRecord

PREFIX = "kp_"
"""So that a token is found where somebody leaves it, by those who look for such things."""


class StoredCaller(FrozenRecord):
    """A caller that has, or had, a token."""

    name: str
    quota: int | None
    """Most evaluations that may wait or run; None: no limit."""
    created: str
    revoked: str | None


class Callers:
    """The callers in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

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

    def revoke(self, name: str) -> None:
        """The caller's token is accepted no more. Raises UsageError where there is none."""

        def revoke(session: Session) -> None:
            row = session.get(Caller, name)
            if row is None or row.revoked is not None:
                known = [each.name for each in self._all(session) if each.revoked is None]
                there = f"callers with a token: {', '.join(known)}" if known else "no caller has a token"
                raise UsageError(f"caller {name!r} has no token; {there}")
            row.revoked = utc_now()

        self._database.write(revoke)

    def with_token(self, token: str) -> StoredCaller | None:
        """Whose token it is; None for one that is not accepted."""
        c = Caller
        wanted = select(c).where(c.token_sha256 == sha256_text(token), c.revoked.is_(None))

        def found(session: Session) -> StoredCaller | None:
            row = session.scalar(wanted)
            return None if row is None else _view(row)

        return self._database.read(found)

    def all(self) -> Sequence[StoredCaller]:
        """All of them, by name, revoked ones too."""
        return self._database.read(lambda session: [_view(row) for row in self._all(session)])

    def count(self) -> int:
        """How many have a token that is accepted."""
        wanted = select(func.count()).where(Caller.revoked.is_(None))
        return int(self._database.read(lambda session: session.scalar(wanted)) or 0)

    @staticmethod
    def _all(session: Session) -> Sequence[Caller]:
        return session.scalars(select(Caller).order_by(Caller.name)).all()


def _view(row: Caller) -> StoredCaller:
    return StoredCaller(name=row.name, quota=row.quota, created=row.created, revoked=row.revoked)
