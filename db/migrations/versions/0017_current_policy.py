"""The policy under which results rank, for views that cannot ask the program."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017_current_policy"
down_revision = "0016_unresolved_because"


def upgrade() -> None:
    op.create_table(
        "current_policy",
        sa.Column("policy", sa.Text(), primary_key=True),
    )
