"""Writes the rows of runs, attempts and verifications. Callers hold the transaction.

`ensure_*` adds a row unless it is there, and returns its id; `unsaved_*` makes one for the caller to insert.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any, cast

from sqlalchemy import Table, bindparam, func, select
from sqlalchemy.orm import Session

from kernelproof.db import models
from kernelproof.db.columns import utc_now
from kernelproof.db.models import Base
from kernelproof.db.rows import add_missing, insert, keep, keep_optional
from kernelproof.db.views import VerificationKind
from kernelproof.types import (
    Environment,
    Extraction,
    Measurement,
    Problem,
    Prompt,
    Response,
    RunSettings,
    Usage,
    Verification,
)
from kernelproof.version import policy_of


def ensure_run(session: Session, settings: RunSettings) -> int:
    columns = settings.model_dump(
        include={"name", "kind", "model", "base_url", "template", "template_sha256", "turns"}
    )
    return _ensure(
        session,
        models.Run,
        {"key": settings.key},
        settings=settings.model_dump(mode="json"),
        created=utc_now(),
        strategy=settings.strategy_name if settings.kind == "generate" else None,
        **columns,
        **settings.verify.setting.rules,
    )


def _ensure(session: Session, table: Any, key: dict[str, Any], /, **columns: Any) -> int:
    """The id of the row whose `key` columns these are, added with the other columns when it is not there."""
    known = session.connection().execute(_number(table, *key), key).scalar()
    if known is not None:
        return int(known)
    add_missing(session, table, **key, **columns)
    return int(session.connection().execute(_number(table, *key), key).scalar_one())


@cache
def _number(table: Any, *key: str) -> Any:
    """Asks for the `id` of the row with these columns."""
    columns = table.__table__.c
    return select(columns.id).where(*(columns[name] == bindparam(name) for name in key))


def ensure_problem(session: Session, problem: Problem) -> int:
    """A problem is known by its id and its source."""
    key = {"problem_id": problem.id, "sha256": problem.sha256}
    known = session.connection().execute(_number(models.Problem, *key), key).scalar()
    if known is not None:
        return int(known)
    keep(session, problem.source)
    return _ensure(session, models.Problem, key, **problem.model_dump(exclude={"id", "sha256", "source"}))


def problem_number(session: Session, problem_id: str, sha256: str) -> int:
    p = models.Problem
    return session.scalars(select(p.id).where(p.problem_id == problem_id, p.sha256 == sha256)).one()


def ensure_prompt(session: Session, prompt: Prompt) -> int:
    columns = {
        **prompt.model_dump(include={"sha256", "template", "template_sha256"}),
        "system_sha256": keep(session, prompt.system),
        "user_sha256": keep(session, prompt.user),
        "history_sha256": keep(session, json.dumps(prompt.history)),
    }
    return _ensure(session, models.Prompt, columns)


def unsaved_response(session: Session, response: Response) -> models.Response:
    """An answer; attempt, ordinal and time are for the caller to set."""
    return models.Response(
        raw_sha256=keep(session, json.dumps(response.raw)),
        text_sha256=keep_optional(session, response.text),
        reasoning_sha256=keep_optional(session, response.reasoning),
        **response.model_dump(exclude={"raw", "text", "reasoning", "usage"}),
        **(response.usage or Usage()).model_dump(),
    )


def unsaved_candidate(session: Session, attempt_id: int, extraction: Extraction) -> models.Candidate:
    start, end = extraction.span or (None, None)
    return models.Candidate(
        attempt_id=attempt_id,
        source_sha256=keep_optional(session, extraction.candidate.source if extraction.candidate else None),
        **extraction.model_dump(exclude={"candidate", "span"}),
        span_start=start,
        span_end=end,
        created=utc_now(),
    )


def ensure_environment(session: Session, environment: Environment) -> int:
    gpu = environment.gpu
    columns = environment.model_dump(
        include={"driver", "cuda", "torch", "python", "nvcc", "cxx", "cpu", "host_sha256", "kernelproof"}
    )
    return _ensure(
        session,
        models.Environment,
        {"fingerprint": environment.fingerprint},
        device_name=environment.device_name,
        gpu_name=gpu.name if gpu else None,
        gpu_uuid=gpu.uuid if gpu else None,
        facts=environment.model_dump(mode="json"),
        **columns,
    )


def add_verification(
    session: Session,
    attempt_id: int,
    verification: Verification,
    kind: VerificationKind = "first",
    reused_from: int | None = None,
) -> int:
    """Appends a verification with all its evidence and returns its id. The attempt's status stays.

    `reused_from`: the attempt of the same program whose verification this is; nothing was run for it.
    """
    v = verification
    row = models.Verification(
        attempt_id=attempt_id,
        kind=kind,
        reused_from=None if reused_from is None else _repeated(session, reused_from, v),
        environment_id=ensure_environment(session, v.environment) if v.environment else None,
        sandbox_tier=v.sandbox.tier if v.sandbox else None,
        sandbox=v.sandbox.model_dump() if v.sandbox else None,
        settings=v.settings.model_dump(),
        rigor=v.settings.rigor,
        screening=v.settings.bar is not None,
        policy=policy_of(v.verifier),
        errors=[statistics.model_dump() for statistics in v.errors],
        details_sha256=keep(session, v.details) if v.details else None,
        **v.model_dump(
            exclude={
                *("settings", "environment", "sandbox", "errors", "details"),
                *("findings", "builds", "checks", "measurement"),
            }
        ),
        **v.settings.setting.rules,
    )
    number = insert(session, row)
    _add_evidence(session, number, v)
    return number


def _repeated(session: Session, attempt_id: int, verification: Verification) -> int | None:
    """The row of an attempt's verification, as it was made: of a repeat, the row that it repeats."""
    v = models.Verification
    return session.scalars(
        select(func.coalesce(v.reused_from, v.id))
        .where(v.attempt_id == attempt_id, v.kind != "reproduce", v.created == verification.created)
        .order_by(v.id.desc())
        .limit(1)
    ).first()


def alike(session: Session, verification_id: int) -> list[int]:
    """The rows of one verification: that which was made, and those that repeat it."""
    v = models.Verification
    made = session.scalars(select(func.coalesce(v.reused_from, v.id)).where(v.id == verification_id)).one()
    return list(session.scalars(select(v.id).where((v.id == made) | (v.reused_from == made)).order_by(v.id)))


def _add_evidence(session: Session, verification_id: int, v: Verification) -> None:
    logs = [keep(session, build.log) if build.log else None for build in v.builds]
    builds = (build.model_dump(exclude={"log"}) for build in v.builds)
    _add_parts(
        session,
        models.Build,
        verification_id,
        [{"log_sha256": log, **columns} for log, columns in zip(logs, builds, strict=True)],
    )
    _add_parts(session, models.Finding, verification_id, [each.model_dump() for each in v.findings])
    _add_parts(session, models.Check, verification_id, [each.model_dump() for each in v.checks])
    if v.measurement is not None:
        insert(session, _measurement(verification_id, v.measurement))


def _add_parts(
    session: Session, table: type[Base], verification_id: int, parts: list[dict[str, Any]]
) -> None:
    """Rows of evidence, in one statement: there are dozens, and nobody asks for the objects."""
    rows = [
        {"verification_id": verification_id, "position": position, **part}
        for position, part in enumerate(parts)
    ]
    if rows:
        session.connection().execute(cast(Table, table.__table__).insert(), rows)


def _measurement(verification_id: int, measurement: Measurement) -> models.Measurement:
    interval = measurement.speedup_interval
    compiled = next((found for found in measurement.against if found.baseline == "compile"), None)
    return models.Measurement(
        verification_id=verification_id,
        compile_speedup=compiled and compiled.speedup,
        compile_speedup_low=compiled and compiled.speedup_interval.low,
        compile_speedup_high=compiled and compiled.speedup_interval.high,
        roofline_fraction=measurement.roofline and measurement.roofline.fraction,
        speedup_low=interval.low,
        speedup_high=interval.high,
        **measurement.model_dump(exclude={"speedup_interval"}),
    )
