"""Rows that are added unless they are there, in words that SQLite and PostgreSQL both know."""

from __future__ import annotations

from functools import cache
from typing import Any, cast

from sqlalchemy import CursorResult, Insert, Table
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


def insert(session: Session, row: Base) -> int:
    """Adds a row at once, without the session's memory of it; returns its first key."""
    table = cast(Table, row.__table__)
    values = {column.name: vars(row)[column.name] for column in table.columns if column.name in vars(row)}
    done = cast(CursorResult[Any], session.connection().execute(_inserting(type(row)), values))
    keys = done.inserted_primary_key
    assert keys is not None, "one row was added"
    return int(keys[0])


@cache
def _inserting(table: type[Base]) -> Insert:
    """The statement, made once: the values of its columns come with each execution."""
    return cast(Table, table.__table__).insert()


@cache
def _adding(table: type[Base], dialect: str) -> Any:
    """The statement, made once: the values of its columns come with each execution."""
    into = cast(Table, table.__table__)
    if dialect == "sqlite":
        return sqlite.insert(into).on_conflict_do_nothing()
    key = next(iter(into.primary_key))
    return postgresql.insert(into).on_conflict_do_nothing().returning(key)
