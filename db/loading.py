"""Rows back into nouns: everything stored about one attempt. Callers hold the transaction."""

from __future__ import annotations

import json
from typing import Any, TypeVar, cast

from pydantic import ValidationError
from sqlalchemy import inspect, select
from sqlalchemy.orm import Session

from kernelproof.db import models, reported
from kernelproof.db.base import Base
from kernelproof.db.retraction import Retraction
from kernelproof.db.texts import Library
from kernelproof.db.views import StoredAttempt, StoredResponse, StoredVerification, VerificationKind
from kernelproof.errors import StoreError, UsageError
from kernelproof.hashing import sha256_json
from kernelproof.types import (
    AttemptKey,
    Build,
    Candidate,
    Check,
    Environment,
    Extraction,
    Finding,
    Interval,
    Measurement,
    Problem,
    Prompt,
    Response,
    RunSettings,
    Status,
    Usage,
    Verification,
)
from kernelproof.types.backend_name import STORED
from kernelproof.types.explain import explain

Row = TypeVar("Row", bound=Base)


def load_attempt(session: Session, attempt_id: int) -> StoredAttempt:
    """The attempt; a text that was altered since it was stored is read as it is now and named in
    `alterations`.

    Raises UsageError when there is no such attempt, StoreError when its rows make no sense.
    """
    row = session.get(models.Attempt, attempt_id)
    if row is None:
        raise UsageError(f"there is no attempt {attempt_id}; kernelproof leaderboard lists attempts")
    try:
        return _attempt(session, row)
    except (ValidationError, json.JSONDecodeError) as error:
        told = explain(error) if isinstance(error, ValidationError) else error
        raise StoreError(
            f"attempt {attempt_id} cannot be read: edited, or written by another version ({told})"
        ) from error


def _attempt(session: Session, row: models.Attempt) -> StoredAttempt:
    texts = Library(session)
    problem = problem_of(session.get_one(models.Problem, row.problem), texts)
    stored: dict[str, Any] = {
        "run": _run(session.get_one(models.Run, row.run_id), texts),
        "prompt": _prompt(session.get_one(models.Prompt, row.prompt), texts) if row.prompt else None,
        "responses": tuple(_response(r, texts) for r in _rows(session, models.Response, row.id)),
        "extraction": _extraction(session, row.id, texts),
        "verifications": tuple(
            _stored_verification(session, v, texts) for v in _rows(session, models.Verification, row.id)
        ),
        "reported": reported.newest(session, row.id, texts),
    }
    return StoredAttempt(
        id=row.id,
        run_id=row.run_id,
        key=AttemptKey(
            problem_id=problem.id, problem_sha256=problem.sha256, sample=row.sample, turn=row.turn
        ),
        problem=problem,
        parent_id=row.parent_id,
        plan=row.plan,
        status=Status(row.status) if row.status else None,
        created=row.created,
        finished=row.finished,
        alterations=tuple(texts),
        **stored,
    )


def _rows(
    session: Session, model: type[models.Response] | type[models.Verification], attempt_id: int
) -> list[Any]:
    return list(session.scalars(select(model).where(model.attempt_id == attempt_id).order_by(model.id)))


def _parts(session: Session, model: type[Row], verification_id: int) -> list[Row]:
    table = cast(Any, model)
    query = select(model).where(table.verification_id == verification_id).order_by(table.position)
    return list(session.scalars(query))


def _columns(row: Base, *without: str) -> dict[str, Any]:
    """The row's columns by name."""
    names = [attribute.key for attribute in inspect(type(row)).column_attrs]
    return {name: getattr(row, name) for name in names if name not in without}


def _run(row: models.Run, texts: Library) -> RunSettings:
    if sha256_json(row.settings) != row.key:
        texts.note(f"run settings: altered, their SHA-256 should be {row.key}")
    return RunSettings.model_validate(row.settings, context=STORED)


def problem_of(row: models.Problem, texts: Library) -> Problem:
    """The problem of a row."""
    columns = _columns(row, "id", "problem_id")
    return Problem(id=row.problem_id, source=texts.get(row.sha256, "problem source"), **columns)


def _prompt(row: models.Prompt, texts: Library) -> Prompt:
    return Prompt(
        template=row.template,
        template_sha256=row.template_sha256,
        system=texts.get(row.system_sha256, "prompt's system text"),
        user=texts.get(row.user_sha256, "prompt's user text"),
        history=texts.get_json(row.history_sha256, "prompt history", ()),
        sha256=row.sha256,
    )


def _response(row: models.Response, texts: Library) -> StoredResponse:
    if row.error is not None:
        return StoredResponse(response=None, error=row.error, retriable=row.retriable, created=row.created)
    usage = Usage(**{name: getattr(row, name) for name in Usage.model_fields})
    response = Response(
        text=texts.get_optional(row.text_sha256, "response text"),
        reasoning=texts.get_optional(row.reasoning_sha256, "response reasoning"),
        refusal=row.refusal,
        finish_reason=row.finish_reason,
        usage=None if usage == Usage() else usage,
        request_id=row.request_id,
        served_model=row.served_model,
        system_fingerprint=row.system_fingerprint,
        latency_s=row.latency_s,
        cost_usd=row.cost_usd,
        raw=texts.get_json(row.raw_sha256, "raw response", {}),
    )
    return StoredResponse(
        response=response, error=None, reused=row.reused_from is not None, created=row.created
    )


def _extraction(session: Session, attempt_id: int, texts: Library) -> Extraction | None:
    row = newest_candidate(session, attempt_id)
    return None if row is None else extraction_of(row, texts)


def newest_candidate(session: Session, attempt_id: int) -> models.Candidate | None:
    """The row of the attempt's newest extraction."""
    c = models.Candidate
    return session.scalars(select(c).where(c.attempt_id == attempt_id).order_by(c.id.desc()).limit(1)).first()


def extraction_of(row: models.Candidate, texts: Library) -> Extraction:
    """The extraction that a row holds."""
    candidate = None
    if row.source_sha256 is not None:
        source = texts.get(row.source_sha256, "candidate source")
        candidate = Candidate(source=source, sha256=row.source_sha256)
    span = None if row.span_start is None or row.span_end is None else (row.span_start, row.span_end)
    return Extraction(
        candidate=candidate,
        status=Status(row.status) if row.status else None,
        reason=row.reason,
        method=row.method,
        warnings=tuple(row.warnings),
        span=span,
    )


def _stored_verification(session: Session, row: models.Verification, texts: Library) -> StoredVerification:
    t = Retraction
    newest = select(t).where(t.verification_id == row.id).order_by(t.id.desc()).limit(1)
    retraction = session.scalars(newest).first()
    return StoredVerification(
        id=row.id,
        kind=cast(VerificationKind, row.kind),
        created=row.created,
        reused_from=row.reused_from,
        retracted=retraction.reason if retraction and not retraction.counts else None,
        verification=_verification(session, row, texts),
    )


def _verification(session: Session, row: models.Verification, texts: Library) -> Verification:
    measurement = session.get(models.Measurement, row.id)
    own = _columns(
        row,
        *("id", "attempt_id", "kind", "environment_id", "sandbox_tier", "details_sha256"),
        *("backend", "size", "numerics", "purity", "own_kernel", "rigor", "screening"),  # `settings` has them
        *("policy", "reused_from"),  # `verifier` has the policy
    )
    parts = {
        "environment": _environment(session, row.environment_id, texts),
        "builds": tuple(_build(b, texts) for b in _parts(session, models.Build, row.id)),
        "findings": tuple(Finding(**_evidence(f)) for f in _parts(session, models.Finding, row.id)),
        "checks": tuple(Check(**_evidence(c)) for c in _parts(session, models.Check, row.id)),
        "measurement": _measurement(measurement) if measurement else None,
        "details": texts.get_optional(row.details_sha256, "verification details") or "",
    }
    return Verification.model_validate({**parts, **own}, context=STORED)


def _evidence(row: Base) -> dict[str, Any]:
    return _columns(row, "verification_id", "position")


def _build(row: models.Build, texts: Library) -> Build:
    log = texts.get_optional(row.log_sha256, "build log") or ""
    return Build(log=log, **_columns(row, "verification_id", "position", "log_sha256"))


def _environment(session: Session, environment_id: int | None, texts: Library) -> Environment | None:
    if environment_id is None:
        return None
    row = session.get_one(models.Environment, environment_id)
    if sha256_json(row.facts) != row.fingerprint:
        texts.note(f"environment: altered, its SHA-256 should be {row.fingerprint}")
    return Environment.model_validate(row.facts)


def _measurement(row: models.Measurement) -> Measurement:
    interval = Interval(low=row.speedup_low, high=row.speedup_high)
    copied = [name for name in _columns(row) if name.startswith("compile_")]  # from the JSON columns
    columns = _columns(row, "verification_id", "speedup_low", "speedup_high", "roofline_fraction", *copied)
    return Measurement(speedup_interval=interval, **columns)
