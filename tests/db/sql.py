"""SQL in tests, for a store of either kind."""

from __future__ import annotations

from typing import Any

from sqlalchemy import text

from kernelproof.db.store import Store


def run(store: Store, statement: str, **values: object) -> list[tuple[Any, ...]]:
    """The rows that a statement answers, in a transaction of its own; none where it answers nothing."""

    def work(session: Any) -> list[tuple[Any, ...]]:
        connection = session.connection()
        # Where there are no values, a colon is a colon.
        found = (
            connection.execute(text(statement), values) if values else connection.exec_driver_sql(statement)
        )
        return [tuple(row) for row in found] if found.returns_rows else []

    return store._database.write(work)


def columns(store: Store, table: str) -> list[str]:
    """The names of a table's or a view's columns."""
    return store._database.read(lambda s: list(s.execute(text(f"SELECT * FROM {table}")).keys()))
