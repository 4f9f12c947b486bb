"""GPUs of the evaluation service: which judge holds which, and which are set aside."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from kernelproof.db.columns import Int64
from kernelproof.db.ddl import MOMENT, needed, optional

revision = "0013_gpus"
down_revision = "0012_builders"


def upgrade() -> None:
    op.create_table(
        "gpus",
        sa.Column("uuid", sa.Text(), primary_key=True),
        *needed(sa.Text(), "name", "host"),
        *optional(sa.Text(), "owner"),
        *needed(Int64, "token"),
        *optional(sa.Float(), "leased"),
        *needed(sa.Float(), "renewed"),
        *optional(sa.Text(), "set_aside"),
        *needed(sa.Boolean(), "unproven"),
        *needed(MOMENT, "created"),
    )
    op.add_column("workers", sa.Column("gpu", sa.Text()))
    op.add_column("workers", sa.Column("waits", sa.Text()))
    op.add_column("evaluations", sa.Column("bad_gpus", Int64, nullable=False, server_default="0"))
