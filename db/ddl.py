"""Steps of migrations that SQLite and PostgreSQL each need in other words."""

from __future__ import annotations

from typing import Any, Literal

import sqlalchemy as sa
from alembic import op

from kernelproof.db.columns import Int64

Deed = Literal["update", "delete"]
DEEDS: tuple[Deed, ...] = ("update", "delete")
SHA256, MOMENT = sa.String(64), sa.String(32)
"""Kinds of columns: a hash in hexadecimal digits, and a moment in ISO 8601."""


def needed(kind: sa.types.TypeEngine[Any], *names: str) -> list[sa.Column[Any]]:
    """Columns of one kind that are never NULL."""
    return [sa.Column(name, kind, nullable=False) for name in names]


def optional(kind: sa.types.TypeEngine[Any], *names: str) -> list[sa.Column[Any]]:
    """Columns of one kind that may be NULL."""
    return [sa.Column(name, kind) for name in names]


def defaulted(kind: sa.types.TypeEngine[Any], value: Any, *names: str) -> list[sa.Column[Any]]:
    """Columns of one kind that are never NULL, and `value` in rows of before."""
    return [sa.Column(name, kind, nullable=False, server_default=value) for name in names]


def referring(target: str, *names: str, null: bool = False) -> list[sa.schema.SchemaItem]:
    """Columns that refer to a column such as `runs.id`, and their foreign keys."""
    kind: sa.types.TypeEngine[Any] = SHA256 if target == "texts.sha256" else Int64
    columns = [sa.Column(name, kind, nullable=null) for name in names]
    return [*columns, *(sa.ForeignKeyConstraint([name], [target]) for name in names)]


def row_id() -> sa.Column[Any]:
    return sa.Column("id", Int64, primary_key=True)


def add(table: str, *columns: sa.Column[Any]) -> None:
    for column in columns:
        op.add_column(table, column)


def forbid(table: str, *deeds: Deed, instead: str) -> None:
    """Refuses to change rows. `instead`: what to do, as in `retract, never change`."""
    message = f"{table} is append-only: {instead}"
    for deed in deeds:
        trigger, body = refusing(table, deed, message, on_server=_on_server())
        if body:
            _function(f"{table}_no_{deed}", body)
        op.execute(trigger)


def refusing(table: str, deed: Deed, message: str, *, on_server: bool) -> tuple[str, str]:
    """The trigger of `forbid` as the database keeps it, and the body of its function on a server."""
    name = f"{table}_no_{deed}"
    if not on_server:
        refusal = f"BEGIN SELECT RAISE(ABORT, '{message}'); END"
        return f"CREATE TRIGGER {name} BEFORE {deed.upper()} ON {table} {refusal}", ""
    events = {"update": "UPDATE", "delete": "DELETE OR TRUNCATE"}[deed]
    return (
        f"CREATE TRIGGER {name} BEFORE {events} ON {table} FOR EACH STATEMENT EXECUTE FUNCTION {name}()",
        f"RAISE EXCEPTION '{message}' USING ERRCODE = 'integrity_constraint_violation'; RETURN NULL;",
    )


def permit(table: str, *deeds: Deed) -> None:
    """Takes back what `forbid` did."""
    for deed in deeds:
        drop_trigger(f"{table}_no_{deed}", table)


def drop_trigger(name: str, table: str) -> None:
    op.execute(f"DROP TRIGGER {name}" + (f" ON {table}" if _on_server() else ""))


def after(event: str, table: str, name: str, statement: str) -> None:
    """Runs a statement after an event such as `INSERT` or `UPDATE OF status`, for each row: it is `new`."""
    if not _on_server():
        op.execute(f"CREATE TRIGGER {name} AFTER {event} ON {table} BEGIN {statement}; END")
        return
    _function(name, f"{statement}; RETURN NULL;")
    op.execute(f"CREATE TRIGGER {name} AFTER {event} ON {table} FOR EACH ROW EXECUTE FUNCTION {name}()")


def add_reference(table: str, column: str, target: str) -> None:
    """Adds a column that may be NULL and refers to the `id` of a table."""
    # SQLite adds a column with its foreign key only as text of the statement.
    kind = "BIGINT" if _on_server() else "INTEGER"
    op.execute(
        f"ALTER TABLE {table} ADD COLUMN {column} {kind} "
        f"CONSTRAINT fk_{table}_{column} REFERENCES {target} (id)"
    )


def _function(name: str, body: str) -> None:
    op.execute(
        f"CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body} END $$"
    )


def _on_server() -> bool:
    return op.get_bind().dialect.name == "postgresql"
