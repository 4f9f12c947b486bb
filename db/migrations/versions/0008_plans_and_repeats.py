"""Which plan an attempt carries out, and which verification another one repeats."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from kernelproof.db.columns import Int64
from kernelproof.db.ddl import add_reference

revision = "0008_plans_and_repeats"
down_revision = "0007_scores"


def upgrade() -> None:
    op.add_column("attempts", sa.Column("plan", Int64))
    add_reference("verifications", "reused_from", "verifications")
    op.create_index("ix_verifications_reused_from", "verifications", ["reused_from"], unique=False)
