"""Which plan an attempt carries out, and which verification another one repeats."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008_plans_and_repeats"
down_revision = "0007_scores"


def upgrade() -> None:
    op.add_column("attempts", sa.Column("plan", sa.Integer()))
    # SQLite adds a column with its foreign key only as text of the statement.
    op.execute(
        "ALTER TABLE verifications ADD COLUMN reused_from INTEGER "
        "CONSTRAINT fk_verifications_reused_from REFERENCES verifications (id)"
    )
    op.create_index("ix_verifications_reused_from", "verifications", ["reused_from"], unique=False)
