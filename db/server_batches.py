"""Batches at a model's server. A restarted command waits for them instead of asking again."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from kernelproof.db import attempts
from kernelproof.db.columns import utc_now
from kernelproof.db.connection import Database
from kernelproof.db.models import ServerBatch
from kernelproof.providers import BatchJournal, OpenBatch


class ServerBatchJournal(BatchJournal):
    """The table `server_batches`. A batch is open as long as a question of it has no answer in the store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def open_batches(self, model: str, base_url: str | None) -> list[OpenBatch]:
        """The open batches of a model; those whose answers are all stored are closed now."""

        def found(session: Session) -> list[OpenBatch]:
            mine = (ServerBatch.model == model, ServerBatch.base_url.is_(base_url))
            query = select(ServerBatch).where(*mine, ServerBatch.open.is_(True)).order_by(ServerBatch.id)
            rows = session.scalars(query).all()
            stored = attempts.answered(session, {key for row in rows for key in row.keys}) if rows else set()
            for row in rows:
                row.open = not stored.issuperset(row.keys)
            return [
                OpenBatch(row.server_id, [key for key in row.keys if key not in stored])
                for row in rows
                if row.open
            ]

        return self._database.write(found)

    def submitted(self, model: str, base_url: str | None, batch_id: str, keys: Sequence[str]) -> None:
        """Adds a row."""
        row = ServerBatch(server_id=batch_id, model=model, base_url=base_url, keys=list(keys), open=True)
        row.created = utc_now()
        self._database.write(lambda session: session.add(row))

    def renamed(self, batch_id: str, new: str) -> None:
        """Puts the server's id in the place of our own."""

        def rename(session: Session) -> None:
            for row in _rows(session, batch_id):
                row.server_id = new

        self._database.write(rename)

    def closed(self, batch_id: str, keys: Collection[str] | None = None) -> None:
        """Takes questions out of a batch, or closes it."""
        gone = None if keys is None else set(keys)

        def close(session: Session) -> None:
            for row in _rows(session, batch_id):
                left = [] if gone is None else [key for key in row.keys if key not in gone]
                if left:
                    row.keys = left
                else:
                    row.open = False

        self._database.write(close)


def _rows(session: Session, batch_id: str) -> Sequence[ServerBatch]:
    query = select(ServerBatch).where(ServerBatch.server_id == batch_id, ServerBatch.open.is_(True))
    return session.scalars(query).all()
