"""Audits of what ranks."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from kernelproof.db.ddl import forbid
from kernelproof.db.types import Whole

revision = "0010_audits"
down_revision = "0009_hash_chain"


def upgrade() -> None:
    op.create_table(
        "audits",
        sa.Column("id", Whole, nullable=False),
        sa.Column("began", sa.String(length=32), nullable=False),
        sa.Column("seed", Whole),
        sa.Column("verification_id", Whole, nullable=False),
        sa.Column("reproduction_id", Whole),
        sa.Column("finding", sa.String(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("created", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(["verification_id"], ["verifications.id"], name="fk_audits_verification_id"),
        sa.ForeignKeyConstraint(["reproduction_id"], ["verifications.id"], name="fk_audits_reproduction_id"),
        sa.PrimaryKeyConstraint("id", name="pk_audits"),
    )
    op.create_index("ix_audits_verification_id", "audits", ["verification_id"], unique=False)
    forbid("audits", "update", "delete", instead="retract, never change")
