"""Fast reading and adding of rows: plain objects, since a session's objects take more than twice the time;
lists in batches, since a statement takes only so many values; inserts that SQLite and PostgreSQL both know.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import islice
from types import SimpleNamespace
from typing import Any, TypeVar, cast

from sqlalchemy import CursorResult, Insert, Select, Table, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from kernelproof.db.models import Base

Tables = tuple[type[Base], ...]


@dataclass(frozen=True)
class Reading:
    """A statement that asks for all columns of some tables, one table after the other. It is made once, and
    executed with other values each time."""

    tables: Tables
    statement: Select[Any]

    def rows(self, session: Session, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """For each row an object of each table, with its columns as attributes; None where an outer join
        found none."""
        found = session.connection().execute(self.statement, values).fetchall()
        cuts = _cuts(self.tables)
        return [tuple(_made(names, key, row[start:end]) for names, key, start, end in cuts) for row in found]

    def objects(self, session: Session, values: Mapping[str, Any]) -> list[Any]:
        """The objects of the only table."""
        return [only for (only,) in self.rows(session, values)]


def whole(*tables: type[Base]) -> Select[Any]:
    """All columns of these tables, for a `Reading`."""
    return select(*(column for table in tables for column in table.__table__.columns))


def _made(names: tuple[str, ...], key: int, values: tuple[Any, ...]) -> SimpleNamespace | None:
    return None if values[key] is None else SimpleNamespace(**dict(zip(names, values, strict=True)))


@cache
def _cuts(tables: Tables) -> list[tuple[tuple[str, ...], int, int, int]]:
    """Of each table: the names of its columns, the place of its first key, and its part of a row."""
    found, start = [], 0
    for each in tables:
        table = cast(Table, each.__table__)
        names = tuple(column.name for column in table.columns)
        key = next(place for place, column in enumerate(table.columns) if column.primary_key)
        found.append((names, key, start, start + len(names)))
        start += len(names)
    return found


T = TypeVar("T")

BATCH_SIZE = 500
"""Values in one statement, or rows that are read at once."""


def batched(items: Iterable[T], size: int = BATCH_SIZE) -> Iterator[list[T]]:
    """The items in their order, `size` at a time; the last portion may be smaller."""
    rest = iter(items)
    return iter(lambda: list(islice(rest, size)), [])


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
