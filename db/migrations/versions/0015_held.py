"""An index of the evaluations that daemons have: few, however long the queue is."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015_held"
down_revision = "0014_losses"


def upgrade() -> None:
    op.execute("UPDATE evaluations SET leased = NULL WHERE state NOT IN ('building', 'running')")
    where = sa.text("leased IS NOT NULL")
    columns = ["owner", "leased", "state"]
    op.create_index("ix_evaluations_held", "evaluations", columns, sqlite_where=where, postgresql_where=where)
