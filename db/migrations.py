"""All migrations, the oldest first: what a database of each version lacks of the next one's schema.

Migrations are append-only: a table that changes later changes in a migration of its own. A function is one:
its name without the `m` stands in `alembic_version`, and `db upgrade` says its docstring's first line.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from alembic import op
from alembic.migration import MigrationContext
from alembic.operations import Operations

from kernelproof.db.columns import AnyText, Int64
from kernelproof.db.ddl import (
    MOMENT,
    SHA256,
    add,
    add_reference,
    after,
    defaulted,
    drop_trigger,
    forbid,
    needed,
    optional,
    permit,
    referring,
    row_id,
)
from kernelproof.db.models import Base

BOOLEAN, FLOAT, STRING, TEXT = sa.Boolean(), sa.Float(), sa.String(), sa.Text()
NEVER_CHANGE = "retract, never change"


def m0001_first_tables() -> None:
    """First tables: everything the first version stores."""
    op.create_table(
        "environments",
        row_id(),
        *needed(SHA256, "fingerprint"),
        *needed(TEXT, "device_name"),
        *optional(TEXT, "gpu_name", "gpu_uuid", "driver", "cuda"),
        *needed(TEXT, "torch", "python"),
        *optional(TEXT, "nvcc", "cxx"),
        *needed(TEXT, "cpu", "host_sha256", "kernelproof", "facts"),
        sa.UniqueConstraint("fingerprint", name="uq_environments_fingerprint"),
    )
    op.create_table(
        "runs",
        row_id(),
        *needed(SHA256, "key"),
        *optional(TEXT, "name"),
        *needed(TEXT, "kind", "model"),
        *optional(TEXT, "base_url", "template"),
        *optional(SHA256, "template_sha256"),
        *needed(TEXT, "backend", "size"),
        *needed(Int64, "turns"),
        *needed(TEXT, "settings"),
        *needed(MOMENT, "created"),
        sa.UniqueConstraint("key", name="uq_runs_key"),
    )
    op.create_table(
        "texts",
        sa.Column("sha256", SHA256, primary_key=True),
        *needed(TEXT, "body"),
        *needed(Int64, "bytes"),
    )
    op.create_table(
        "problems",
        row_id(),
        *needed(TEXT, "problem_id", "suite"),
        *optional(Int64, "level"),
        *needed(TEXT, "name"),
        *referring("texts.sha256", "sha256"),
        *needed(TEXT, "sizes", "signature", "summary"),
        sa.UniqueConstraint("problem_id", "sha256", name="uq_problems_problem_id_sha256"),
    )
    op.create_table(
        "prompts",
        row_id(),
        *needed(SHA256, "sha256"),
        *needed(TEXT, "template"),
        *needed(SHA256, "template_sha256"),
        *referring("texts.sha256", "system_sha256", "user_sha256", "history_sha256"),
        sa.UniqueConstraint(
            *("sha256", "template", "template_sha256", "system_sha256", "user_sha256", "history_sha256"),
            name="uq_prompts",
        ),
    )
    _tables_of_attempts()
    _tables_of_verifications()
    evidence = ("responses", "verifications", "builds", "findings", "checks", "measurements", "retractions")
    for table in evidence:
        forbid(table, "update", "delete", instead=NEVER_CHANGE)


def _tables_of_attempts() -> None:
    op.create_table(
        "attempts",
        sa.CheckConstraint("sample >= 0 AND turn >= 1", name="ck_attempts_key"),
        row_id(),
        *referring("runs.id", "run_id"),
        *referring("problems.id", "problem"),
        *needed(Int64, "sample", "turn"),
        *referring("attempts.id", "parent_id", null=True),
        *referring("prompts.id", "prompt", null=True),
        *optional(TEXT, "status"),
        *needed(MOMENT, "created"),
        *optional(MOMENT, "finished"),
        sa.UniqueConstraint(
            "run_id", "problem", "sample", "turn", name="uq_attempts_run_id_problem_sample_turn"
        ),
    )
    op.create_table(
        "candidates",
        row_id(),
        *referring("attempts.id", "attempt_id"),
        *referring("texts.sha256", "source_sha256", null=True),
        *optional(TEXT, "status"),
        *needed(TEXT, "method", "warnings"),
        *optional(Int64, "span_start", "span_end"),
        *needed(MOMENT, "created"),
    )
    op.create_index("ix_candidates_attempt_id", "candidates", ["attempt_id"])
    op.create_table(
        "responses",
        row_id(),
        *referring("attempts.id", "attempt_id"),
        *needed(Int64, "ordinal"),
        *optional(TEXT, "error"),
        *referring("texts.sha256", "raw_sha256", "text_sha256", "reasoning_sha256", null=True),
        *optional(TEXT, "refusal", "finish_reason", "request_id", "served_model", "system_fingerprint"),
        *optional(Int64, "prompt_tokens", "completion_tokens", "reasoning_tokens", "cached_tokens"),
        *optional(FLOAT, "latency_s"),
        *needed(MOMENT, "created"),
        sa.UniqueConstraint("attempt_id", "ordinal", name="uq_responses_attempt_id_ordinal"),
    )


def _tables_of_verifications() -> None:
    op.create_table(
        "verifications",
        sa.CheckConstraint("kind IN ('first', 'again', 'reproduce')", name="ck_verifications_kind"),
        row_id(),
        *referring("attempts.id", "attempt_id"),
        *needed(TEXT, "kind", "status", "backend", "size"),
        *referring("environments.id", "environment_id", null=True),
        *needed(TEXT, "reason", "problem_id"),
        *needed(SHA256, "problem_sha256", "candidate_sha256"),
        *optional(TEXT, "sandbox_tier", "sandbox"),
        *needed(TEXT, "settings", "seeds", "inputs", "errors"),
        *referring("texts.sha256", "details_sha256", null=True),
        *optional(TEXT, "exit"),
        *needed(TEXT, "stage_seconds", "verifier"),
        *needed(MOMENT, "created"),
    )
    leaderboard = ["attempt_id", "kind", "status", "backend", "size", "environment_id"]
    op.create_index("ix_verifications_leaderboard", "verifications", leaderboard)
    evidence = {
        "builds": (
            *needed(TEXT, "key", "state", "name"),
            *optional(TEXT, "library", "library_sha256"),
            *needed(BOOLEAN, "cached"),
            *needed(FLOAT, "duration_s"),
            *needed(TEXT, "commands"),
            *referring("texts.sha256", "log_sha256", null=True),
        ),
        "checks": (*needed(TEXT, "name", "outcome", "asked", "seen", "figures"),),
        "findings": (
            *needed(TEXT, "rule", "severity"),
            *optional(TEXT, "status"),
            *optional(Int64, "line"),
            *needed(TEXT, "message", "evidence"),
        ),
    }
    for table, columns in evidence.items():
        key = (*referring("verifications.id", "verification_id"), *needed(Int64, "position"))
        op.create_table(table, *key, *columns, sa.PrimaryKeyConstraint("verification_id", "position"))
    op.create_table(
        "measurements",
        sa.Column("verification_id", Int64, sa.ForeignKey("verifications.id"), primary_key=True),
        *needed(TEXT, "baseline"),
        *needed(FLOAT, "candidate_ms", "baseline_ms", "speedup", "speedup_low", "speedup_high"),
        *needed(TEXT, "pace"),
        *needed(FLOAT, "resolution", "aa_spread", "host_ms", "overhead_ms"),
        *needed(Int64, "flush_bytes", "slots"),
        *needed(
            TEXT, "order", "clocks_before", "clocks_after", "candidate_samples_ms", "baseline_samples_ms"
        ),
    )
    times = ["speedup", "speedup_low", "speedup_high", "candidate_ms", "baseline_ms", "pace", "baseline"]
    op.create_index("ix_measurements_leaderboard", "measurements", ["verification_id", *times])
    op.create_table(
        "retractions",
        sa.Column("verification_id", Int64, sa.ForeignKey("verifications.id"), primary_key=True),
        *needed(TEXT, "reason"),
        *needed(MOMENT, "created"),
    )


def m0002_what_the_referee_sees() -> None:
    """What the second referee sees and asks for: numerics, purity, error class, flags, kernels, clocks.

    Rows of before keep NULL, or the default that says what 0.1 did: its commands could ask for nothing else.
    """
    for table in ("runs", "verifications"):
        add(table, *defaulted(TEXT, "fp32", "numerics"), *defaulted(TEXT, "any", "purity"))
        add(table, *defaulted(BOOLEAN, sa.true(), "own_kernel"))
    add("verifications", *optional(TEXT, "error_class", "determinism"))
    add("verifications", *defaulted(TEXT, "[]", "flags"), *optional(TEXT, "kernels"))
    add("measurements", *optional(FLOAT, "inside_ms"), *defaulted(FLOAT, "0", "unseen_ms"))
    add("measurements", *defaulted(TEXT, "[]", "sessions", "calls", "disturbed", "against"))
    add("measurements", *defaulted(BOOLEAN, sa.false(), "launch_bound"))
    add("measurements", *optional(TEXT, "replayed", "roofline"))
    add("builds", *defaulted(FLOAT, "0", "cpu_s"))
    add("builds", *defaulted(TEXT, "full", "route"), *defaulted(TEXT, "", "fallback"))
    _index_verifications("error_class", "flags")


def _index_verifications(*more: str) -> None:
    """The index that covers what the leaderboard reads, with further columns at its end."""
    op.drop_index("ix_verifications_leaderboard", "verifications")
    columns = ["attempt_id", "kind", "status", "backend", "size", "environment_id"]
    columns += ["numerics", "purity", "own_kernel", *more]
    op.create_index("ix_verifications_leaderboard", "verifications", columns)


def m0003_both_clocks_and_more_evidence() -> None:
    """The outer clock of every block.

    Rows of before hold no such times: their list is empty.
    """
    add("measurements", *defaulted(TEXT, "[]", "host_samples_ms"))


def m0004_leases_costs_and_batches() -> None:
    """Leases on questions, keys and costs of answers, batches, and retractions that can be taken back.

    Attempts of before have no question key: their answers are not shared with other runs. Answers of before
    have no cost: nobody asked for it.
    """
    add("attempts", *optional(SHA256, "question_key"))
    op.create_index("ix_attempts_question_key", "attempts", ["question_key"])
    add("responses", *optional(FLOAT, "cost_usd"), *optional(BOOLEAN, "retriable"))
    add_reference("responses", "reused_from", "responses")
    op.create_table(
        "leases",
        sa.Column("key", TEXT, primary_key=True),
        *needed(TEXT, "owner"),
        *needed(FLOAT, "renewed"),
    )
    op.create_table(
        "batches",
        row_id(),
        *needed(TEXT, "owner"),
        *optional(TEXT, "name"),
        *needed(TEXT, "runs", "config", "progress"),
        *needed(FLOAT, "renewed"),
        *optional(TEXT, "ended"),
        *needed(MOMENT, "created"),
        *optional(MOMENT, "finished"),
    )
    op.create_table(
        "server_batches",
        row_id(),
        *needed(TEXT, "server_id", "model"),
        *optional(TEXT, "base_url"),
        *needed(TEXT, "keys"),
        *needed(BOOLEAN, "open"),
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
        row_id(),
        *referring("verifications.id", "verification_id"),
        *needed(BOOLEAN, "counts"),
        *needed(TEXT, "reason"),
        *needed(MOMENT, "created"),
    )
    op.create_index("ix_retractions_verification_id", "retractions", ["verification_id"])
    if old:
        connection.execute(
            sa.text(
                "INSERT INTO retractions (verification_id, counts, reason, created) "
                "VALUES (:verification_id, :counts, :reason, :created)"
            ),
            [{**row._asdict(), "counts": False} for row in old],
        )
    forbid("retractions", "update", "delete", instead=NEVER_CHANGE)


def m0005_why_there_is_no_program() -> None:
    """Why extraction found no program, in words. Rows of before have none."""
    add("candidates", *defaulted(TEXT, "", "reason"))


def m0006_reported_results() -> None:
    """What was reported of programs that were imported."""
    op.create_table(
        "reported_results",
        row_id(),
        *referring("attempts.id", "attempt_id"),
        *needed(TEXT, "source"),
        *optional(TEXT, "said_in"),
        *optional(BOOLEAN, "compiled", "correct"),
        *optional(FLOAT, "runtime_ms", "baseline_ms", "speedup"),
        *optional(TEXT, "device"),
        *referring("texts.sha256", "raw_sha256", null=True),
        *needed(MOMENT, "created"),
    )
    op.create_index("ix_reported_results_attempt_id", "reported_results", ["attempt_id"])
    forbid("reported_results", "update", "delete", instead="import again, never change")


def m0007_scores() -> None:
    """What the leaderboard computes from: rigor, policy and strategy as columns, packed rows, tags of runs.

    The new columns copy what JSON columns hold, so that SQL finds it.
    """
    add("runs", *optional(TEXT, "strategy"))
    add("verifications", *optional(STRING, "rigor"), *optional(TEXT, "policy"))
    add("verifications", *defaulted(BOOLEAN, sa.false(), "screening"))
    add("measurements", *optional(FLOAT, *COPIES))
    for table in ("verifications", "measurements"):
        permit(table, "update")
    _copy_settings(op.get_bind())
    _copy_figures(op.get_bind())
    for table in ("verifications", "measurements"):
        forbid(table, "update", instead=NEVER_CHANGE)
    _index_verifications("error_class", "flags", "rigor", "policy", "screening")
    op.drop_index("ix_measurements_leaderboard", "measurements")
    _score_tables()
    _score_triggers()


COPIES = ("compile_speedup", "compile_speedup_low", "compile_speedup_high", "roofline_fraction")


def _copy_settings(connection: sa.Connection) -> None:
    runs = connection.execute(sa.text("SELECT id, kind, settings FROM runs")).all()
    for run, kind, settings in runs:
        if kind == "generate":
            stored = json.loads(settings)
            usual = "repair" if stored.get("turns", 1) > 1 else "sample"
            strategy = {"strategy": stored.get("strategy") or usual, "id": run}
            connection.execute(sa.text("UPDATE runs SET strategy = :strategy WHERE id = :id"), strategy)
    copy = sa.text(
        "UPDATE verifications SET rigor = :rigor, screening = :screening, policy = :policy WHERE id = :id"
    )
    found = connection.execute(sa.text("SELECT id, settings, verifier FROM verifications"))
    for some in iter(lambda: found.fetchmany(1000), []):
        connection.execute(
            copy,
            [
                {**_settings(settings), "policy": _policy(verifier), "id": number}
                for number, settings, verifier in some
            ],
        )


def _settings(stored: str) -> dict[str, Any]:
    settings = json.loads(stored)
    return {"rigor": settings.get("rigor", "standard"), "screening": settings.get("bar") is not None}


def _policy(verifier: object) -> str | None:
    words = verifier.split() if isinstance(verifier, str) else []
    return next((word.removeprefix("policy:") for word in words if word.startswith("policy:")), None)


def _copy_figures(connection: sa.Connection) -> None:
    copied = ", ".join(f"{name} = :{name}" for name in COPIES)
    copy = sa.text(f"UPDATE measurements SET {copied} WHERE verification_id = :id")
    found = connection.execute(
        sa.text(
            "SELECT verification_id, against, roofline FROM measurements "
            "WHERE against <> '[]' OR roofline IS NOT NULL"
        )
    )
    for some in iter(lambda: found.fetchmany(1000), []):
        connection.execute(
            copy,
            [
                {**dict(zip(COPIES, _copies(against, roofline), strict=True)), "id": number}
                for number, against, roofline in some
            ],
        )


def _copies(against: str | None, roofline: str | None) -> tuple[Any, ...]:
    compiled = next((a for a in json.loads(against or "[]") if a["baseline"] == "compile"), None)
    speedups: tuple[Any, ...] = (None, None, None)
    if compiled is not None:
        interval = compiled["speedup_interval"]
        speedups = compiled["speedup"], interval["low"], interval["high"]
    least = json.loads(roofline) if roofline else None
    return (*speedups, least and least["fraction"])


def _score_tables() -> None:
    op.create_table(
        "run_tags",
        *referring("runs.id", "run_id"),
        *needed(TEXT, "tag"),
        *needed(MOMENT, "created"),
        sa.PrimaryKeyConstraint("run_id", "tag"),
    )
    op.create_table("score_facts", row_id(), *needed(TEXT, "facts"))
    op.create_table(
        "score_cells",
        *referring("runs.id", "run_id"),
        *referring("problems.id", "problem"),
        *needed(Int64, "chunk"),
        *optional(sa.LargeBinary(), "packed"),
        sa.PrimaryKeyConstraint("run_id", "problem", "chunk"),
    )
    _partial_index("score_cells", "unpacked", "packed IS NULL", "run_id", "problem", "chunk")
    op.execute(
        "INSERT INTO score_cells (run_id, problem, chunk) "
        "SELECT DISTINCT run_id, problem, sample / 1024 FROM attempts"
    )


def _partial_index(table: str, name: str, condition: str, *columns: str) -> None:
    """An index of the few rows that meet a condition."""
    where = sa.text(condition)
    op.create_index(f"ix_{table}_{name}", table, list(columns), sqlite_where=where, postgresql_where=where)


def _score_triggers() -> None:
    """What changes an attempt's score empties the cell that it is packed in."""
    after(
        *("INSERT", "attempts", "score_new_attempt"),
        "INSERT INTO score_cells (run_id, problem, chunk) "
        "VALUES (new.run_id, new.problem, new.sample / 1024) "
        "ON CONFLICT (run_id, problem, chunk) DO UPDATE SET packed = NULL "
        "WHERE score_cells.packed IS NOT NULL",
    )
    after(
        *("UPDATE OF status", "attempts", "score_ended_attempt"),
        "UPDATE score_cells SET packed = NULL WHERE run_id = new.run_id AND problem = new.problem "
        "AND chunk = new.sample / 1024 AND packed IS NOT NULL",
    )
    changed = "(SELECT run_id, problem, sample / 1024 FROM attempts WHERE id = {attempt})"
    for event, table, name, attempt in SCORE_CHANGES[2:]:
        after(
            *(event, table, name),
            "UPDATE score_cells SET packed = NULL WHERE (run_id, problem, chunk) = "
            f"{changed.format(attempt=attempt)} AND packed IS NOT NULL",
        )


SCORE_CHANGES = (
    ("INSERT", "attempts", "score_new_attempt", "new.id"),
    ("UPDATE OF status", "attempts", "score_ended_attempt", "new.id"),
    ("INSERT", "responses", "score_new_response", "new.attempt_id"),
    ("INSERT", "verifications", "score_new_verification", "new.attempt_id"),
    (
        *("INSERT", "retractions", "score_new_retraction"),
        "(SELECT attempt_id FROM verifications WHERE id = new.verification_id)",
    ),
)
"""Events that change an attempt's score: event, table, name of the trigger, number of the attempt."""


def m0008_plans_and_repeats() -> None:
    """Which plan an attempt carries out, and which verification another one repeats."""
    add("attempts", *optional(Int64, "plan"))
    add_reference("verifications", "reused_from", "verifications")
    op.create_index("ix_verifications_reused_from", "verifications", ["reused_from"])


def m0009_hash_chain() -> None:
    """The table of a chain of hashes, which is not written any more."""
    op.create_table(
        "hash_chain",
        row_id(),
        *needed(STRING, "record"),
        *needed(Int64, "number"),
        *needed(sa.LargeBinary(), "content", "sha256"),
        *optional(MOMENT, "created"),
    )
    forbid("hash_chain", "update", "delete", instead=NEVER_CHANGE)


def m0010_audits() -> None:
    """Audits of what ranks."""
    op.create_table(
        "audits",
        row_id(),
        *needed(MOMENT, "began"),
        *optional(Int64, "seed"),
        *referring("verifications.id", "verification_id"),
        *referring("verifications.id", "reproduction_id", null=True),
        *needed(STRING, "finding"),
        *needed(TEXT, "reason"),
        *needed(MOMENT, "created"),
    )
    op.create_index("ix_audits_verification_id", "audits", ["verification_id"])
    forbid("audits", "update", "delete", instead=NEVER_CHANGE)


def m0011_service() -> None:
    """The evaluation service: its callers, its queue, its workers."""
    op.create_table(
        "callers",
        sa.Column("name", TEXT, primary_key=True),
        *needed(STRING, "token_sha256"),
        *optional(Int64, "quota"),
        *needed(MOMENT, "created"),
        *optional(MOMENT, "revoked"),
    )
    op.create_table(
        "workers",
        sa.Column("owner", TEXT, primary_key=True),
        *needed(TEXT, "backend", "device"),
        *needed(Int64, "places", "running", "done"),
        *needed(FLOAT, "renewed"),
        *needed(MOMENT, "created"),
        *optional(MOMENT, "ended"),
    )
    op.create_table(
        "evaluations",
        sa.Column("id", TEXT, primary_key=True),
        *needed(TEXT, "caller"),
        *optional(TEXT, "idempotency_key"),
        *needed(STRING, "request_sha256"),
        *optional(TEXT, "label"),
        *needed(Int64, "problem"),
        *needed(SHA256, "text_sha256"),
        *needed(TEXT, "settings"),
        *needed(STRING, "backend"),
        *needed(Int64, "priority"),
        *needed(FLOAT, "submitted"),
        *optional(FLOAT, "deadline"),
        *needed(STRING, "state"),
        *needed(Int64, "token"),
        *optional(TEXT, "owner"),
        *optional(FLOAT, "leased", "started", "finished"),
        *optional(Int64, "attempt_id"),
        *needed(BOOLEAN, "reused"),
        *optional(TEXT, "error"),
        *needed(BOOLEAN, "infrastructure"),
        *needed(Int64, "late_verdicts"),
        sa.ForeignKeyConstraint(["problem"], ["problems.id"], name="fk_evaluations_problem_problems"),
        sa.ForeignKeyConstraint(["text_sha256"], ["texts.sha256"], name="fk_evaluations_text_sha256_texts"),
        sa.ForeignKeyConstraint(["attempt_id"], ["attempts.id"], name="fk_evaluations_attempt_id_attempts"),
        sa.UniqueConstraint("caller", "idempotency_key", name="uq_evaluations_idempotency"),
    )
    op.create_index("ix_evaluations_queue", "evaluations", ["state", "priority", "submitted"])
    op.create_index("ix_evaluations_request", "evaluations", ["request_sha256", "state"])


def m0012_builders() -> None:
    """Builders beside judges: evaluations that are built, what was built, and indexes for a long queue."""
    add("evaluations", *optional(SHA256, "artefact"), *optional(FLOAT, "built"))
    add("evaluations", *defaulted(Int64, "0", "rebuilds", "late_builds"))
    add("workers", *defaulted(STRING, "all", "role"))
    op.create_table(
        "artefacts",
        sa.Column("key", SHA256, primary_key=True),
        *needed(SHA256, "sha256"),
        *needed(BOOLEAN, "timed_out"),
        *needed(FLOAT, "created"),
    )
    op.create_index("ix_artefacts_sha256", "artefacts", ["sha256"])
    op.drop_index("ix_evaluations_queue", "evaluations")
    order = ["state", "backend", "priority", "submitted", "id"]
    op.create_index("ix_evaluations_order", "evaluations", order)
    op.create_index("ix_evaluations_caller", "evaluations", ["state", "caller"])
    op.create_index("ix_evaluations_finished", "evaluations", ["state", "finished"])
    _partial_index("evaluations", "deadline", "deadline IS NOT NULL", "state", "deadline")
    late = "late_verdicts > 0 OR late_builds > 0"
    _partial_index("evaluations", "late", late, "late_verdicts", "late_builds")


def m0013_gpus() -> None:
    """GPUs of the evaluation service: which judge holds which, and which are set aside."""
    op.create_table(
        "gpus",
        sa.Column("uuid", TEXT, primary_key=True),
        *needed(TEXT, "name", "host"),
        *optional(TEXT, "owner"),
        *needed(Int64, "token"),
        *optional(FLOAT, "leased"),
        *needed(FLOAT, "renewed"),
        *optional(TEXT, "set_aside"),
        *needed(BOOLEAN, "unproven"),
        *needed(MOMENT, "created"),
    )
    add("workers", *optional(TEXT, "gpu", "waits"))
    add("evaluations", *defaulted(Int64, "0", "bad_gpus"))


def m0014_losses() -> None:
    """How often daemons were lost with an evaluation, and how often that may happen."""
    add("evaluations", *defaulted(Int64, "0", "losses"), *defaulted(Int64, "5", "most_losses"))


def m0015_held() -> None:
    """An index of the evaluations that daemons have: few, however long the queue is."""
    op.execute("UPDATE evaluations SET leased = NULL WHERE state NOT IN ('building', 'running')")
    _partial_index("evaluations", "held", "leased IS NOT NULL", "owner", "leased", "state")


def m0016_unresolved_because() -> None:
    """Why a pace is unresolved. Rows that were stored before have no reason, and keep their pace."""
    add("measurements", *optional(AnyText(), "unresolved_because"))


def m0017_current_policy() -> None:
    """The policy under which results rank, for views that cannot ask the program."""
    op.create_table("current_policy", sa.Column("policy", TEXT, primary_key=True))


def m0018_artefacts_by_key() -> None:
    """Artefacts are found in their store by key: no table of them, and judges build what is lost."""
    op.drop_table("artefacts")
    op.drop_column("evaluations", "rebuilds")


def m0019_changed_samples() -> None:
    """The leaderboard packs the samples that changed, and not all the rows that lie in a cell with them."""
    op.create_table(
        "score_changes",
        *needed(Int64, "run_id", "problem", "sample"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_score_changes_run_id"),
        sa.ForeignKeyConstraint(["problem"], ["problems.id"], name="fk_score_changes_problem"),
        sa.PrimaryKeyConstraint("run_id", "problem", "sample", name="pk_score_changes"),
    )
    for event, table, name, attempt in SCORE_CHANGES:
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


Step = Callable[[], None]
STEPS: dict[str, Step] = {
    name.removeprefix("m"): step
    for name, step in sorted(globals().items())
    if name.startswith("m0") and callable(step)
}
"""All migrations by their names, the oldest first."""
_VERSION = sa.Table(
    "alembic_version",
    sa.MetaData(),
    sa.Column("version_num", sa.String(32), nullable=False),
    sa.PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)


def later_than(version: str | None) -> dict[str, Step]:
    """The migrations that a database of this version lacks; None: an empty one. Raises ValueError for a
    version that is not known."""
    names = list(STEPS)
    return {name: STEPS[name] for name in names[0 if version is None else names.index(version) + 1 :]}


def migrate(connection: sa.Connection, found: str | None, to: str) -> None:
    """The migrations after `found`, up to `to`, in the transaction that `connection` is in. One thread at a
    time: alembic's context is one for the process."""
    with Operations.context(MigrationContext.configure(connection, opts={"target_metadata": Base.metadata})):
        for name, step in later_than(found).items():
            if name <= to:
                step()
    _VERSION.create(connection, checkfirst=True)
    connection.execute(_VERSION.delete())
    connection.execute(_VERSION.insert().values(version_num=to))
