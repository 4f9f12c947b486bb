"""The columns of `parquet` and `huggingface`: one row for each attempt and setting.

Where the view `attempts_flat` has a column of the same name, it means the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kernelproof.db.sql_views import VIEWS
from kernelproof.report.board_columns import Field
from kernelproof.report.export.gathering import Row
from kernelproof.types.measurement import resolved
from kernelproof.version import policy_of

_FLAT = next(view.columns for view in VIEWS if view.name == "attempts_flat")


def _of(name: str, kind: type, get: Callable[[Row], Any], meaning: str = "") -> Field:
    return Field(name, kind, meaning or _FLAT[name].replace("NULL", "null"), get)


def _measured(name: str, kind: type, get: Callable[[Any], Any], meaning: str = "") -> Field:
    def cell(row: Row) -> Any:
        return None if row.measured is None else get(row.measured)

    return _of(name, kind, cell, meaning)


def _judged(name: str, kind: type, get: Callable[[Any], Any], meaning: str = "") -> Field:
    def cell(row: Row) -> Any:
        return None if row.judged is None else get(row.judged.verification)

    return _of(name, kind, cell, meaning)


def _used(name: str, meaning: str) -> Field:
    def cell(row: Row) -> Any:
        response = row.attempt.response
        return getattr(response.usage, name) if response and response.usage else None

    return _of(name, int, cell, meaning)


def _compiled(measurement: Any) -> float | None:
    found = next((each for each in measurement.against if each.baseline == "compile"), None)
    return None if found is None else float(found.speedup)


FIELDS = [
    _of("attempt_id", int, lambda row: row.attempt.id),
    _of("verification_id", int, lambda row: row.judged.id if row.judged else None),
    _of("run_id", int, lambda row: row.attempt.run_id),
    _of("run", str, lambda row: row.attempt.run.name),
    _of("kind", str, lambda row: row.attempt.run.kind),
    _of("model", str, lambda row: row.attempt.run.model),
    _of("template", str, lambda row: row.attempt.run.template),
    _of(
        "strategy",
        str,
        lambda row: row.attempt.run.strategy_name if row.attempt.run.kind == "generate" else None,
    ),
    _of("problem_id", str, lambda row: row.attempt.problem.id),
    _of("problem_sha256", str, lambda row: row.attempt.problem.sha256),
    _of("suite", str, lambda row: row.attempt.problem.suite),
    _of("level", int, lambda row: row.attempt.problem.level),
    _of("problem", str, lambda row: row.attempt.problem.name),
    _of("sample", int, lambda row: row.attempt.key.sample),
    _of("turn", int, lambda row: row.attempt.key.turn),
    _of(
        "parent_id", int, lambda row: row.attempt.parent_id, "The attempt that this one repairs or improves."
    ),
    _of(
        "decides",
        bool,
        lambda row: row.decides,
        "Whether the sample counts by this attempt: by its fastest correct turn, else by its last turn.",
    ),
    _of("created", str, lambda row: row.attempt.created),
    _of("status", str, lambda row: row.status.value, "How the attempt ended."),
    _of("reason", str, lambda row: row.reason, "The reason, in a sentence; it may quote the program."),
    _of(
        "judged",
        bool,
        lambda row: row.status.counts_against_model,
        "Whether it was judged, as correct or not: the denominator of rates.",
    ),
    _of("built", bool, lambda row: row.built, "Whether the candidate was built, or needed no build."),
    _of("correct", bool, lambda row: row.status.value == "correct", "Whether it is correct."),
    _of("backend", str, lambda row: row.setting.backend),
    _of("size", str, lambda row: row.setting.size),
    _of("device", str, lambda row: row.setting.device),
    _of("numerics", str, lambda row: row.setting.numerics),
    _of("purity", str, lambda row: row.setting.purity),
    _of("own_kernel", bool, lambda row: row.setting.own_kernel),
    _judged("rigor", str, lambda v: v.settings.rigor),
    _judged("policy", str, lambda v: policy_of(v.verifier)),
    _judged("error_class", str, lambda v: v.error_class),
    _judged("flags", str, lambda v: " ".join(v.flags), "The flags, with spaces between them."),
    _measured("speedup", float, lambda m: m.speedup),
    _measured("speedup_low", float, lambda m: m.speedup_interval.low),
    _measured("speedup_high", float, lambda m: m.speedup_interval.high),
    _measured("pace", str, lambda m: m.pace.value),
    _measured("counted_speedup", float, lambda m: resolved(m.speedup, m.pace)),
    _measured("ranking_speedup", float, lambda m: m.claimed),
    _measured("candidate_ms", float, lambda m: m.candidate_ms),
    _measured("baseline_ms", float, lambda m: m.baseline_ms),
    _measured("compile_speedup", float, _compiled),
    _measured("roofline_fraction", float, lambda m: m.roofline.fraction if m.roofline else None),
    _used("prompt_tokens", "Tokens of the question, as the server counted them; null for unknown."),
    _used("completion_tokens", "Tokens of the answer, thoughts included; null for unknown."),
    _of(
        "cost_usd",
        float,
        lambda row: row.attempt.response.cost_usd if row.attempt.response else None,
        "Cost of the answer in US dollars; null for unknown.",
    ),
    _of("messages", list, lambda row: row.messages, "The question: messages with `role` and `content`."),
    _of("response", str, lambda row: row.answer, "The answer's text, as it came."),
    _of(
        "reasoning",
        str,
        lambda row: row.attempt.response.reasoning if row.attempt.response else None,
        "The answer's thoughts, where the server sent them apart.",
    ),
    _of("source", str, lambda row: row.attempt.source, "The program that was found in the answer."),
    _of("reference", str, lambda row: row.attempt.problem.source, "The source of the problem's reference."),
    _of(
        "audit",
        str,
        lambda row: row.audit.finding.value if row.audit else None,
        "The finding of the verification's newest audit: `same` and `faster` confirm it; null where it was "
        "never audited.",
    ),
    _of(
        "audited",
        str,
        lambda row: row.audit.created if row.audit else None,
        "When that audit was stored (UTC, ISO 8601).",
    ),
]
"""Columns are only ever added."""
