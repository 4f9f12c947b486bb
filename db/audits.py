"""Audits: results that led the leaderboard, and whether they held when they were verified once more."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from sqlalchemy import Connection, bindparam, select

from kernelproof.db.columns import utc_now
from kernelproof.db.connection import Database
from kernelproof.db.models import Audit
from kernelproof.db.rows import batched
from kernelproof.types import Reproduction
from kernelproof.types import ReproductionFinding as Finding


class Found(NamedTuple):
    """The newest audit of a verification."""

    finding: Finding
    created: str


class Audits:
    """The audits of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def record(self, began: str, seed: int | None, verification_id: int, found: Reproduction) -> None:
        """Keeps what an audit that began then found of a verification."""
        row = Audit(
            began=began,
            seed=seed,
            verification_id=verification_id,
            reproduction_id=found.verification_id,
            finding=found.finding,
            reason=found.reason,
            created=utc_now(),
        )
        self._database.write(lambda session: session.add(row))

    def newest(self, verifications: Collection[int]) -> dict[int, Found]:
        """Verification to its newest audit, of those that have one."""
        return self._database.read(lambda session: newest_audits(session.connection(), verifications))


def newest_audits(connection: Connection, verifications: Collection[int]) -> dict[int, Found]:
    """Verification to its newest audit, of those that have one."""
    these = Audit.verification_id.in_(bindparam("these", expanding=True))
    query = select(Audit.verification_id, Audit.finding, Audit.created).where(these).order_by(Audit.id)
    found: dict[int, Found] = {}
    for some in batched(sorted(verifications)):
        for row in connection.execute(query, {"these": some}):
            found[row.verification_id] = Found(Finding(row.finding), row.created)
    return found
