"""The outer clock of every block.

Rows of before hold no such times: their list is empty.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003_both_clocks_and_more_evidence"
down_revision = "0002_what_the_referee_sees"


def upgrade() -> None:
    op.add_column(
        "measurements", sa.Column("host_samples_ms", sa.Text(), nullable=False, server_default="[]")
    )
