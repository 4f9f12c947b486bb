"""Why a pace is unresolved. Rows that were stored before have no reason, and keep their pace."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from kernelproof.db.columns import AnyText

revision = "0016_unresolved_because"
down_revision = "0015_held"


def upgrade() -> None:
    op.add_column("measurements", sa.Column("unresolved_because", AnyText))
