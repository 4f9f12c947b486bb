"""Published builds: equal work is not built again, and a build that timed out is not tried by all."""

from __future__ import annotations

from sqlalchemy import delete, or_, select
from sqlalchemy.orm import Session

from kernelproof.db.clock import clock
from kernelproof.db.connection import Database
from kernelproof.db.service_tables import Artefact
from kernelproof.db.writing import add_missing

TIMED_OUT_S = 3600.0
"""Seconds for which a build that stopped at its limit is not tried again: a machine may have been busy."""


class Artefacts:
    """The artefacts that are known to a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def known(self, key: str) -> str | None:
        """SHA-256 of the artefact that was made of what `key` stands for."""
        a = Artefact

        def found(session: Session) -> str | None:
            fresh = or_(a.timed_out.is_(False), a.created > clock(session) - TIMED_OUT_S)
            return session.scalar(select(a.sha256).where(a.key == key, fresh))

        return self._database.read(found)

    def remember(self, key: str, sha256: str, *, timed_out: bool) -> None:
        """Says what was made of it, unless another builder said so before."""

        def remember(session: Session) -> None:
            now = clock(session)
            old = Artefact.timed_out & (Artefact.created <= now - TIMED_OUT_S)
            session.execute(delete(Artefact).where(Artefact.key == key, old))
            add_missing(session, Artefact, key=key, sha256=sha256, timed_out=timed_out, created=now)

        self._database.change(remember)


def forget(session: Session, sha256: str) -> None:
    """Nobody gets an artefact that is lost or spoiled."""
    session.execute(delete(Artefact).where(Artefact.sha256 == sha256))
