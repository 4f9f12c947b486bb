"""How often daemons were lost with an evaluation, and how often that may happen."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from kernelproof.db.columns import Int64

revision = "0014_losses"
down_revision = "0013_gpus"


def upgrade() -> None:
    for name, value in (("losses", "0"), ("most_losses", "5")):
        op.add_column("evaluations", sa.Column(name, Int64, nullable=False, server_default=value))
