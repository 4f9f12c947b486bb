"""The table of a chain of hashes, which is not written any more."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from kernelproof.db.columns import Int64
from kernelproof.db.ddl import MOMENT, forbid, needed, optional

revision = "0009_hash_chain"
down_revision = "0008_plans_and_repeats"


def upgrade() -> None:
    op.create_table(
        "hash_chain",
        sa.Column("id", Int64, primary_key=True),
        *needed(sa.String(), "record"),
        *needed(Int64, "number"),
        *needed(sa.LargeBinary(), "content", "sha256"),
        *optional(MOMENT, "created"),
    )
    forbid("hash_chain", "update", "delete", instead="retract, never change")
