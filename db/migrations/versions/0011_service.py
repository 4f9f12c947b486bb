"""The evaluation service: its callers, its queue, its workers."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from kernelproof.db.columns import Int64
from kernelproof.db.ddl import MOMENT, SHA256, needed, optional

revision = "0011_service"
down_revision = "0010_audits"


def upgrade() -> None:
    op.create_table(
        "callers",
        sa.Column("name", sa.Text(), primary_key=True),
        *needed(sa.String(), "token_sha256"),
        *optional(Int64, "quota"),
        *needed(MOMENT, "created"),
        *optional(MOMENT, "revoked"),
    )
    op.create_table(
        "workers",
        sa.Column("owner", sa.Text(), primary_key=True),
        *needed(sa.Text(), "backend", "device"),
        *needed(Int64, "places", "running", "done"),
        *needed(sa.Float(), "renewed"),
        *needed(MOMENT, "created"),
        *optional(MOMENT, "ended"),
    )
    op.create_table(
        "evaluations",
        sa.Column("id", sa.Text(), primary_key=True),
        *needed(sa.Text(), "caller"),
        *optional(sa.Text(), "idempotency_key"),
        *needed(sa.String(), "request_sha256"),
        *optional(sa.Text(), "label"),
        *needed(Int64, "problem"),
        *needed(SHA256, "text_sha256"),
        *needed(sa.Text(), "settings"),
        *needed(sa.String(), "backend"),
        *needed(Int64, "priority"),
        *needed(sa.Float(), "submitted"),
        *optional(sa.Float(), "deadline"),
        *needed(sa.String(), "state"),
        *needed(Int64, "token"),
        *optional(sa.Text(), "owner"),
        *optional(sa.Float(), "leased", "started", "finished"),
        *optional(Int64, "attempt_id"),
        *needed(sa.Boolean(), "reused"),
        *optional(sa.Text(), "error"),
        *needed(sa.Boolean(), "infrastructure"),
        *needed(Int64, "late_verdicts"),
        sa.ForeignKeyConstraint(["problem"], ["problems.id"], name="fk_evaluations_problem_problems"),
        sa.ForeignKeyConstraint(["text_sha256"], ["texts.sha256"], name="fk_evaluations_text_sha256_texts"),
        sa.ForeignKeyConstraint(["attempt_id"], ["attempts.id"], name="fk_evaluations_attempt_id_attempts"),
        sa.UniqueConstraint("caller", "idempotency_key", name="uq_evaluations_idempotency"),
    )
    op.create_index("ix_evaluations_queue", "evaluations", ["state", "priority", "submitted"])
    op.create_index("ix_evaluations_request", "evaluations", ["request_sha256", "state"])
