"""What the leaderboard computes from: rigor, policy and strategy as columns, packed rows, tags of runs.

The new columns copy what JSON columns hold, so that SQL finds it.
"""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

from kernelproof.db.columns import Int64
from kernelproof.db.ddl import MOMENT, after, forbid, needed, optional, permit

revision = "0007_scores"
down_revision = "0006_reported_results"

APPEND_ONLY = ("verifications", "measurements")
COPIES = ("compile_speedup", "compile_speedup_low", "compile_speedup_high", "roofline_fraction")


def upgrade() -> None:
    op.add_column("runs", sa.Column("strategy", sa.Text()))
    op.add_column("verifications", sa.Column("rigor", sa.String()))
    op.add_column("verifications", sa.Column("policy", sa.Text()))
    screening: sa.Column[bool] = sa.Column(
        "screening", sa.Boolean(), nullable=False, server_default=sa.false()
    )
    op.add_column("verifications", screening)
    for name in COPIES:
        op.add_column("measurements", sa.Column(name, sa.Float()))
    for table in APPEND_ONLY:
        permit(table, "update")
    _copy(op.get_bind())
    for table in APPEND_ONLY:
        forbid(table, "update", instead="retract, never change")
    _indexes()
    _tables()
    _triggers()


def _copy(connection: sa.Connection) -> None:
    runs = connection.execute(sa.text("SELECT id, kind, settings FROM runs")).all()
    for run, kind, settings in runs:
        if kind == "generate":
            stored = json.loads(settings)
            usual = "repair" if stored.get("turns", 1) > 1 else "sample"
            strategy = {"strategy": stored.get("strategy") or usual, "id": run}
            connection.execute(sa.text("UPDATE runs SET strategy = :strategy WHERE id = :id"), strategy)
    found = connection.execute(sa.text("SELECT id, settings, verifier FROM verifications"))
    for some in iter(lambda: found.fetchmany(1000), []):
        connection.execute(
            sa.text(
                "UPDATE verifications SET rigor = :rigor, screening = :screening, policy = :policy "
                "WHERE id = :id"
            ),
            [
                {**_settings(settings), "policy": _policy(verifier), "id": number}
                for number, settings, verifier in some
            ],
        )
    found = connection.execute(
        sa.text(
            "SELECT verification_id, against, roofline FROM measurements "
            "WHERE against <> '[]' OR roofline IS NOT NULL"
        )
    )
    for some in iter(lambda: found.fetchmany(1000), []):
        connection.execute(
            sa.text(
                f"UPDATE measurements SET {', '.join(f'{name} = :{name}' for name in COPIES)} "
                "WHERE verification_id = :id"
            ),
            [
                {**dict(zip(COPIES, _copies(against, roofline), strict=True)), "id": number}
                for number, against, roofline in some
            ],
        )


def _settings(stored: str) -> dict[str, Any]:
    settings = json.loads(stored)
    return {"rigor": settings.get("rigor", "standard"), "screening": settings.get("bar") is not None}


def _policy(verifier: object) -> str | None:
    words = verifier.split() if isinstance(verifier, str) else []
    return next((word.removeprefix("policy:") for word in words if word.startswith("policy:")), None)


def _copies(against: str | None, roofline: str | None) -> tuple[Any, ...]:
    compiled = next((a for a in json.loads(against or "[]") if a["baseline"] == "compile"), None)
    speedups: tuple[Any, ...] = (None, None, None)
    if compiled is not None:
        interval = compiled["speedup_interval"]
        speedups = compiled["speedup"], interval["low"], interval["high"]
    least = json.loads(roofline) if roofline else None
    return (*speedups, least and least["fraction"])


def _indexes() -> None:
    op.drop_index("ix_verifications_leaderboard", "verifications")
    op.create_index(
        "ix_verifications_leaderboard",
        "verifications",
        [
            *("attempt_id", "kind", "status", "backend", "size", "environment_id"),
            *("numerics", "purity", "own_kernel", "error_class", "flags", "rigor", "policy"),
            "screening",
        ],
    )
    op.drop_index("ix_measurements_leaderboard", "measurements")


def _tables() -> None:
    op.create_table(
        "run_tags",
        sa.Column("run_id", Int64, sa.ForeignKey("runs.id"), nullable=False),
        *needed(sa.Text(), "tag"),
        *needed(MOMENT, "created"),
        sa.PrimaryKeyConstraint("run_id", "tag"),
    )
    op.create_table(
        "score_facts",
        sa.Column("id", Int64, primary_key=True),
        *needed(sa.Text(), "facts"),
    )
    op.create_table(
        "score_cells",
        sa.Column("run_id", Int64, sa.ForeignKey("runs.id"), nullable=False),
        sa.Column("problem", Int64, sa.ForeignKey("problems.id"), nullable=False),
        *needed(Int64, "chunk"),
        *optional(sa.LargeBinary(), "packed"),
        sa.PrimaryKeyConstraint("run_id", "problem", "chunk"),
    )
    op.create_index(
        "ix_score_cells_unpacked",
        "score_cells",
        ["run_id", "problem", "chunk"],
        sqlite_where=sa.text("packed IS NULL"),
        postgresql_where=sa.text("packed IS NULL"),
    )
    op.execute(
        "INSERT INTO score_cells (run_id, problem, chunk) "
        "SELECT DISTINCT run_id, problem, sample / 1024 FROM attempts"
    )


def _triggers() -> None:
    """What changes an attempt's score empties the cell that it is packed in."""
    after(
        *("INSERT", "attempts", "score_new_attempt"),
        "INSERT INTO score_cells (run_id, problem, chunk) "
        "VALUES (new.run_id, new.problem, new.sample / 1024) "
        "ON CONFLICT (run_id, problem, chunk) DO UPDATE SET packed = NULL "
        "WHERE score_cells.packed IS NOT NULL",
    )
    after(
        *("UPDATE OF status", "attempts", "score_ended_attempt"),
        "UPDATE score_cells SET packed = NULL WHERE run_id = new.run_id AND problem = new.problem "
        "AND chunk = new.sample / 1024 AND packed IS NOT NULL",
    )
    changed = "(SELECT run_id, problem, sample / 1024 FROM attempts WHERE id = {attempt})"
    by_retraction = "(SELECT attempt_id FROM verifications WHERE id = new.verification_id)"
    for name, table, attempt in (
        ("score_new_response", "responses", "new.attempt_id"),
        ("score_new_verification", "verifications", "new.attempt_id"),
        ("score_new_retraction", "retractions", by_retraction),
    ):
        after(
            *("INSERT", table, name),
            "UPDATE score_cells SET packed = NULL WHERE (run_id, problem, chunk) = "
            f"{changed.format(attempt=attempt)} AND packed IS NOT NULL",
        )
