"""The queue of the evaluation service: what callers sent, which worker has it, how it ended.

The database is the only truth. A worker takes evaluations under a lease with a fencing token, and renews it
while it lives. A lease that was not renewed passes to the next worker, and the verdict of the former one is
refused.
All times are of the database's clock, so that workers whose clocks differ agree.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence

from sqlalchemy import ColumnElement, Select, Update, and_, func, or_, select, update
from sqlalchemy.orm import Session

from kernelproof.db import loading, records
from kernelproof.db.clock import clock
from kernelproof.db.connection import Database
from kernelproof.db.evaluation_records import (
    LEASE_S,
    OPEN,
    KeyTaken,
    NoResult,
    QueueFull,
    StoredEvaluation,
    Submitted,
    Taken,
)
from kernelproof.db.finished import Finished, add_finished
from kernelproof.db.gpus import GpuLease, is_held
from kernelproof.db.models import Problem as ProblemRow
from kernelproof.db.models import Text
from kernelproof.db.owners import is_gone
from kernelproof.db.portions import portions
from kernelproof.db.service_tables import Evaluation
from kernelproof.db.texts import Library, keep
from kernelproof.types import VerifySettings

MOST_BAD_GPUS = 3
"""An evaluation during which so many GPUs were set aside is not judged again."""


class Evaluations:
    """The evaluations of a database. Every method is one transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def submit(
        self, caller: str, items: Sequence[Submitted], *, most: int, quota: int | None = None
    ) -> list[StoredEvaluation]:
        """Stores all, or none. The same caller's idempotency key gets what it got before.

        `most`: evaluations that may be open in all. Raises QueueFull, KeyTaken.
        """

        def add(session: Session) -> list[StoredEvaluation]:
            now, rows = clock(session), list[Evaluation]()
            known = [_known(session, caller, item) for item in items]
            _require_room(session, caller, known.count(None), most, quota)
            for item, row in zip(items, known, strict=True):
                # A key may come twice in a batch: then the row of the first is known by now.
                rows.append(row or _known(session, caller, item) or _add(session, caller, item, now))
            return [_view(session, row) for row in rows]

        return self._database.write(add)

    def get(self, number: str, caller: str | None = None) -> StoredEvaluation | None:
        """The evaluation; None where there is none, or where another caller sent it."""

        def found(session: Session) -> StoredEvaluation | None:
            row = session.get(Evaluation, number)
            if row is None or (caller is not None and row.caller != caller):
                return None
            return _view(session, row)

        return self._database.read(found)

    def with_key(self, caller: str, key: str) -> StoredEvaluation | None:
        """The caller's evaluation with this idempotency key."""
        e = Evaluation
        wanted = select(e).where(e.caller == caller, e.idempotency_key == key)

        def found(session: Session) -> StoredEvaluation | None:
            row = session.scalar(wanted)
            return None if row is None else _view(session, row)

        return self._database.read(found)

    def needs_no_work(self, caller: str, item: Submitted) -> bool:
        """Whether `submit` would answer from what is stored: under the same key, or by equal work."""

        def found(session: Session) -> bool:
            if _known(session, caller, item) is not None:
                return True
            return item.reuse and _equal(session, item.request_sha256) is not None

        return self._database.read(found)

    def ended(self, numbers: Sequence[str]) -> set[str]:
        """Which of these are open no more."""
        e = Evaluation

        def found(session: Session) -> set[str]:
            ended: set[str] = set()
            for chosen in portions(numbers):
                ended |= set(session.scalars(select(e.id).where(e.id.in_(chosen), e.state.not_in(OPEN))))
            return ended

        return self._database.read(found)

    def cancel(self, number: str) -> StoredEvaluation | None:
        """Cancels an evaluation that is open. A worker that has it will be told, and its verdict refused."""

        def cancel(session: Session) -> StoredEvaluation | None:
            row = session.get(Evaluation, number, with_for_update=True)
            if row is None:
                return None
            if row.state in OPEN:
                row.state, row.finished = "cancelled", clock(session)
            return _view(session, row)

        return self._database.write(cancel)

    def has_work(self, backends: Sequence[str]) -> bool:
        """Whether `take` would find something. Writes nothing, so that idle workers may ask often."""

        def found(session: Session) -> bool:
            is_free = _is_free(session, clock(session), backends)
            return session.scalar(select(Evaluation.id).where(is_free).limit(1)) is not None

        return self._database.read(found)

    def take(self, owner: str, most: int, backends: Sequence[str], lease_s: float = LEASE_S) -> list[Taken]:
        """Gives a worker as many evaluations as it has places: the greatest priority first, then the oldest.

        It may have been another worker's, who lost it; then the token is greater. Evaluations past their
        deadline expire.
        """

        def take(session: Session) -> list[Taken]:
            now = clock(session)
            _expire(session, now)
            rows = session.scalars(_next(session, now, most, backends)).all()
            taken = []
            for row in rows:
                row.state, row.owner, row.token = "running", owner, row.token + 1
                row.started, row.leased = now, now + lease_s
                taken.append(_taken(session, row))
            return taken

        return self._database.write(take)

    def renew(self, owner: str, held: Mapping[str, int], lease_s: float = LEASE_S) -> set[str]:
        """Renews the leases of a worker; which of `held` (id to token) it has no more."""
        e = Evaluation

        def renew(session: Session) -> set[str]:
            until, kept = clock(session) + lease_s, set()
            for number, token in held.items():
                mine = and_(e.id == number, e.token == token, e.owner == owner, e.state == "running")
                if _changed(session, update(e).where(mine).values(leased=until)):
                    kept.add(number)
            return set(held) - kept

        return self._database.write(renew)

    def finish(
        self, number: str, token: int, result: Finished | NoResult, gpu: GpuLease | None = None
    ) -> bool:
        """Ends an evaluation with its result, which is stored as an attempt in the same transaction.

        `NoResult` in its place says why there is none. `gpu`: the judge's lease on its GPU.

        False, counted, and nothing stored where the token is no longer the newest: the lease was lost, or the
        evaluation was cancelled. The same where the lease on the GPU was lost, since another judge may have
        measured at the same time.
        """

        def finish(session: Session) -> bool:
            row = session.get(Evaluation, number, with_for_update=True)
            if row is None:
                return False
            lost = row.token != token or row.state != "running"
            if lost or (gpu is not None and not is_held(session, gpu)):
                row.late_verdicts += 1
                return False
            if isinstance(result, Finished):
                row.state, row.attempt_id = "done", add_finished(session, result)
            else:
                row.state, row.error, row.infrastructure = "failed", result.why, result.infrastructure
            row.finished, row.leased, row.owner = clock(session), None, None
            return True

        return self._database.write(finish)

    def give_back(self, owner: str, *, bad_gpu: bool = False) -> int:
        """Puts what a worker has back into the queue; how many there were.

        `bad_gpu`: its GPU was set aside. An evaluation to which this happened MOST_BAD_GPUS times fails, so
        that one candidate cannot take every GPU away.
        """
        e = Evaluation
        mine = and_(e.owner == owner, e.state == "running")
        free = {"owner": None, "leased": None}

        def give_back(session: Session) -> int:
            ended = 0
            if bad_gpu:
                session.execute(update(e).where(mine).values(bad_gpus=e.bad_gpus + 1))
                why = f"{MOST_BAD_GPUS} GPUs in a row were set aside while they had it"
                failed = {"state": "failed", "error": why, "infrastructure": True, "finished": clock(session)}
                worn = and_(mine, e.bad_gpus >= MOST_BAD_GPUS)
                ended = _changed(session, update(e).where(worn).values(**failed, **free))
            return ended + _changed(
                session, update(e).where(mine).values(state="queued", started=None, **free)
            )

        return self._database.write(give_back)

    def hand_back(self, number: str, token: int) -> None:
        """Puts one evaluation back into the queue, if the worker still has it."""
        e = Evaluation
        mine = and_(e.id == number, e.token == token, e.state == "running")
        back = {"state": "queued", "owner": None, "leased": None, "started": None}
        self._database.write(lambda session: _changed(session, update(e).where(mine).values(**back)))

    def counts(self) -> dict[str, int]:
        """Evaluations by state."""
        e = Evaluation
        rows = self._database.read(
            lambda session: session.execute(select(e.state, func.count()).group_by(e.state)).all()
        )
        return {str(state): int(number) for state, number in rows}

    def late_verdicts(self) -> int:
        """Verdicts that were refused because their lease was lost."""
        total = select(func.sum(Evaluation.late_verdicts))
        return int(self._database.read(lambda session: session.scalar(total)) or 0)

    def rate(self, seconds: float = 600.0) -> float | None:
        """Evaluations a second that ended by a verdict lately; None where fewer than three did."""
        e = Evaluation

        def found(session: Session) -> float | None:
            now = clock(session)
            recent = and_(e.state == "done", e.reused.is_(False), e.finished > now - seconds)
            number, first = session.execute(select(func.count(), func.min(e.started)).where(recent)).one()
            if number < 3 or first is None:
                return None
            return float(number) / max(1e-3, now - max(float(first), now - seconds))

        return self._database.read(found)

    def ahead(self, priority: int) -> int:
        """Open evaluations that a new one of this priority has to wait for."""
        e = Evaluation
        before = or_(e.state == "running", and_(e.state == "queued", e.priority >= priority))
        wanted = select(func.count()).where(before)
        return int(self._database.read(lambda session: session.scalar(wanted)) or 0)


def _changed(session: Session, change: Update) -> int:
    """Makes a change; how many rows it met."""
    return int(session.execute(change).rowcount)  # type: ignore[attr-defined]


def _known(session: Session, caller: str, item: Submitted) -> Evaluation | None:
    """The evaluation that has this key. Raises KeyTaken where it is of another request."""
    if item.idempotency_key is None:
        return None
    e = Evaluation
    row = session.scalar(select(e).where(e.caller == caller, e.idempotency_key == item.idempotency_key))
    if row is not None and row.request_sha256 != item.request_sha256:
        raise KeyTaken(item.idempotency_key)
    return row


def _require_room(session: Session, caller: str, new: int, most: int, quota: int | None) -> None:
    e = Evaluation
    is_open = e.state.in_(OPEN)
    waiting = int(session.scalar(select(func.count()).where(is_open)) or 0)
    if new and waiting + new > most:
        raise QueueFull(waiting, most, quota=False)
    if quota is not None and new:
        own = int(session.scalar(select(func.count()).where(is_open, e.caller == caller)) or 0)
        if own + new > quota:
            raise QueueFull(own, quota, quota=True)


def _add(session: Session, caller: str, item: Submitted, now: float) -> Evaluation:
    row = Evaluation(
        id=uuid.uuid4().hex,
        caller=caller,
        idempotency_key=item.idempotency_key,
        request_sha256=item.request_sha256,
        label=item.label,
        problem=records.problem_row(session, item.problem),
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
        bad_gpus=0,
    )
    equal = _equal(session, item.request_sha256) if item.reuse else None
    if equal is not None:
        row.state, row.attempt_id, row.reused = "done", equal, True
        row.started = row.finished = now
    session.add(row)
    session.flush()
    return row


def _equal(session: Session, request_sha256: str) -> int | None:
    """The newest stored result of equal work."""
    e = Evaluation
    done = select(e.attempt_id).where(
        e.request_sha256 == request_sha256, e.state == "done", e.attempt_id.is_not(None)
    )
    return session.scalar(done.order_by(e.finished.desc()).limit(1))


def _expire(session: Session, now: float) -> None:
    e = Evaluation
    late = and_(e.state == "queued", e.deadline.is_not(None), e.deadline < now)
    why = "its deadline passed before a worker was free"
    session.execute(update(e).where(late).values(state="expired", finished=now, error=why))


def _is_free(session: Session, now: float, backends: Sequence[str]) -> ColumnElement[bool]:
    """Whether a worker may take it: it waits, or its worker lost it or is gone."""
    e = Evaluation
    owners = session.scalars(select(e.owner).where(e.state == "running").distinct())
    gone = [owner for owner in owners if owner is not None and is_gone(owner)]
    lost = and_(e.state == "running", or_(e.leased < now, e.owner.in_(gone)))
    return and_(or_(e.state == "queued", lost), e.backend.in_(backends))


def _next(session: Session, now: float, most: int, backends: Sequence[str]) -> Select[Evaluation]:
    e = Evaluation
    wanted = select(e).where(_is_free(session, now, backends))
    order = (e.priority.desc(), e.submitted, e.id)
    return wanted.order_by(*order).limit(most).with_for_update(skip_locked=True)


def _taken(session: Session, row: Evaluation) -> Taken:
    texts = Library(session)
    problem = session.get_one(ProblemRow, row.problem)
    return Taken(
        id=row.id,
        token=row.token,
        problem=loading.problem_of(problem, texts),
        text=session.get_one(Text, row.text_sha256).body,
        settings=VerifySettings.model_validate(row.settings),
        label=row.label,
    )


def _view(session: Session, row: Evaluation) -> StoredEvaluation:
    names = set(StoredEvaluation.model_fields) - {"problem_id"}
    problem = session.get_one(ProblemRow, row.problem)
    return StoredEvaluation.model_validate(
        {name: getattr(row, name) for name in names} | {"problem_id": problem.problem_id}
    )
