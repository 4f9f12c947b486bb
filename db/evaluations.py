"""The evaluations that callers of the service submit, follow and cancel. `queue` is the workers' side.

All times are by the database's clock, so that machines whose clocks differ agree.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from sqlalchemy import JSON, Select, String, and_, bindparam, cast, func, or_, select
from sqlalchemy.orm import Session

from kernelproof.db import records
from kernelproof.db.backend import Listener
from kernelproof.db.columns import clock
from kernelproof.db.connection import HasDatabase, read_transaction
from kernelproof.db.models import Evaluation
from kernelproof.db.models import Problem as ProblemRow
from kernelproof.db.rows import keep, record_of
from kernelproof.types import FrozenRecord, Problem, VerifySettings

State = Literal["queued", "building", "built", "running", "done", "failed", "expired", "cancelled"]
WAITING: tuple[State, ...] = ("queued", "built")
"""No daemon holds it."""
LEASED: tuple[State, ...] = ("building", "running")
"""A builder or a worker holds it under a lease."""
OPEN: tuple[State, ...] = (*WAITING, *LEASED)
WORK, ENDED = "work", "ended"
"""Channels of notifications: a job waits; a job ended."""
LEASE_S = 30.0
"""Seconds after which a lease expires unless it is renewed."""
MOST_LOSSES = 5
"""After so many lost leases an evaluation ends without a result. Another job may have caused the first
`queue.ALONE_AFTER` of them, but not the others, which came while it ran alone."""


class QueueFull(Exception):
    """The queue, or the caller's quota, has no place for so many evaluations."""

    def __init__(self, new: int, waiting: int, most: int, *, quota: bool) -> None:
        """`new`: evaluations that need a place; `waiting`: those that have one, of `most` in all."""
        super().__init__(new, waiting, most)
        self.new, self.waiting, self.most, self.quota = new, waiting, most, quota


class KeyConflict(Exception):
    """An idempotency key came with another request than before."""


@dataclass(frozen=True)
class Submitted:
    problem: Problem
    text: str
    """A program, or an answer that holds one."""
    settings: VerifySettings
    request_sha256: str
    label: str | None = None
    priority: int = 0
    deadline_s: float | None = None
    """Seconds from now after which it is not begun any more."""
    idempotency_key: str | None = None
    reuse: bool = False
    """Whether the result of equal work may be taken."""


class StoredEvaluation(FrozenRecord):
    id: str
    caller: str
    state: State
    priority: int
    problem_id: str
    submitted: float
    deadline: float | None
    started: float | None
    finished: float | None
    attempt_id: int | None
    reused: bool
    error: str | None
    infrastructure: bool
    """Whether `error` is a failure of ours, and no fault of the request."""
    token: int
    late_verdicts: int
    artefact: str | None
    built: float | None
    late_builds: int
    losses: int

    @property
    def queue_seconds(self) -> float | None:
        """Seconds from the submission to the last start of its judging; None before it."""
        return None if self.started is None else max(0.0, self.started - self.submitted)


class Evaluations(HasDatabase):
    """The evaluations of a database. Every method is one transaction."""

    def submit(
        self,
        caller: str,
        items: Sequence[Submitted],
        *,
        most: int,
        quota: int | None = None,
        most_losses: int = MOST_LOSSES,
    ) -> list[StoredEvaluation]:
        """Stores all or none. A repeated idempotency key of the caller gets the same evaluation again.

        `most`: evaluations that may be open in all. `most_losses`: lost leases after which one ends without
        a result. Raises QueueFull, KeyConflict.
        """

        def add(session: Session) -> list[StoredEvaluation]:
            now, rows = clock(session), list[Evaluation]()
            known = [_known(session, caller, item) for item in items]
            _require_room(session, caller, known.count(None), most, quota)
            for item, row in zip(items, known, strict=True):
                # A key may come twice in a batch: then the row of the first is known by now.
                row = row or _known(session, caller, item)
                rows.append(row or _add(session, caller, item, now, most_losses))
            return [_view(session, row) for row in rows]

        added = self._database.write(add)
        self._database.notify(WORK)
        return added

    @read_transaction
    def get(self, session: Session, number: str, caller: str | None = None) -> StoredEvaluation | None:
        """The evaluation; None where there is none, or where another caller sent it."""
        view = _stored(session, number)
        return None if view is None or (caller is not None and view.caller != caller) else view

    @read_transaction
    def with_key(self, session: Session, caller: str, key: str) -> StoredEvaluation | None:
        e = Evaluation
        query = select(e).where(e.caller == caller, e.idempotency_key == key)
        row = session.scalar(query)
        return None if row is None else _view(session, row)

    @read_transaction
    def needs_no_work(self, session: Session, caller: str, item: Submitted) -> bool:
        """Whether `submit` would answer from what is stored: under the same key, or by equal work."""
        if _known(session, caller, item) is not None:
            return True
        return item.reuse and _equal(session, item.request_sha256) is not None

    @read_transaction
    def ended(self, session: Session, numbers: Sequence[str]) -> set[str]:
        """Which of these have ended, in one statement however many they are."""
        values = {"numbers": json.dumps(list(numbers))}
        dialect = session.get_bind().dialect.name
        return set(session.connection().execute(_ended(dialect), values).scalars())

    def listener(self) -> Listener:
        """Wakes whoever waits for an evaluation to end."""
        return self._database.listener(ENDED)

    def cancel(self, number: str) -> StoredEvaluation | None:
        """Cancels an open evaluation. Its worker learns of it at the next renewal; its verdict is refused."""

        def cancel(session: Session) -> StoredEvaluation | None:
            row = session.get(Evaluation, number, with_for_update=True)
            if row is None:
                return None
            if row.state in OPEN:
                row.state, row.finished, row.leased = "cancelled", clock(session), None
            return _view(session, row)

        cancelled = self._database.change(cancel)
        self._database.notify(ENDED)
        return cancelled

    def counts(self) -> dict[str, int]:
        e = Evaluation
        rows = self._database.read(
            lambda session: session.execute(select(e.state, func.count()).group_by(e.state)).all()
        )
        return {str(state): int(number) for state, number in rows}

    def late_verdicts(self) -> int:
        """Verdicts that were refused because their lease was lost."""
        return self._late(Evaluation.late_verdicts)

    def late_builds(self) -> int:
        """Builds that were refused because their lease was lost."""
        return self._late(Evaluation.late_builds)

    @read_transaction
    def rate(self, session: Session, seconds: float = 600.0) -> float | None:
        """Verdicts a second over the last `seconds`; None for fewer than three."""
        e = Evaluation
        now = clock(session)
        recent = and_(e.state == "done", e.reused.is_(False), e.finished > now - seconds)
        number, first = session.execute(select(func.count(), func.min(e.started)).where(recent)).one()
        if number < 3 or first is None:
            return None
        return float(number) / max(1e-3, now - max(float(first), now - seconds))

    def ahead(self, priority: int) -> int:
        """Open evaluations that a new one of this priority has to wait for."""
        e = Evaluation
        before = or_(e.state.in_(LEASED), and_(e.state.in_(WAITING), e.priority >= priority))
        query = select(func.count()).where(before)
        return int(self._database.read(lambda session: session.scalar(query)) or 0)

    def _late(self, column: Any) -> int:
        e = Evaluation
        # Phrased as the partial index is.
        total = select(func.sum(column)).where(or_(e.late_verdicts > 0, e.late_builds > 0))
        return int(self._database.read(lambda session: session.scalar(total)) or 0)


@cache
def _ended(dialect: str) -> Select[Any]:
    """The ended ones of a list, which is the JSON text `numbers`."""
    numbers = bindparam("numbers", type_=String)
    if dialect == "sqlite":
        listed = select(func.json_each(numbers).table_valued("value").c.value)
    else:
        listed = select(func.json_array_elements_text(cast(numbers, JSON)).column_valued("number"))
    e = Evaluation
    return select(e.id).where(e.id.in_(listed), e.state.not_in(OPEN))


def _known(session: Session, caller: str, item: Submitted) -> Evaluation | None:
    """The evaluation that has this key. Raises KeyConflict where it is of another request."""
    if item.idempotency_key is None:
        return None
    e = Evaluation
    row = session.scalar(select(e).where(e.caller == caller, e.idempotency_key == item.idempotency_key))
    if row is not None and row.request_sha256 != item.request_sha256:
        raise KeyConflict(item.idempotency_key)
    return row


def _require_room(session: Session, caller: str, new: int, most: int, quota: int | None) -> None:
    e = Evaluation
    is_open = e.state.in_(OPEN)
    waiting = int(session.scalar(select(func.count()).where(is_open)) or 0)
    if quota is not None and new:
        own = int(session.scalar(select(func.count()).where(is_open, e.caller == caller)) or 0)
        if own + new > quota:
            raise QueueFull(new, own, quota, quota=True)
    if new and waiting + new > most:
        raise QueueFull(new, waiting, most, quota=False)


def _add(session: Session, caller: str, item: Submitted, now: float, most_losses: int) -> Evaluation:
    row = Evaluation(
        id=uuid.uuid4().hex,
        caller=caller,
        idempotency_key=item.idempotency_key,
        request_sha256=item.request_sha256,
        label=item.label,
        problem=records.ensure_problem(session, item.problem),
        text_sha256=keep(session, item.text),
        settings=item.settings.model_dump(mode="json"),
        backend=item.settings.backend,
        priority=item.priority,
        submitted=now,
        deadline=None if item.deadline_s is None else now + item.deadline_s,
        state="queued",
        token=0,
        reused=False,
        infrastructure=False,
        late_verdicts=0,
        late_builds=0,
        bad_gpus=0,
        losses=0,
        most_losses=most_losses,
    )
    equal = _equal(session, item.request_sha256) if item.reuse else None
    if equal is not None:
        row.state, row.attempt_id, row.reused = "done", equal, True
        row.started = row.finished = now
    session.add(row)
    session.flush()
    return row


def _equal(session: Session, request_sha256: str) -> int | None:
    e = Evaluation
    done = select(e.attempt_id).where(
        e.request_sha256 == request_sha256, e.state == "done", e.attempt_id.is_not(None)
    )
    return session.scalar(done.order_by(e.finished.desc()).limit(1))


_NAMES = [name for name in StoredEvaluation.model_fields if name != "problem_id"]
_STORED = (
    select(ProblemRow.problem_id, *(getattr(Evaluation, name) for name in _NAMES))
    .join(ProblemRow, ProblemRow.id == Evaluation.problem)
    .where(Evaluation.id == bindparam("number"))
)


def _stored(session: Session, number: str) -> StoredEvaluation | None:
    row = session.connection().execute(_STORED, {"number": number}).mappings().first()
    return None if row is None else StoredEvaluation.model_validate(dict(row))


def _view(session: Session, row: Evaluation) -> StoredEvaluation:
    problem_id = session.get_one(ProblemRow, row.problem).problem_id
    return record_of(StoredEvaluation, row, problem_id=problem_id)
