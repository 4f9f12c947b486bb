"""Artefacts are found in their store by key: no table of them, and judges build what is lost."""

from __future__ import annotations

from alembic import op

revision = "0018_artefacts_by_key"
down_revision = "0017_current_policy"


def upgrade() -> None:
    op.drop_table("artefacts")
    op.drop_column("evaluations", "rebuilds")
