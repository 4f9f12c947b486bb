"""Rows that are added unless they are there, in words that SQLite and PostgreSQL both know."""

from __future__ import annotations

from functools import cache
from typing import Any, cast

from sqlalchemy import CursorResult, Table
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from kernelproof.db.base import Base


def add_missing(session: Session, table: type[Base], **values: Any) -> bool:
    """Adds a row, unless a unique key of the table has these values already; whether it was added."""
    dialect = session.get_bind().dialect.name
    done = session.connection().execute(_adding(table, dialect), values)
    if dialect == "sqlite":
        return cast(CursorResult[Any], done).rowcount > 0
    # psycopg counts no rows of such a statement: the new row is asked for instead.
    return done.first() is not None


@cache
def _adding(table: type[Base], dialect: str) -> Any:
    """The statement, made once: the values of its columns come with each execution."""
    into = cast(Table, table.__table__)
    if dialect == "sqlite":
        return sqlite.insert(into).on_conflict_do_nothing()
    key = next(iter(into.primary_key))
    return postgresql.insert(into).on_conflict_do_nothing().returning(key)
