"""First tables: everything the first version stores.

Migrations are append-only: a table that changes later changes in a migration of its own.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from kernelproof.db.ddl import forbid
from kernelproof.db.types import Whole

revision = "0001_first_tables"
down_revision = None

APPEND_ONLY = ("responses", "verifications", "builds", "findings", "checks", "measurements", "retractions")


def upgrade() -> None:
    op.create_table(
        "environments",
        sa.Column("id", Whole, nullable=False),
        sa.Column("fingerprint", sa.String(length=64), nullable=False),
        sa.Column("device_name", sa.Text(), nullable=False),
        sa.Column("gpu_name", sa.Text()),
        sa.Column("gpu_uuid", sa.Text()),
        sa.Column("driver", sa.Text()),
        sa.Column("cuda", sa.Text()),
        sa.Column("torch", sa.Text(), nullable=False),
        sa.Column("python", sa.Text(), nullable=False),
        sa.Column("nvcc", sa.Text()),
        sa.Column("cxx", sa.Text()),
        sa.Column("cpu", sa.Text(), nullable=False),
        sa.Column("host_sha256", sa.Text(), nullable=False),
        sa.Column("kernelproof", sa.Text(), nullable=False),
        sa.Column("facts", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_environments"),
        sa.UniqueConstraint("fingerprint", name="uq_environments_fingerprint"),
    )
    op.create_table(
        "runs",
        sa.Column("id", Whole, nullable=False),
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("name", sa.Text()),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("base_url", sa.Text()),
        sa.Column("template", sa.Text()),
        sa.Column("template_sha256", sa.String(length=64)),
        sa.Column("backend", sa.Text(), nullable=False),
        sa.Column("size", sa.Text(), nullable=False),
        sa.Column("turns", Whole, nullable=False),
        sa.Column("settings", sa.Text(), nullable=False),
        sa.Column("created", sa.String(length=32), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_runs"),
        sa.UniqueConstraint("key", name="uq_runs_key"),
    )
    op.create_table(
        "texts",
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("bytes", Whole, nullable=False),
        sa.PrimaryKeyConstraint("sha256", name="pk_texts"),
    )
    op.create_table(
        "problems",
        sa.Column("id", Whole, nullable=False),
        sa.Column("problem_id", sa.Text(), nullable=False),
        sa.Column("suite", sa.Text(), nullable=False),
        sa.Column("level", Whole),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("sizes", sa.Text(), nullable=False),
        sa.Column("signature", sa.Text(), nullable=False),
        sa.Column("summary", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["sha256"], ["texts.sha256"], name="fk_problems_sha256"),
        sa.PrimaryKeyConstraint("id", name="pk_problems"),
        sa.UniqueConstraint("problem_id", "sha256", name="uq_problems_problem_id_sha256"),
    )
    op.create_table(
        "prompts",
        sa.Column("id", Whole, nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("template", sa.Text(), nullable=False),
        sa.Column("template_sha256", sa.String(length=64), nullable=False),
        sa.Column("system_sha256", sa.String(length=64), nullable=False),
        sa.Column("user_sha256", sa.String(length=64), nullable=False),
        sa.Column("history_sha256", sa.String(length=64), nullable=False),
        sa.ForeignKeyConstraint(["history_sha256"], ["texts.sha256"], name="fk_prompts_history_sha256"),
        sa.ForeignKeyConstraint(["system_sha256"], ["texts.sha256"], name="fk_prompts_system_sha256"),
        sa.ForeignKeyConstraint(["user_sha256"], ["texts.sha256"], name="fk_prompts_user_sha256"),
        sa.PrimaryKeyConstraint("id", name="pk_prompts"),
        sa.UniqueConstraint(
            *("sha256", "template", "template_sha256", "system_sha256", "user_sha256", "history_sha256"),
            name="uq_prompts",
        ),
    )
    op.create_table(
        "attempts",
        sa.Column("id", Whole, nullable=False),
        sa.Column("run_id", Whole, nullable=False),
        sa.Column("problem", Whole, nullable=False),
        sa.Column("sample", Whole, nullable=False),
        sa.Column("turn", Whole, nullable=False),
        sa.Column("parent_id", Whole),
        sa.Column("prompt", Whole),
        sa.Column("status", sa.Text()),
        sa.Column("created", sa.String(length=32), nullable=False),
        sa.Column("finished", sa.String(length=32)),
        sa.CheckConstraint("sample >= 0 AND turn >= 1", name="ck_attempts_key"),
        sa.ForeignKeyConstraint(["parent_id"], ["attempts.id"], name="fk_attempts_parent_id"),
        sa.ForeignKeyConstraint(["problem"], ["problems.id"], name="fk_attempts_problem"),
        sa.ForeignKeyConstraint(["prompt"], ["prompts.id"], name="fk_attempts_prompt"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_attempts_run_id"),
        sa.PrimaryKeyConstraint("id", name="pk_attempts"),
        sa.UniqueConstraint(
            "run_id", "problem", "sample", "turn", name="uq_attempts_run_id_problem_sample_turn"
        ),
    )
    op.create_table(
        "candidates",
        sa.Column("id", Whole, nullable=False),
        sa.Column("attempt_id", Whole, nullable=False),
        sa.Column("source_sha256", sa.String(length=64)),
        sa.Column("status", sa.Text()),
        sa.Column("method", sa.Text(), nullable=False),
        sa.Column("warnings", sa.Text(), nullable=False),
        sa.Column("span_start", Whole),
        sa.Column("span_end", Whole),
        sa.Column("created", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(["attempt_id"], ["attempts.id"], name="fk_candidates_attempt_id"),
        sa.ForeignKeyConstraint(["source_sha256"], ["texts.sha256"], name="fk_candidates_source_sha256"),
        sa.PrimaryKeyConstraint("id", name="pk_candidates"),
    )
    op.create_index("ix_candidates_attempt_id", "candidates", ["attempt_id"], unique=False)
    op.create_table(
        "responses",
        sa.Column("id", Whole, nullable=False),
        sa.Column("attempt_id", Whole, nullable=False),
        sa.Column("ordinal", Whole, nullable=False),
        sa.Column("error", sa.Text()),
        sa.Column("raw_sha256", sa.String(length=64)),
        sa.Column("text_sha256", sa.String(length=64)),
        sa.Column("reasoning_sha256", sa.String(length=64)),
        sa.Column("refusal", sa.Text()),
        sa.Column("finish_reason", sa.Text()),
        sa.Column("request_id", sa.Text()),
        sa.Column("served_model", sa.Text()),
        sa.Column("system_fingerprint", sa.Text()),
        sa.Column("prompt_tokens", Whole),
        sa.Column("completion_tokens", Whole),
        sa.Column("reasoning_tokens", Whole),
        sa.Column("cached_tokens", Whole),
        sa.Column("latency_s", sa.Float()),
        sa.Column("created", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(["attempt_id"], ["attempts.id"], name="fk_responses_attempt_id"),
        sa.ForeignKeyConstraint(["raw_sha256"], ["texts.sha256"], name="fk_responses_raw_sha256"),
        sa.ForeignKeyConstraint(["reasoning_sha256"], ["texts.sha256"], name="fk_responses_reasoning_sha256"),
        sa.ForeignKeyConstraint(["text_sha256"], ["texts.sha256"], name="fk_responses_text_sha256"),
        sa.PrimaryKeyConstraint("id", name="pk_responses"),
        sa.UniqueConstraint("attempt_id", "ordinal", name="uq_responses_attempt_id_ordinal"),
    )
    op.create_table(
        "verifications",
        sa.Column("id", Whole, nullable=False),
        sa.Column("attempt_id", Whole, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("backend", sa.Text(), nullable=False),
        sa.Column("size", sa.Text(), nullable=False),
        sa.Column("environment_id", Whole),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("problem_id", sa.Text(), nullable=False),
        sa.Column("problem_sha256", sa.String(length=64), nullable=False),
        sa.Column("candidate_sha256", sa.String(length=64), nullable=False),
        sa.Column("sandbox_tier", sa.Text()),
        sa.Column("sandbox", sa.Text()),
        sa.Column("settings", sa.Text(), nullable=False),
        sa.Column("seeds", sa.Text(), nullable=False),
        sa.Column("inputs", sa.Text(), nullable=False),
        sa.Column("errors", sa.Text(), nullable=False),
        sa.Column("details_sha256", sa.String(length=64)),
        sa.Column("exit", sa.Text()),
        sa.Column("stage_seconds", sa.Text(), nullable=False),
        sa.Column("verifier", sa.Text(), nullable=False),
        sa.Column("created", sa.String(length=32), nullable=False),
        sa.CheckConstraint("kind IN ('first', 'again', 'reproduce')", name="ck_verifications_kind"),
        sa.ForeignKeyConstraint(["attempt_id"], ["attempts.id"], name="fk_verifications_attempt_id"),
        sa.ForeignKeyConstraint(["details_sha256"], ["texts.sha256"], name="fk_verifications_details_sha256"),
        sa.ForeignKeyConstraint(
            ["environment_id"], ["environments.id"], name="fk_verifications_environment_id"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_verifications"),
    )
    op.create_index(
        "ix_verifications_leaderboard",
        "verifications",
        ["attempt_id", "kind", "status", "backend", "size", "environment_id"],
        unique=False,
    )
    op.create_table(
        "builds",
        sa.Column("verification_id", Whole, nullable=False),
        sa.Column("position", Whole, nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("library", sa.Text()),
        sa.Column("library_sha256", sa.Text()),
        sa.Column("cached", sa.Boolean(), nullable=False),
        sa.Column("duration_s", sa.Float(), nullable=False),
        sa.Column("commands", sa.Text(), nullable=False),
        sa.Column("log_sha256", sa.String(length=64)),
        sa.ForeignKeyConstraint(["log_sha256"], ["texts.sha256"], name="fk_builds_log_sha256"),
        sa.ForeignKeyConstraint(["verification_id"], ["verifications.id"], name="fk_builds_verification_id"),
        sa.PrimaryKeyConstraint("verification_id", "position", name="pk_builds"),
    )
    op.create_table(
        "checks",
        sa.Column("verification_id", Whole, nullable=False),
        sa.Column("position", Whole, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("asked", sa.Text(), nullable=False),
        sa.Column("seen", sa.Text(), nullable=False),
        sa.Column("figures", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["verification_id"], ["verifications.id"], name="fk_checks_verification_id"),
        sa.PrimaryKeyConstraint("verification_id", "position", name="pk_checks"),
    )
    op.create_table(
        "findings",
        sa.Column("verification_id", Whole, nullable=False),
        sa.Column("position", Whole, nullable=False),
        sa.Column("rule", sa.Text(), nullable=False),
        sa.Column("severity", sa.Text(), nullable=False),
        sa.Column("status", sa.Text()),
        sa.Column("line", Whole),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("evidence", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["verification_id"], ["verifications.id"], name="fk_findings_verification_id"
        ),
        sa.PrimaryKeyConstraint("verification_id", "position", name="pk_findings"),
    )
    op.create_table(
        "measurements",
        sa.Column("verification_id", Whole, nullable=False),
        sa.Column("baseline", sa.Text(), nullable=False),
        sa.Column("candidate_ms", sa.Float(), nullable=False),
        sa.Column("baseline_ms", sa.Float(), nullable=False),
        sa.Column("speedup", sa.Float(), nullable=False),
        sa.Column("speedup_low", sa.Float(), nullable=False),
        sa.Column("speedup_high", sa.Float(), nullable=False),
        sa.Column("pace", sa.Text(), nullable=False),
        sa.Column("resolution", sa.Float(), nullable=False),
        sa.Column("aa_spread", sa.Float(), nullable=False),
        sa.Column("host_ms", sa.Float(), nullable=False),
        sa.Column("overhead_ms", sa.Float(), nullable=False),
        sa.Column("flush_bytes", Whole, nullable=False),
        sa.Column("slots", Whole, nullable=False),
        sa.Column("order", sa.Text(), nullable=False),
        sa.Column("clocks_before", sa.Text(), nullable=False),
        sa.Column("clocks_after", sa.Text(), nullable=False),
        sa.Column("candidate_samples_ms", sa.Text(), nullable=False),
        sa.Column("baseline_samples_ms", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["verification_id"], ["verifications.id"], name="fk_measurements_verification_id"
        ),
        sa.PrimaryKeyConstraint("verification_id", name="pk_measurements"),
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
        sa.Column("verification_id", Whole, nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("created", sa.String(length=32), nullable=False),
        sa.ForeignKeyConstraint(
            ["verification_id"], ["verifications.id"], name="fk_retractions_verification_id"
        ),
        sa.PrimaryKeyConstraint("verification_id", name="pk_retractions"),
    )
    for table in APPEND_ONLY:
        forbid(table, "update", "delete", instead="retract, never change")
