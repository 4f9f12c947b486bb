"""Links are added in the transaction that stores the rows: the rows and their links are there, or neither."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

from sqlalchemy import Connection, event, text
from sqlalchemy.orm import Session

from kernelproof.db.chain.contents import (
    ENDED,
    MIGRATION,
    RECORDS,
    chained_rows,
    contents,
    link_hash,
    migration_content,
)
from kernelproof.db.portions import portions
from kernelproof.db.types import utc_now

_NEW = "kernelproof_new_rows"
_LAST = text("SELECT id, sha256 FROM hash_chain ORDER BY id DESC LIMIT 1")
_INSERT = text(
    "INSERT INTO hash_chain (id, record, number, content, sha256, created) "
    "VALUES (:id, :record, :number, :content, :sha256, :created)"
)


class ChainedSession(Session):
    """A session whose new rows are chained when it commits."""


def note(session: Session, record: str, row: int) -> None:
    """Remembers a row of a table that was stored without the session's knowing, by a statement."""
    session.info.setdefault(_NEW, {})[record, row] = None


def note_if_chained(session: Session, row: object, number: int) -> None:
    """Remembers a row that was stored as `number`, if it is chained: an attempt is when it has ended."""
    record = str(getattr(row, "__tablename__", ""))
    if record in RECORDS and (record not in ENDED or getattr(row, "status", None) is not None):
        note(session, record, number)


@event.listens_for(ChainedSession, "after_flush")
def _note_flushed(session: Session, _context: object) -> None:
    for row in (*session.new, *(row for row in session.dirty if session.is_modified(row))):
        note_if_chained(session, row, getattr(row, "id", 0))


@event.listens_for(ChainedSession, "before_commit")
def _chain(session: Session) -> None:
    session.flush()
    new = session.info.pop(_NEW, None)
    if new:
        append(session.connection(), new)


def append(connection: Connection, rows: Iterable[tuple[str, int]]) -> None:
    """Adds a link for each of these rows: its table and its `id`."""
    end = _last(connection)
    for some in portions(rows):
        by_record: defaultdict[str, list[int]] = defaultdict(list)
        for record, number in some:
            by_record[record].append(number)
        found = {record: contents(connection, record, numbers) for record, numbers in by_record.items()}
        links = []
        for record, number in some:
            end = end.next(record, number, found[record][number])
            links.append(end.columns)
        connection.execute(_INSERT, links)


def chain_all(connection: Connection, records: Iterable[str] = RECORDS) -> None:
    """Chains all that was stored before there was a chain, and closes it with a link that says so."""
    for record in records:
        append(connection, ((record, number) for number in chained_rows(connection, record).scalars()))
    end = _last(connection)
    if end.id:
        created = utc_now()
        closing = end.next(MIGRATION, end.id, migration_content(created), created)
        connection.execute(_INSERT, closing.columns)


class _End(NamedTuple):
    """The last link."""

    id: int
    sha256: bytes
    columns: dict[str, Any]

    def next(self, record: str, number: int, content: bytes, created: str | None = None) -> _End:
        """The link after it."""
        sha256 = link_hash(self.sha256, record, number, content)
        columns = {"id": self.id + 1, "record": record, "number": number, "content": content}
        return _End(self.id + 1, sha256, {**columns, "sha256": sha256, "created": created})


def _last(connection: Connection) -> _End:
    found = connection.execute(_LAST).first()
    return _End(0, b"", {}) if found is None else _End(found[0], bytes(found[1]), {})
