"""Rows as plain objects, for readers: a session's objects know what is changed on them, and cost more than
twice the time to read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import SimpleNamespace
from typing import Any, cast

from sqlalchemy import Select, Table, select
from sqlalchemy.orm import Session

from kernelproof.db.base import Base

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
