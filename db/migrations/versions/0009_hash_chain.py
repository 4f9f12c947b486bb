"""The table of a chain of hashes, which is not written any more."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from kernelproof.db.ddl import forbid
from kernelproof.db.types import Whole

revision = "0009_hash_chain"
down_revision = "0008_plans_and_repeats"


def upgrade() -> None:
    op.create_table(
        "hash_chain",
        sa.Column("id", Whole, nullable=False),
        sa.Column("record", sa.String(), nullable=False),
        sa.Column("number", Whole, nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.Column("sha256", sa.LargeBinary(), nullable=False),
        sa.Column("created", sa.String(length=32)),
        sa.PrimaryKeyConstraint("id", name="pk_hash_chain"),
    )
    forbid("hash_chain", "update", "delete", instead="retract, never change")
