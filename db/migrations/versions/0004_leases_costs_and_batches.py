"""Leases on questions, keys and costs of answers, batches, and retractions that can be taken back.

Attempts of before have no question key: their answers are not shared with other runs. Answers of before
have no cost: nobody asked for it.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from kernelproof.db.columns import Int64
from kernelproof.db.ddl import MOMENT, add_reference, forbid, needed, optional, permit

revision = "0004_leases_costs_and_batches"
down_revision = "0003_both_clocks_and_more_evidence"


def upgrade() -> None:
    op.add_column("attempts", sa.Column("question_key", sa.String(length=64)))
    op.create_index("ix_attempts_question_key", "attempts", ["question_key"], unique=False)
    op.add_column("responses", sa.Column("cost_usd", sa.Float()))
    op.add_column("responses", sa.Column("retriable", sa.Boolean()))
    add_reference("responses", "reused_from", "responses")
    op.create_table(
        "leases",
        sa.Column("key", sa.Text(), primary_key=True),
        *needed(sa.Text(), "owner"),
        *needed(sa.Float(), "renewed"),
    )
    op.create_table(
        "batches",
        sa.Column("id", Int64, primary_key=True),
        *needed(sa.Text(), "owner"),
        *optional(sa.Text(), "name"),
        *needed(sa.Text(), "runs", "config", "progress"),
        *needed(sa.Float(), "renewed"),
        *optional(sa.Text(), "ended"),
        *needed(MOMENT, "created"),
        *optional(MOMENT, "finished"),
    )
    op.create_table(
        "server_batches",
        sa.Column("id", Int64, primary_key=True),
        *needed(sa.Text(), "server_id", "model"),
        *optional(sa.Text(), "base_url"),
        *needed(sa.Text(), "keys"),
        *needed(sa.Boolean(), "open"),
        *needed(MOMENT, "created"),
    )
    _retractions_with_a_history()


def _retractions_with_a_history() -> None:
    permit("retractions", "update", "delete")
    # The rows are held here: on a server a table that is renamed keeps the names of its constraints.
    connection = op.get_bind()
    old = connection.execute(
        sa.text("SELECT verification_id, reason, created FROM retractions ORDER BY created")
    ).all()
    op.drop_table("retractions")
    op.create_table(
        "retractions",
        sa.Column("id", Int64, primary_key=True),
        sa.Column("verification_id", Int64, sa.ForeignKey("verifications.id"), nullable=False),
        *needed(sa.Boolean(), "counts"),
        *needed(sa.Text(), "reason"),
        *needed(MOMENT, "created"),
    )
    op.create_index("ix_retractions_verification_id", "retractions", ["verification_id"], unique=False)
    if old:
        connection.execute(
            sa.text(
                "INSERT INTO retractions (verification_id, counts, reason, created) "
                "VALUES (:verification_id, :counts, :reason, :created)"
            ),
            [{**row._asdict(), "counts": False} for row in old],
        )
    forbid("retractions", "update", "delete", instead="retract, never change")
