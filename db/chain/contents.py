"""The content that a link of the chain covers: the columns of one row, and of the rows that are its evidence.

The content of a row is the JSON text

    [["retractions", {"counts": 0, "created": "2026-...", "id": 3, "reason": "the fan was off", ...}]]

with an entry for the row and for each row of its evidence. Columns that are NULL are left out, so that a
column that a later migration adds changes nothing of rows that have no value there. A migration that gives
old rows a value must chain them anew.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import Connection, CursorResult, text

EVIDENCE = {"verifications": ("builds", "findings", "checks", "measurements")}
"""Table to the tables whose rows belong to one of its rows: stored with it, never alone."""
AT_FIRST = (
    *("runs", "problems", "environments", "prompts", "attempts", "responses", "candidates"),
    *("verifications", "retractions", "reported_results"),
)
"""The tables whose rows were chained when the chain was introduced."""
RECORDS = (*AT_FIRST, "audits")
"""The tables whose rows are chained. A row of `attempts` is chained each time that it ends; the other rows
are chained when they are stored, and never change."""
MIGRATION = "migration"
"""The `record` of a link that closes those made when the chain was introduced."""
ENDED = {"attempts": "status IS NOT NULL"}
"""Table to the condition under which its rows are chained."""


def contents(connection: Connection, record: str, rows: Sequence[int]) -> dict[int, bytes]:
    """The SHA-256 of the content of these rows of a table; rows that are not there are left out."""
    found: dict[int, list[Any]] = {}
    where = f"id IN :rows AND {ENDED[record]}" if record in ENDED else "id IN :rows"
    for row in _read(connection, f"SELECT * FROM {record} WHERE {where}", rows):
        found[row["id"]] = [[record, row]]
    for part in EVIDENCE.get(record, ()):
        order = "verification_id" if part == "measurements" else "verification_id, position"
        query = f"SELECT * FROM {part} WHERE verification_id IN :rows ORDER BY {order}"
        for row in _read(connection, query, rows):
            if row["verification_id"] in found:
                found[row["verification_id"]].append([part, row])
    return {row: _digest(content) for row, content in found.items()}


def chained_rows(connection: Connection, record: str) -> CursorResult[Any]:
    """The `id` of each row of a table that has to be chained, in their order."""
    where = f" WHERE {ENDED[record]}" if record in ENDED else ""
    return connection.execute(text(f"SELECT id FROM {record}{where} ORDER BY id"))


def _read(connection: Connection, query: str, rows: Sequence[int]) -> Iterator[dict[str, Any]]:
    # In the driver's own words: each row that is stored is read so, and to make a statement of the words
    # takes longer than to read.
    mark = "?" if connection.dialect.name == "sqlite" else "%s"
    marks = ",".join([mark] * len(rows))
    found = connection.exec_driver_sql(query.replace(":rows", f"({marks})"), tuple(rows))
    names = list(found.keys())
    for row in found:
        pairs = zip(names, row, strict=True)
        yield {name: _plain(value) for name, value in pairs if value is not None}


def _plain(value: Any) -> Any:
    """A value as every database gives it: SQLite has no booleans, and another one may pack bytes."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, bytes | memoryview):
        return {"bytes": bytes(value).hex()}
    return value


def _digest(content: Any) -> bytes:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).digest()


def link_hash(before: bytes, record: str, number: int, content: bytes) -> bytes:
    """The hash of a link. `before`: that of the link before it; empty for the first."""
    return hashlib.sha256(b"%b\n%b %d\n%b" % (before, record.encode(), number, content)).digest()


def migration_content(created: str) -> bytes:
    """The content of a link that closes a migration."""
    return hashlib.sha256(created.encode()).digest()
