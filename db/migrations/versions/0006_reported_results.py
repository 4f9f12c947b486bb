"""What was reported of programs that were imported."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from kernelproof.db.ddl import forbid
from kernelproof.db.types import Whole

revision = "0006_reported_results"
down_revision = "0005_why_there_is_no_program"


def upgrade() -> None:
    op.create_table(
        "reported_results",
        sa.Column("id", Whole, nullable=False),
        sa.Column("attempt_id", Whole, nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("said_in", sa.Text()),
        sa.Column("compiled", sa.Boolean()),
        sa.Column("correct", sa.Boolean()),
        sa.Column("runtime_ms", sa.Float()),
        sa.Column("baseline_ms", sa.Float()),
        sa.Column("speedup", sa.Float()),
        sa.Column("device", sa.Text()),
        sa.Column("raw_sha256", sa.String(length=64)),
        sa.Column("created", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(["attempt_id"], ["attempts.id"], name="fk_reported_results_attempt_id"),
        sa.ForeignKeyConstraint(["raw_sha256"], ["texts.sha256"], name="fk_reported_results_raw_sha256"),
        sa.PrimaryKeyConstraint("id", name="pk_reported_results"),
    )
    op.create_index("ix_reported_results_attempt_id", "reported_results", ["attempt_id"], unique=False)
    forbid("reported_results", "update", "delete", instead="import again, never change")
