"""Why extraction found no program, in words. Rows of before have none."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005_why_there_is_no_program"
down_revision = "0004_leases_costs_and_batches"


def upgrade() -> None:
    op.add_column("candidates", sa.Column("reason", sa.Text(), nullable=False, server_default=""))
