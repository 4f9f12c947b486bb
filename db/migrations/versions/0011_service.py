"""The evaluation service: its callers, its queue, its workers."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from kernelproof.db.types import Whole

revision = "0011_service"
down_revision = "0010_audits"


def upgrade() -> None:
    op.create_table(
        "callers",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("token_sha256", sa.String(), nullable=False),
        sa.Column("quota", Whole),
        sa.Column("created", sa.String(32), nullable=False),
        sa.Column("revoked", sa.String(32)),
        sa.PrimaryKeyConstraint("name", name="pk_callers"),
    )
    op.create_table(
        "workers",
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("backend", sa.Text(), nullable=False),
        sa.Column("device", sa.Text(), nullable=False),
        sa.Column("places", Whole, nullable=False),
        sa.Column("running", Whole, nullable=False),
        sa.Column("done", Whole, nullable=False),
        sa.Column("renewed", sa.Float(), nullable=False),
        sa.Column("created", sa.String(32), nullable=False),
        sa.Column("ended", sa.String(32)),
        sa.PrimaryKeyConstraint("owner", name="pk_workers"),
    )
    op.create_table(
        "evaluations",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("caller", sa.Text(), nullable=False),
        sa.Column("idempotency_key", sa.Text()),
        sa.Column("request_sha256", sa.String(), nullable=False),
        sa.Column("label", sa.Text()),
        sa.Column("problem", Whole, nullable=False),
        sa.Column("text_sha256", sa.String(64), nullable=False),
        sa.Column("settings", sa.Text(), nullable=False),
        sa.Column("backend", sa.String(), nullable=False),
        sa.Column("priority", Whole, nullable=False),
        sa.Column("submitted", sa.Float(), nullable=False),
        sa.Column("deadline", sa.Float()),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("token", Whole, nullable=False),
        sa.Column("owner", sa.Text()),
        sa.Column("leased", sa.Float()),
        sa.Column("started", sa.Float()),
        sa.Column("finished", sa.Float()),
        sa.Column("attempt_id", Whole),
        sa.Column("reused", sa.Boolean(), nullable=False),
        sa.Column("error", sa.Text()),
        sa.Column("infrastructure", sa.Boolean(), nullable=False),
        sa.Column("late_verdicts", Whole, nullable=False),
        sa.ForeignKeyConstraint(["problem"], ["problems.id"], name="fk_evaluations_problem_problems"),
        sa.ForeignKeyConstraint(["text_sha256"], ["texts.sha256"], name="fk_evaluations_text_sha256_texts"),
        sa.ForeignKeyConstraint(["attempt_id"], ["attempts.id"], name="fk_evaluations_attempt_id_attempts"),
        sa.PrimaryKeyConstraint("id", name="pk_evaluations"),
        sa.UniqueConstraint("caller", "idempotency_key", name="uq_evaluations_idempotency"),
    )
    op.create_index("ix_evaluations_queue", "evaluations", ["state", "priority", "submitted"])
    op.create_index("ix_evaluations_request", "evaluations", ["request_sha256", "state"])
