"""What the second referee sees and asks for: numerics, purity, error class, flags, kernels, clocks, routes.

Rows of before keep NULL, or the default that says what 0.1 did: its commands could ask for nothing else.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002_what_the_referee_sees"
down_revision = "0001_first_tables"


def upgrade() -> None:
    for table in ("runs", "verifications"):
        op.add_column(table, sa.Column("numerics", sa.Text(), nullable=False, server_default="fp32"))
        op.add_column(table, sa.Column("purity", sa.Text(), nullable=False, server_default="any"))
        op.add_column(table, sa.Column("own_kernel", sa.Boolean(), nullable=False, server_default=sa.true()))
    op.add_column("verifications", sa.Column("error_class", sa.Text()))
    op.add_column("verifications", sa.Column("determinism", sa.Text()))
    op.add_column("verifications", sa.Column("flags", sa.Text(), nullable=False, server_default="[]"))
    op.add_column("verifications", sa.Column("kernels", sa.Text()))
    op.add_column("measurements", sa.Column("inside_ms", sa.Float()))
    op.add_column("measurements", sa.Column("unseen_ms", sa.Float(), nullable=False, server_default="0"))
    for name in ("sessions", "calls", "disturbed", "against"):
        op.add_column("measurements", sa.Column(name, sa.Text(), nullable=False, server_default="[]"))
    op.add_column(
        "measurements", sa.Column("launch_bound", sa.Boolean(), nullable=False, server_default=sa.false())
    )
    for name in ("replayed", "roofline"):
        op.add_column("measurements", sa.Column(name, sa.Text()))
    op.add_column("builds", sa.Column("cpu_s", sa.Float(), nullable=False, server_default="0"))
    op.add_column("builds", sa.Column("route", sa.Text(), nullable=False, server_default="full"))
    op.add_column("builds", sa.Column("fallback", sa.Text(), nullable=False, server_default=""))
    op.drop_index("ix_verifications_leaderboard", "verifications")
    op.create_index(
        "ix_verifications_leaderboard",
        "verifications",
        [
            *("attempt_id", "kind", "status", "backend", "size", "environment_id"),
            *("numerics", "purity", "own_kernel", "error_class", "flags"),
        ],
        unique=False,
    )
