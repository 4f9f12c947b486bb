"""GPUs of the evaluation service: which judge holds which, and which are set aside."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from kernelproof.db.types import Whole

revision = "0013_gpus"
down_revision = "0012_builders"


def upgrade() -> None:
    op.create_table(
        "gpus",
        sa.Column("uuid", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text()),
        sa.Column("token", Whole, nullable=False),
        sa.Column("leased", sa.Float()),
        sa.Column("renewed", sa.Float(), nullable=False),
        sa.Column("set_aside", sa.Text()),
        sa.Column("unproven", sa.Boolean(), nullable=False),
        sa.Column("created", sa.String(32), nullable=False),
        sa.PrimaryKeyConstraint("uuid", name="pk_gpus"),
    )
    op.add_column("workers", sa.Column("gpu", sa.Text()))
    op.add_column("workers", sa.Column("waits", sa.Text()))
    op.add_column("evaluations", sa.Column("bad_gpus", Whole, nullable=False, server_default="0"))
