"""Published builds: equal work is not built again, and a build that timed out is not tried by all."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import delete, func, or_, select
from sqlalchemy.orm import Session

from kernelproof.db.clock import clock
from kernelproof.db.connection import Database
from kernelproof.db.evaluation_records import OPEN
from kernelproof.db.portions import portions
from kernelproof.db.service_tables import Artefact, Evaluation
from kernelproof.db.writing import add_missing

TIMED_OUT_S = 3600.0
"""Seconds for which a build that stopped at its limit is not tried again: a machine may have been busy."""


@dataclass(frozen=True)
class Uses:
    """The uses of artefacts that a database knows, by their SHA-256. Unix times, by the database's clock."""

    now: float
    last: dict[str, float]
    """When each was published, or an evaluation that names it was built, judged or ended, the last time."""
    needed: frozenset[str]
    """Those that an evaluation names which has not ended."""


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

    def uses(self) -> Uses:
        """When the artefacts were used, as of one moment."""
        a, e = Artefact, Evaluation
        published = select(a.sha256, func.max(a.created)).group_by(a.sha256)
        moment = func.coalesce(e.finished, e.started, e.built, e.submitted)
        named = select(e.artefact, func.max(moment)).where(e.artefact.is_not(None)).group_by(e.artefact)

        def uses(session: Session) -> Uses:
            last: dict[str, float] = {}
            for asked in (published, named):
                for sha256, used in session.execute(asked):
                    if sha256 is not None:
                        last[sha256] = max(used, last.get(sha256, used))
            return Uses(clock(session), last, frozenset(_needed(session)))

        return self._database.read(uses)

    def let_go(self, sha256s: Collection[str]) -> set[str]:
        """Forgets artefacts that are to be removed, so that builders name them no more; which those are.

        Those that an evaluation needs by now are kept.
        """

        def let_go(session: Session) -> set[str]:
            gone = set(sha256s) - _needed(session)
            for some in portions(sorted(gone)):
                session.execute(delete(Artefact).where(Artefact.sha256.in_(some)))
            return gone

        return self._database.change(let_go)


def _needed(session: Session) -> set[str]:
    e = Evaluation
    return set(
        session.scalars(select(e.artefact).where(e.state.in_(OPEN), e.artefact.is_not(None)).distinct())
    )


def forget(session: Session, sha256: str) -> None:
    """Nobody gets an artefact that is lost or spoiled."""
    session.execute(delete(Artefact).where(Artefact.sha256 == sha256))
