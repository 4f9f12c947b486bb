"""What was reported of programs that were imported."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from kernelproof.db.columns import Int64
from kernelproof.db.ddl import MOMENT, SHA256, forbid, needed, optional

revision = "0006_reported_results"
down_revision = "0005_why_there_is_no_program"


def upgrade() -> None:
    op.create_table(
        "reported_results",
        sa.Column("id", Int64, primary_key=True),
        sa.Column("attempt_id", Int64, sa.ForeignKey("attempts.id"), nullable=False),
        *needed(sa.Text(), "source"),
        *optional(sa.Text(), "said_in"),
        *optional(sa.Boolean(), "compiled", "correct"),
        *optional(sa.Float(), "runtime_ms", "baseline_ms", "speedup"),
        *optional(sa.Text(), "device"),
        sa.Column("raw_sha256", SHA256, sa.ForeignKey("texts.sha256")),
        *needed(MOMENT, "created"),
    )
    op.create_index("ix_reported_results_attempt_id", "reported_results", ["attempt_id"], unique=False)
    forbid("reported_results", "update", "delete", instead="import again, never change")
