"""Words that people put on runs, to find them together."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from kernelproof.db.columns import utc_now
from kernelproof.db.connection import Database
from kernelproof.db.models import RunTag


class Tags:
    """The tags of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, runs: Sequence[int], tags: Sequence[str]) -> int:
        """Puts tags on runs; how many were not there before."""

        def add(session: Session) -> int:
            there = self._of(session, runs)
            new = {(run, tag) for run in runs for tag in tags} - there
            session.add_all(RunTag(run_id=run, tag=tag, created=utc_now()) for run, tag in sorted(new))
            return len(new)

        return self._database.write(add)

    def remove(self, runs: Sequence[int], tags: Sequence[str]) -> int:
        """Takes tags off runs; how many were there."""

        def remove(session: Session) -> int:
            before = self._of(session, runs)
            session.execute(delete(RunTag).where(RunTag.run_id.in_(runs), RunTag.tag.in_(tags)))
            return len(before) - len(self._of(session, runs))

        return self._database.write(remove)

    def of(self, runs: Sequence[int]) -> dict[int, list[str]]:
        """The tags of these runs, by name."""
        found: dict[int, list[str]] = {run: [] for run in runs}
        for run, tag in sorted(self._database.read(lambda session: self._of(session, runs))):
            found[run].append(tag)
        return found

    @staticmethod
    def _of(session: Session, runs: Sequence[int]) -> set[tuple[int, str]]:
        rows = session.execute(select(RunTag.run_id, RunTag.tag).where(RunTag.run_id.in_(runs)))
        return {(row.run_id, row.tag) for row in rows}
