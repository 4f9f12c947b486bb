"""Builders beside judges: evaluations that are built, what was built, and indexes for a long queue."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from kernelproof.db.columns import Int64
from kernelproof.db.ddl import SHA256, needed

revision = "0012_builders"
down_revision = "0011_service"


def upgrade() -> None:
    for column in (
        sa.Column("artefact", sa.String(64)),
        sa.Column("built", sa.Float()),
        sa.Column("rebuilds", Int64, nullable=False, server_default="0"),
        sa.Column("late_builds", Int64, nullable=False, server_default="0"),
    ):
        op.add_column("evaluations", column)
    op.add_column("workers", sa.Column("role", sa.String(), nullable=False, server_default="all"))
    op.create_table(
        "artefacts",
        sa.Column("key", SHA256, primary_key=True),
        *needed(SHA256, "sha256"),
        *needed(sa.Boolean(), "timed_out"),
        *needed(sa.Float(), "created"),
    )
    op.create_index("ix_artefacts_sha256", "artefacts", ["sha256"])
    op.drop_index("ix_evaluations_queue", "evaluations")
    order = ["state", "backend", "priority", "submitted", "id"]
    op.create_index("ix_evaluations_order", "evaluations", order)
    op.create_index("ix_evaluations_caller", "evaluations", ["state", "caller"])
    op.create_index("ix_evaluations_finished", "evaluations", ["state", "finished"])
    only = {"deadline": "deadline IS NOT NULL", "late": "late_verdicts > 0 OR late_builds > 0"}
    columns = {"deadline": ["state", "deadline"], "late": ["late_verdicts", "late_builds"]}
    for name, condition in only.items():
        where = sa.text(condition)
        op.create_index(
            f"ix_evaluations_{name}",
            "evaluations",
            columns[name],
            sqlite_where=where,
            postgresql_where=where,
        )
