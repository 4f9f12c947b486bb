"""Leases on questions, keys and costs of answers, batches, and retractions that can be taken back.

Attempts of before have no question key: their answers are not shared with other runs. Answers of before
have no cost: nobody asked for it.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from kernelproof.db.ddl import add_reference, forbid, permit
from kernelproof.db.types import Whole

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
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("renewed", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_leases"),
    )
    op.create_table(
        "batches",
        sa.Column("id", Whole, nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("name", sa.Text()),
        sa.Column("runs", sa.Text(), nullable=False),
        sa.Column("config", sa.Text(), nullable=False),
        sa.Column("progress", sa.Text(), nullable=False),
        sa.Column("renewed", sa.Float(), nullable=False),
        sa.Column("ended", sa.Text()),
        sa.Column("created", sa.String(length=32), nullable=False),
        sa.Column("finished", sa.String(length=32)),
        sa.PrimaryKeyConstraint("id", name="pk_batches"),
    )
    op.create_table(
        "server_batches",
        sa.Column("id", Whole, nullable=False),
        sa.Column("server_id", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("base_url", sa.Text()),
        sa.Column("keys", sa.Text(), nullable=False),
        sa.Column("open", sa.Boolean(), nullable=False),
        sa.Column("created", sa.String(length=32), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_server_batches"),
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
        sa.Column("id", Whole, nullable=False),
        sa.Column("verification_id", Whole, nullable=False),
        sa.Column("counts", sa.Boolean(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("created", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(
            ["verification_id"], ["verifications.id"], name="fk_retractions_verification_id"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_retractions"),
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
