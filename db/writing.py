"""Rows that are added unless they are there, in words that SQLite and PostgreSQL both know."""

from __future__ import annotations

from typing import Any, cast

from sqlalchemy import CursorResult
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from kernelproof.db.base import Base


def add_missing(session: Session, table: type[Base], **values: Any) -> bool:
    """Adds a row, unless a unique key of the table has these values already; whether it was added."""
    if session.get_bind().dialect.name == "sqlite":
        added = sqlite.insert(table).values(**values).on_conflict_do_nothing()
        return cast(CursorResult[Any], session.execute(added)).rowcount > 0
    # psycopg counts no rows of such a statement: the new row is asked for instead.
    key = next(iter(table.__table__.primary_key))
    statement = postgresql.insert(table).values(**values).on_conflict_do_nothing().returning(key)
    return session.execute(statement).first() is not None
