"""The names of rows in messages of the check: `verification 12 of attempt 7`."""

from __future__ import annotations

from sqlalchemy import Connection, text

_OF = {
    **dict.fromkeys(("responses", "candidates", "verifications", "reported_results"), "attempt_id"),
    **dict.fromkeys(("retractions", "audits"), "verification_id"),
}


def named(connection: Connection, record: str, number: int) -> str:
    """A row of a table in words, with the attempt that it belongs to, as long as it is there."""
    name = f"{record.removesuffix('s').replace('_', ' ')} {number}"
    column = _OF.get(record)
    if column is None:
        return name
    query = text(f"SELECT {column} FROM {record} WHERE id = :number")
    above = connection.execute(query, {"number": number}).scalar()
    return name if above is None else f"{name} of {column.removesuffix('_id')} {above}"
