"""The leaderboard packs the samples that changed, and no longer all the rows that lie in a cell with them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from kernelproof.db.columns import Int64
from kernelproof.db.ddl import after, drop_trigger

revision = "0019_changed_samples"
down_revision = "0018_artefacts_by_key"

BY_RETRACTION = "(SELECT attempt_id FROM verifications WHERE id = new.verification_id)"
CHANGES = (
    ("INSERT", "attempts", "score_new_attempt", "new.id"),
    ("UPDATE OF status", "attempts", "score_ended_attempt", "new.id"),
    ("INSERT", "responses", "score_new_response", "new.attempt_id"),
    ("INSERT", "verifications", "score_new_verification", "new.attempt_id"),
    ("INSERT", "retractions", "score_new_retraction", BY_RETRACTION),
)
"""Events that change an attempt's score: event, table, name of the trigger, number of the attempt."""


def upgrade() -> None:
    op.create_table(
        "score_changes",
        sa.Column("run_id", Int64, nullable=False),
        sa.Column("problem", Int64, nullable=False),
        sa.Column("sample", Int64, nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_score_changes_run_id"),
        sa.ForeignKeyConstraint(["problem"], ["problems.id"], name="fk_score_changes_problem"),
        sa.PrimaryKeyConstraint("run_id", "problem", "sample", name="pk_score_changes"),
    )
    for event, table, name, attempt in CHANGES:
        drop_trigger(name, table)
        after(
            *(event, table, name),
            "INSERT INTO score_changes (run_id, problem, sample) "
            f"SELECT run_id, problem, sample FROM attempts WHERE id = {attempt} ON CONFLICT DO NOTHING",
        )
    unpacked = "(packed IS NULL OR substr(packed, 1, 6) <> :magic)"  # in the layout from before `pack`
    magic = sa.bindparam("magic", b"kpcell", sa.LargeBinary)
    for statement in (
        "INSERT INTO score_changes (run_id, problem, sample) "
        # SQLite does CROSS JOIN in the order of the words: it reads no attempts of packed cells.
        "SELECT DISTINCT a.run_id, a.problem, a.sample FROM score_cells c CROSS JOIN attempts a "
        "WHERE a.run_id = c.run_id AND a.problem = c.problem AND a.sample / 1024 = c.chunk AND",
        "DELETE FROM score_cells WHERE",
    ):
        op.execute(sa.text(f"{statement} {unpacked}").bindparams(magic))
    op.drop_index("ix_score_cells_unpacked", "score_cells")
    with op.batch_alter_table("score_cells") as cells:
        cells.alter_column("packed", nullable=False)
