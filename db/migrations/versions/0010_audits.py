"""Audits of what ranks."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from kernelproof.db.columns import Int64
from kernelproof.db.ddl import MOMENT, forbid, needed, optional

revision = "0010_audits"
down_revision = "0009_hash_chain"


def upgrade() -> None:
    op.create_table(
        "audits",
        sa.Column("id", Int64, primary_key=True),
        *needed(MOMENT, "began"),
        *optional(Int64, "seed"),
        sa.Column("verification_id", Int64, sa.ForeignKey("verifications.id"), nullable=False),
        sa.Column("reproduction_id", Int64, sa.ForeignKey("verifications.id")),
        *needed(sa.String(), "finding"),
        *needed(sa.Text(), "reason"),
        *needed(MOMENT, "created"),
    )
    op.create_index("ix_audits_verification_id", "audits", ["verification_id"], unique=False)
    forbid("audits", "update", "delete", instead="retract, never change")
