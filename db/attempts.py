"""Attempts: begun, leased, given another attempt's answer. Callers hold the transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    JSON,
    ColumnElement,
    Double,
    Text,
    bindparam,
    cast,
    exists,
    func,
    select,
    true,
    type_coerce,
)
from sqlalchemy.orm import InstrumentedAttribute, Session, aliased

from kernelproof.db import leases, models, records
from kernelproof.db.columns import utc_now
from kernelproof.db.models import Retraction
from kernelproof.db.rows import insert, record_of
from kernelproof.db.views import AttemptLease, AttemptState, Content, ModelUsage, Spent
from kernelproof.types import (
    AttemptKey,
    Extraction,
    Problem,
    Prompt,
    Response,
    RunSettings,
    Status,
    Verification,
)
from kernelproof.types.verification import OFF_DEVICE

COPIED = (
    *("raw_sha256", "text_sha256", "reasoning_sha256", "refusal", "finish_reason", "request_id"),
    *("served_model", "system_fingerprint", "prompt_tokens", "completion_tokens", "reasoning_tokens"),
    *("cached_tokens", "latency_s", "cost_usd"),
)
"""The columns that a repeated answer has in common with the one it repeats."""


def begin(
    session: Session,
    run_id: int,
    key: AttemptKey,
    prompt: Prompt | None = None,
    parent_id: int | None = None,
    question_key: str | None = None,
    plan: int | None = None,
) -> models.Attempt:
    """The attempt's row, made when there is none.

    A prompt rendered anew replaces the stored one only as long as no answer to it is stored.
    """
    a = models.Attempt
    problem = records.problem_number(session, key.problem_id, key.problem_sha256)
    prompt_id = records.ensure_prompt(session, prompt) if prompt else None
    row = session.scalars(
        select(a).where(a.run_id == run_id, a.problem == problem, a.sample == key.sample, a.turn == key.turn)
    ).one_or_none()
    if row is None:
        row = a(run_id=run_id, problem=problem, sample=key.sample, turn=key.turn, created=utc_now())
        row.prompt, row.parent_id, row.question_key, row.plan = prompt_id, parent_id, question_key, plan
        session.add(row)
    elif prompt_id is not None and not session.scalar(select(has_response()).where(a.id == row.id)):
        row.prompt, row.parent_id, row.question_key, row.plan = prompt_id, parent_id, question_key, plan
    session.flush()
    return row


def lease(session: Session, row: models.Attempt, owner: str) -> AttemptLease:
    """Takes the lease of an attempt, and an answer that another attempt has to the same question."""
    key = lease_key(row)
    granted = leases.take(session, key, owner)
    reused = granted and _reuse(session, row)
    session.flush()
    return AttemptLease(state=state_of(session, row), key=key, granted=granted, reused=reused)


def lease_key(row: models.Attempt) -> str:
    return row.question_key or f"attempt:{row.id}"


def _reuse(session: Session, row: models.Attempt) -> bool:
    """Repeats the first answer of another attempt with the same question key, where this one has none."""
    a, r = models.Attempt, models.Response
    if row.question_key is None or session.scalar(select(has_response()).where(a.id == row.id)):
        return False
    found = session.scalars(
        select(r)
        .join(a, a.id == r.attempt_id)
        .where(a.question_key == row.question_key, r.error.is_(None), r.reused_from.is_(None))
        .order_by(r.id)
        .limit(1)
    ).first()
    if found is None:
        return False
    copied = models.Response(reused_from=found.id, **{name: getattr(found, name) for name in COPIED})
    append(session, row.id, copied)
    return True


def append(session: Session, attempt_id: int, row: models.Response) -> None:
    newest = session.connection().execute(_NEWEST_ORDINAL, {"attempt": attempt_id}).scalar()
    row.attempt_id, row.ordinal, row.created = attempt_id, (newest or 0) + 1, utc_now()
    insert(session, row)


_NEWEST_ORDINAL = select(func.max(models.Response.ordinal)).where(
    models.Response.attempt_id == bindparam("attempt")
)


def state_of(session: Session, row: models.Attempt) -> AttemptState:
    found = session.execute(select(*state_facts()).where(models.Attempt.id == row.id)).one()
    return state_from(row, *found)


def state_facts() -> tuple[Any, ...]:
    """The columns, beside an attempt's own, from which `state_from` makes its state."""
    return has_response(), has_candidate(), has_verification(), final_error()


def state_from(
    row: models.Attempt, response: bool, candidate: bool, verification: bool, final: bool
) -> AttemptState:
    """An attempt's state from its row and its `state_facts`."""
    return AttemptState(
        id=row.id,
        status=Status(row.status) if row.status else None,
        has_response=response,
        has_candidate=bool(candidate),
        has_verification=verification,
        retriable=not final,
    )


def states(session: Session, run_id: int) -> dict[AttemptKey, AttemptState]:
    a, p = models.Attempt, models.Problem
    query = (
        select(a, p.problem_id, p.sha256, *state_facts()).join(p, p.id == a.problem).where(a.run_id == run_id)
    )
    found = {}
    for row, problem_id, sha256, *facts in session.execute(query):
        key = AttemptKey(problem_id=problem_id, problem_sha256=sha256, sample=row.sample, turn=row.turn)
        found[key] = state_from(row, *facts)
    return found


def by_content(session: Session, run_id: int, text_sha256: str | None = None) -> dict[Content, list[int]]:
    """The attempts of a run that are over, by what was given; oldest first where several were given it.

    For runs of kind `verify` and `tune`, whose attempts have one answer and one extraction each.
    `text_sha256`: only attempts that were given this text.
    """
    a, p, r, c = models.Attempt, models.Problem, models.Response, models.Candidate
    query = (
        select(a.id, p.problem_id, p.sha256, r.text_sha256, c.source_sha256, c.status)
        .join(p, p.id == a.problem)
        .join(r, r.attempt_id == a.id)
        .join(c, c.attempt_id == a.id)
        .where(a.run_id == run_id, a.status.is_not(None))
        .order_by(a.id)
    )
    if text_sha256 is not None:
        query = query.where(r.text_sha256 == text_sha256)
    ids: dict[Content, list[int]] = {}
    for number, problem_id, problem_sha256, text, source, none in session.execute(query):
        content = Content(problem_id, problem_sha256, text, source, none)
        ids.setdefault(content, []).append(number)
    return ids


def has_response() -> ColumnElement[bool]:
    r = models.Response
    return exists().where(r.attempt_id == models.Attempt.id, r.error.is_(None)).correlate(models.Attempt)


def has_candidate() -> ColumnElement[bool]:
    """NULL when nothing was extracted yet; else whether the newest extraction found a program."""
    c = models.Candidate
    return (
        select(c.source_sha256.is_not(None))
        .where(c.attempt_id == models.Attempt.id)
        .order_by(c.id.desc())
        .limit(1)
        .correlate(models.Attempt)
        .scalar_subquery()
    )


def has_verification() -> ColumnElement[bool]:
    v = models.Verification
    return (
        exists()
        .where(v.attempt_id == models.Attempt.id, v.kind != "reproduce", ~retracted(v.id))
        .correlate(models.Attempt)
    )


def final_error() -> ColumnElement[bool]:
    """True when the newest thing the provider said is an error that asking again cannot mend; else NULL or
    False."""
    r = models.Response
    return (
        select(r.error.is_not(None) & r.retriable.is_(False))
        .where(r.attempt_id == models.Attempt.id)
        .order_by(r.ordinal.desc())
        .limit(1)
        .correlate(models.Attempt)
        .scalar_subquery()
    )


def retracted(verification_id: ColumnElement[int] | InstrumentedAttribute[int]) -> ColumnElement[bool]:
    """Whether the newest word on a verification is that it no longer counts."""
    t = Retraction
    newest = (
        select(t.counts)
        .where(t.verification_id == verification_id)
        .order_by(t.id.desc())
        .limit(1)
        .scalar_subquery()
    )
    return func.coalesce(newest, True).is_(False)


def spent(session: Session, run_ids: Sequence[int]) -> Spent:
    """Tokens and money that the answers of these runs took, and seconds of the device. Reused answers cost
    nothing."""
    a, r = models.Attempt, models.Response
    counts = (r.prompt_tokens, r.cached_tokens, r.completion_tokens, r.reasoning_tokens, r.cost_usd)
    asked = func.count(r.id)
    columns: list[Any] = [func.coalesce(func.sum(column), 0).label(column.key) for column in counts]
    columns += [
        asked.label("answers"),
        (asked - func.count(r.cost_usd)).label("unknown_cost"),
        (asked - func.count(r.completion_tokens)).label("unknown_tokens"),
    ]
    query = (
        select(*columns)
        .join(a, a.id == r.attempt_id)
        .where(a.run_id.in_(run_ids), r.error.is_(None), r.reused_from.is_(None))
    )
    return record_of(Spent, session.execute(query).one(), device_s=_device_seconds(session, run_ids))


def _device_seconds(session: Session, run_ids: Sequence[int]) -> float:
    """`Verification.device_seconds` of all verifications of some runs, each once."""
    a, v = models.Attempt, models.Verification
    if session.get_bind().dialect.name == "sqlite":
        stage = func.json_each(v.stage_seconds).table_valued("key", "value")
    else:
        seconds = cast(type_coerce(v.stage_seconds, Text), JSON)
        stage = func.json_each_text(seconds).table_valued("key", "value")
    query = (
        select(func.coalesce(func.sum(cast(stage.c.value, Double)), 0.0))
        .select_from(v)
        .join(a, a.id == v.attempt_id)
        .join(stage, true())
        .where(a.run_id.in_(run_ids), v.kind != "reproduce", stage.c.key.not_in(OFF_DEVICE))
        .where(v.reused_from.is_(None))
    )
    return float(session.scalar(query) or 0.0)


def answered(session: Session, keys: Iterable[str]) -> set[str]:
    """Which of these question keys have a stored answer."""
    a, r, wanted = models.Attempt, models.Response, set(keys)
    query = (
        select(a.question_key)
        .join(r, r.attempt_id == a.id)
        .where(a.question_key.is_not(None), r.error.is_(None))
        .distinct()
    )
    return wanted.intersection(session.scalars(query))


def usage_of(session: Session, model: str) -> ModelUsage:
    """Tokens and cost of a model's answers, of those whose tokens are known."""
    a, r, p = models.Attempt, models.Response, models.Prompt
    parts = [aliased(models.Text) for _ in range(3)]
    size = parts[0].bytes + parts[1].bytes + parts[2].bytes
    query = (
        select(
            func.count(r.id).label("answers"),
            func.coalesce(func.sum(size), 0).label("prompt_bytes"),
            *(func.coalesce(func.sum(c), 0).label(c.key) for c in (r.prompt_tokens, r.completion_tokens)),
            func.count(r.cost_usd).label("priced"),
            func.coalesce(func.sum(r.cost_usd), 0.0).label("cost_usd"),
        )
        .join(a, a.id == r.attempt_id)
        .join(models.Run, models.Run.id == a.run_id)
        .join(p, p.id == a.prompt)
        .join(parts[0], parts[0].sha256 == p.system_sha256)
        .join(parts[1], parts[1].sha256 == p.user_sha256)
        .join(parts[2], parts[2].sha256 == p.history_sha256)
        .where(models.Run.model == model, r.prompt_tokens.is_not(None), r.completion_tokens.is_not(None))
        .where(r.reused_from.is_(None))
    )
    return record_of(ModelUsage, session.execute(query).one())


@dataclass(frozen=True)
class Finished:
    run: RunSettings
    problem: Problem
    response: Response
    extraction: Extraction
    verification: Verification | None
    """None where the text held no program."""
    status: Status
    parent_id: int | None = None


def add_finished(session: Session, done: Finished) -> int:
    """The id of a new attempt that is over: the next sample of its run, whichever process asks first.

    Run, problem, attempt and everything about it in one transaction: a kill leaves the whole or nothing.
    """
    run_id = records.ensure_run(session, done.run)
    problem = records.ensure_problem(session, done.problem)
    of = {"run": run_id, "problem": problem}
    last, now = session.connection().execute(_LAST, of).scalar(), utc_now()
    row = models.Attempt(run_id=run_id, problem=problem, turn=1, parent_id=done.parent_id, created=now)
    row.sample, row.status, row.finished = 0 if last is None else last + 1, done.status, now
    number = insert(session, row)
    append(session, number, records.unsaved_response(session, done.response))
    insert(session, records.unsaved_candidate(session, number, done.extraction))
    if done.verification is not None:
        records.add_verification(session, number, done.verification, "first")
    return number


_LAST = select(func.max(models.Attempt.sample)).where(
    models.Attempt.run_id == bindparam("run"), models.Attempt.problem == bindparam("problem")
)
