"""Databases of each older schema, with rows, in a file or on a server."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from kernelproof.db import migrations
from kernelproof.db.postgresql import Server
from kernelproof.types import Interval, Pace
from kernelproof.types.measurement import Against
from kernelproof.workspace import ServerDatabase
from tests.db import samples

FIRST = Path(__file__).parent / "old" / "0001.sql"
EVIDENCE = 3
"""From this schema on a measurement has a figure against torch.compile, and a roofline."""
COMPUTED = ("score_cells", "score_changes", "score_facts", "current_policy", "alembic_version")
"""Tables whose rows are made by triggers and by migrations."""


def schemas() -> list[str]:
    """The names of all schemas, the oldest first."""
    return list(migrations.STEPS)


def migrate(connection: sa.Connection, to: str) -> None:
    """Brings the database to a schema."""
    found = connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar()
    migrations.migrate(connection, found, to)


def old_file(path: Path, schema: str) -> None:
    """A file of that schema: a correct attempt, a retracted build error, an answer without code.

    From EVIDENCE on the correct one has a second verification, with a roofline.
    """
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(FIRST.read_text())
        connection.execute(
            "INSERT INTO retractions VALUES (2, 'a bad disk', '2026-11-21T00:00:00.000+00:00')"
        )
        connection.commit()
    engine = sa.create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        names = schemas()
        if names.index(schema) + 1 >= EVIDENCE:
            migrate(connection, names[EVIDENCE - 1])
            _verify_again(connection)
        migrate(connection, schema)
    engine.dispose()


def _verify_again(connection: sa.Connection) -> None:
    against = Against(
        baseline="compile",
        baseline_ms=0.75,
        speedup=1.5,
        speedup_interval=Interval(low=1.4, high=1.6),
        pace=Pace.FASTER,
        measured="2026-11-22T00:00:00.000+00:00",
    )
    changes: dict[str, dict[str, Any]] = {
        "verifications": {"id": 3, "kind": "again", "created": "2026-11-22T00:00:00.000+00:00"},
        "measurements": {
            "verification_id": 3,
            "speedup": 3.0,
            "speedup_low": 2.9,
            "speedup_high": 3.1,
            "against": json.dumps([against.model_dump(mode="json")]),
            "roofline": samples.roofline(0.25).model_dump_json(),
        },
    }
    for name, changed in changes.items():
        table = sa.Table(name, sa.MetaData(), autoload_with=connection)
        key = table.c[next(iter(changed))]
        row = connection.execute(sa.select(table).where(key == 1)).one()
        connection.execute(table.insert(), {**row._asdict(), **changed})


def copy_to_server(path: Path, place: ServerDatabase, schema: str) -> None:
    """Fills an empty database on a server with the rows of a file of that schema."""
    file, server = sa.create_engine(f"sqlite:///{path}"), sa.create_engine(place.url)
    with file.connect() as old, server.begin() as new:
        Server(place).mark(new)
        migrate(new, schema)
        found = sa.MetaData()
        found.reflect(new)
        for table in found.sorted_tables:
            if table.name not in COMPUTED:
                rows = old.execute(sa.select(sa.table(table.name, *map(sa.column, table.c.keys()))))
                _insert(new, table, [row._asdict() for row in rows])
    file.dispose()
    server.dispose()


def _insert(connection: sa.Connection, table: sa.Table, rows: list[dict[str, Any]]) -> None:
    if not rows:
        return
    truths = [column.name for column in table.c if isinstance(column.type, sa.Boolean)]
    for row in rows:
        row.update({name: bool(row[name]) for name in truths if row[name] is not None})
    connection.execute(table.insert(), rows)
    if "id" in table.c and isinstance(table.c.id.type, sa.BigInteger):
        number = sa.text(
            f"SELECT setval(pg_get_serial_sequence('{table.name}', 'id'), MAX(id)) FROM {table.name}"
        )
        connection.execute(number)
