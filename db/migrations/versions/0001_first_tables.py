"""First tables: everything the first version stores.

Migrations are append-only: a table that changes later changes in a migration of its own.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from kernelproof.db.columns import Int64
from kernelproof.db.ddl import MOMENT, SHA256, forbid, needed, optional

revision = "0001_first_tables"
down_revision = None

APPEND_ONLY = ("responses", "verifications", "builds", "findings", "checks", "measurements", "retractions")


def upgrade() -> None:
    op.create_table(
        "environments",
        sa.Column("id", Int64, primary_key=True),
        *needed(SHA256, "fingerprint"),
        *needed(sa.Text(), "device_name"),
        *optional(sa.Text(), "gpu_name", "gpu_uuid", "driver", "cuda"),
        *needed(sa.Text(), "torch", "python"),
        *optional(sa.Text(), "nvcc", "cxx"),
        *needed(sa.Text(), "cpu", "host_sha256", "kernelproof", "facts"),
        sa.UniqueConstraint("fingerprint", name="uq_environments_fingerprint"),
    )
    op.create_table(
        "runs",
        sa.Column("id", Int64, primary_key=True),
        *needed(SHA256, "key"),
        *optional(sa.Text(), "name"),
        *needed(sa.Text(), "kind", "model"),
        *optional(sa.Text(), "base_url", "template"),
        *optional(SHA256, "template_sha256"),
        *needed(sa.Text(), "backend", "size"),
        *needed(Int64, "turns"),
        *needed(sa.Text(), "settings"),
        *needed(MOMENT, "created"),
        sa.UniqueConstraint("key", name="uq_runs_key"),
    )
    op.create_table(
        "texts",
        sa.Column("sha256", SHA256, primary_key=True),
        *needed(sa.Text(), "body"),
        *needed(Int64, "bytes"),
    )
    op.create_table(
        "problems",
        sa.Column("id", Int64, primary_key=True),
        *needed(sa.Text(), "problem_id", "suite"),
        *optional(Int64, "level"),
        *needed(sa.Text(), "name"),
        *needed(SHA256, "sha256"),
        *needed(sa.Text(), "sizes", "signature", "summary"),
        sa.ForeignKeyConstraint(["sha256"], ["texts.sha256"]),
        sa.UniqueConstraint("problem_id", "sha256", name="uq_problems_problem_id_sha256"),
    )
    op.create_table(
        "prompts",
        sa.Column("id", Int64, primary_key=True),
        *needed(SHA256, "sha256"),
        *needed(sa.Text(), "template"),
        *needed(SHA256, "template_sha256", "system_sha256", "user_sha256", "history_sha256"),
        sa.ForeignKeyConstraint(["history_sha256"], ["texts.sha256"]),
        sa.ForeignKeyConstraint(["system_sha256"], ["texts.sha256"]),
        sa.ForeignKeyConstraint(["user_sha256"], ["texts.sha256"]),
        sa.UniqueConstraint(
            *("sha256", "template", "template_sha256", "system_sha256", "user_sha256", "history_sha256"),
            name="uq_prompts",
        ),
    )
    op.create_table(
        "attempts",
        sa.Column("id", Int64, primary_key=True),
        *needed(Int64, "run_id", "problem", "sample", "turn"),
        *optional(Int64, "parent_id", "prompt"),
        *optional(sa.Text(), "status"),
        *needed(MOMENT, "created"),
        *optional(MOMENT, "finished"),
        sa.CheckConstraint("sample >= 0 AND turn >= 1", name="ck_attempts_key"),
        sa.ForeignKeyConstraint(["parent_id"], ["attempts.id"]),
        sa.ForeignKeyConstraint(["problem"], ["problems.id"]),
        sa.ForeignKeyConstraint(["prompt"], ["prompts.id"]),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"]),
        sa.UniqueConstraint(
            "run_id", "problem", "sample", "turn", name="uq_attempts_run_id_problem_sample_turn"
        ),
    )
    op.create_table(
        "candidates",
        sa.Column("id", Int64, primary_key=True),
        sa.Column("attempt_id", Int64, sa.ForeignKey("attempts.id"), nullable=False),
        sa.Column("source_sha256", SHA256, sa.ForeignKey("texts.sha256")),
        *optional(sa.Text(), "status"),
        *needed(sa.Text(), "method", "warnings"),
        *optional(Int64, "span_start", "span_end"),
        *needed(MOMENT, "created"),
    )
    op.create_index("ix_candidates_attempt_id", "candidates", ["attempt_id"], unique=False)
    op.create_table(
        "responses",
        sa.Column("id", Int64, primary_key=True),
        *needed(Int64, "attempt_id", "ordinal"),
        *optional(sa.Text(), "error"),
        *optional(SHA256, "raw_sha256", "text_sha256", "reasoning_sha256"),
        *optional(sa.Text(), "refusal", "finish_reason", "request_id", "served_model", "system_fingerprint"),
        *optional(Int64, "prompt_tokens", "completion_tokens", "reasoning_tokens", "cached_tokens"),
        *optional(sa.Float(), "latency_s"),
        *needed(MOMENT, "created"),
        sa.ForeignKeyConstraint(["attempt_id"], ["attempts.id"]),
        sa.ForeignKeyConstraint(["raw_sha256"], ["texts.sha256"]),
        sa.ForeignKeyConstraint(["reasoning_sha256"], ["texts.sha256"]),
        sa.ForeignKeyConstraint(["text_sha256"], ["texts.sha256"]),
        sa.UniqueConstraint("attempt_id", "ordinal", name="uq_responses_attempt_id_ordinal"),
    )
    op.create_table(
        "verifications",
        sa.Column("id", Int64, primary_key=True),
        *needed(Int64, "attempt_id"),
        *needed(sa.Text(), "kind", "status", "backend", "size"),
        *optional(Int64, "environment_id"),
        *needed(sa.Text(), "reason", "problem_id"),
        *needed(SHA256, "problem_sha256", "candidate_sha256"),
        *optional(sa.Text(), "sandbox_tier", "sandbox"),
        *needed(sa.Text(), "settings", "seeds", "inputs", "errors"),
        *optional(SHA256, "details_sha256"),
        *optional(sa.Text(), "exit"),
        *needed(sa.Text(), "stage_seconds", "verifier"),
        *needed(MOMENT, "created"),
        sa.CheckConstraint("kind IN ('first', 'again', 'reproduce')", name="ck_verifications_kind"),
        sa.ForeignKeyConstraint(["attempt_id"], ["attempts.id"]),
        sa.ForeignKeyConstraint(["details_sha256"], ["texts.sha256"]),
        sa.ForeignKeyConstraint(["environment_id"], ["environments.id"]),
    )
    op.create_index(
        "ix_verifications_leaderboard",
        "verifications",
        ["attempt_id", "kind", "status", "backend", "size", "environment_id"],
        unique=False,
    )
    op.create_table(
        "builds",
        *needed(Int64, "verification_id", "position"),
        *needed(sa.Text(), "key", "state", "name"),
        *optional(sa.Text(), "library", "library_sha256"),
        *needed(sa.Boolean(), "cached"),
        *needed(sa.Float(), "duration_s"),
        *needed(sa.Text(), "commands"),
        *optional(SHA256, "log_sha256"),
        sa.ForeignKeyConstraint(["log_sha256"], ["texts.sha256"]),
        sa.ForeignKeyConstraint(["verification_id"], ["verifications.id"]),
        sa.PrimaryKeyConstraint("verification_id", "position"),
    )
    op.create_table(
        "checks",
        sa.Column("verification_id", Int64, sa.ForeignKey("verifications.id"), nullable=False),
        *needed(Int64, "position"),
        *needed(sa.Text(), "name", "outcome", "asked", "seen", "figures"),
        sa.PrimaryKeyConstraint("verification_id", "position"),
    )
    op.create_table(
        "findings",
        sa.Column("verification_id", Int64, sa.ForeignKey("verifications.id"), nullable=False),
        *needed(Int64, "position"),
        *needed(sa.Text(), "rule", "severity"),
        *optional(sa.Text(), "status"),
        *optional(Int64, "line"),
        *needed(sa.Text(), "message", "evidence"),
        sa.PrimaryKeyConstraint("verification_id", "position"),
    )
    op.create_table(
        "measurements",
        sa.Column("verification_id", Int64, sa.ForeignKey("verifications.id"), primary_key=True),
        *needed(sa.Text(), "baseline"),
        *needed(sa.Float(), "candidate_ms", "baseline_ms", "speedup", "speedup_low", "speedup_high"),
        *needed(sa.Text(), "pace"),
        *needed(sa.Float(), "resolution", "aa_spread", "host_ms", "overhead_ms"),
        *needed(Int64, "flush_bytes", "slots"),
        *needed(
            sa.Text(), "order", "clocks_before", "clocks_after", "candidate_samples_ms", "baseline_samples_ms"
        ),
    )
    op.create_index(
        "ix_measurements_leaderboard",
        "measurements",
        [
            "verification_id",
            "speedup",
            "speedup_low",
            "speedup_high",
            "candidate_ms",
            "baseline_ms",
            "pace",
            "baseline",
        ],
        unique=False,
    )
    op.create_table(
        "retractions",
        sa.Column("verification_id", Int64, sa.ForeignKey("verifications.id"), primary_key=True),
        *needed(sa.Text(), "reason"),
        *needed(MOMENT, "created"),
    )
    for table in APPEND_ONLY:
        forbid(table, "update", "delete", instead="retract, never change")
