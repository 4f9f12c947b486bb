"""The queue of the evaluation service as builders, judges and workers see it.

The database is the only truth. A daemon takes evaluations under a lease with a fencing token, and renews it
while it lives. A lease that was not renewed passes to the next daemon, and what the former one brings is
refused, and counted. On a server several daemons take, renew and finish at once.
All times are of the database's clock, so that daemons whose clocks differ agree.

Two judges, 40 evaluations, 34 places each: without a rule the first judge takes 34, and the GPU of the second
is idle for most of the time. By `fair_share` each has 20. A daemon that is alone fills its places.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, cast

from sqlalchemy import (
    ColumnElement,
    Select,
    String,
    Table,
    Update,
    and_,
    bindparam,
    case,
    exists,
    func,
    literal,
    or_,
    select,
    update,
)
from sqlalchemy import cast as sql_cast
from sqlalchemy.orm import Session

from kernelproof.choices import Role
from kernelproof.db import loading
from kernelproof.db.attempts import Finished, add_finished
from kernelproof.db.connection import Database
from kernelproof.db.evaluations import (
    ENDED,
    LEASE_S,
    TAKEN,
    TOGETHER,
    WAITING,
    WORK,
    NoResult,
    State,
    LeasedJob,
    WorkerCapabilities,
)
from kernelproof.db.gpus import GpuLease, is_held
from kernelproof.db.home import Listener
from kernelproof.db.leases import is_gone
from kernelproof.db.models import Problem as ProblemRow
from kernelproof.db.rows import Reading, whole
from kernelproof.db.service_tables import Evaluation, Worker
from kernelproof.db.texts import Library
from kernelproof.db.types import clock
from kernelproof.types import VerifySettings


def fair_share(session: Session, owner: str, most: int, wanted: WorkerCapabilities, now: float) -> int:
    """How many of the waiting evaluations a daemon may take now; `most` where no other takes the same work.

    All that wait and all that are taken are divided by the daemons that take such work. The daemon's own
    evaluations count against its part, which is rounded up: so the last evaluation is taken.
    """
    takers = _takers(session, owner, wanted, now)
    if takers == 1:
        return most
    e = Evaluation
    running = select(func.count()).where(e.state == wanted.taken, e.backend.in_(wanted.backends))
    all_taken = session.scalar(running) or 0
    own = session.scalar(running.where(e.owner == owner)) or 0
    # Counted no further than it can matter, since a queue may be long.
    enough = (own + most) * takers
    waiting = sum(_counted(session, state, name, enough) for state, name in wanted.waiting)
    part = -(-(waiting + all_taken) // takers)
    return max(0, min(most, part - own))


_OTHERS = select(Worker.role, Worker.backend).where(
    Worker.owner != bindparam("owner"),
    Worker.ended.is_(None),
    Worker.waits.is_(None),
    Worker.renewed >= bindparam("since"),
)


def _takers(session: Session, owner: str, wanted: WorkerCapabilities, now: float) -> int:
    """Daemons that take such work now, this one among them, whether or not it has given a sign of life."""
    builds = wanted.role is Role.BUILD
    roles = {str(Role.ALL), str(Role.BUILD if builds else Role.JUDGE)}
    mine = set(wanted.backends)
    found = session.connection().execute(_OTHERS, {"owner": owner, "since": now - LEASE_S})
    return 1 + sum(role in roles and bool(mine & set(names.split(","))) for role, names in found)


def _counted(session: Session, state: State, name: str, enough: int) -> int:
    e = Evaluation
    first = select(e.id).where(e.state == state, e.backend == name).limit(enough).subquery()
    return session.scalar(select(func.count()).select_from(first)) or 0


Found = tuple[Evaluation, ProblemRow]
"""The rows of an evaluation and of its problem, to read."""


@cache
def any_waits(wanted: WorkerCapabilities) -> Select[Any] | None:
    """Whether anything waits for such a daemon; None where it takes nothing."""
    e = Evaluation
    there = [exists().where(e.state == state, e.backend == name) for state, name in wanted.waiting]
    return select(or_(*there)) if there else None


_HERE = and_(Evaluation.state == bindparam("state"), Evaluation.backend == bindparam("backend"))
_NEXT_PRIORITY = select(func.max(Evaluation.priority)).where(
    _HERE, Evaluation.priority < bindparam("priority")
)
_FIRST = Reading(
    (Evaluation, ProblemRow),
    whole(Evaluation, ProblemRow)
    .join_from(Evaluation, ProblemRow, ProblemRow.id == Evaluation.problem)
    .where(
        _HERE,
        Evaluation.priority == bindparam("priority"),
        or_(Evaluation.deadline.is_(None), Evaluation.deadline >= bindparam("now")),
    )
    .order_by(Evaluation.submitted, Evaluation.id)
    .limit(bindparam("most"))
    .with_for_update(of=Evaluation.__table__, skip_locked=True),
)
_TABLE = cast(Table, Evaluation.__table__)
_TAKE = (
    update(_TABLE)
    .where(_TABLE.c.id == bindparam("number"))
    .values({name: bindparam(name) for name in ("state", "owner", "token", "leased", "started")})
)
_ABOVE_ALL = 1 << 31
"""Greater than each priority."""


def waiting(session: Session, state: State, name: str, most: int, now: float) -> list[Found]:
    """The first of those in this state and of this backend, locked; those that another takes are skipped.

    Priority by priority: so each query reads an index from its start, however long the queue is.
    """
    connection, here = session.connection(), {"state": state, "backend": name}
    found, below = list[Found](), _ABOVE_ALL
    while len(found) < most:
        priority = connection.execute(_NEXT_PRIORITY, {**here, "priority": below}).scalar()
        if priority is None:
            break
        below = int(priority)
        asked = {**here, "priority": below, "now": now, "most": most - len(found)}
        found += cast(list[Found], _FIRST.rows(session, asked))
    return found


def together(rows: Sequence[Found], busy: bool) -> Sequence[Found]:
    """Those of the next ones that a daemon may have at once."""
    if rows and rows[0][0].losses >= TOGETHER:
        return [] if busy else rows[:1]
    return list(itertools.takewhile(lambda found: found[0].losses < TOGETHER, rows))


def give(
    session: Session, chosen: Sequence[Found], state: State, owner: str, now: float, lease_s: float
) -> list[LeasedJob]:
    """Gives evaluations to a daemon, in this state."""
    if not chosen:
        return []
    started = now if state == "running" else None
    values = {"state": state, "owner": owner, "leased": now + lease_s, "started": started}
    given = [{"number": row.id, "token": row.token + 1, **values} for row, _ in chosen]
    session.connection().execute(_TAKE, given)
    texts = Library(session)
    texts.read_ahead(key for row, problem in chosen for key in (problem.sha256, row.text_sha256))
    return [
        LeasedJob(
            id=row.id,
            token=row.token + 1,
            problem=loading.problem_of(problem, texts),
            text=texts.get(row.text_sha256, "text"),
            settings=VerifySettings.model_validate(row.settings),
            label=row.label,
            artefact=row.artefact,
            alone=row.losses >= TOGETHER,
        )
        for row, problem in chosen
    ]


MOST_BAD_GPUS = 3
"""An evaluation during which so many GPUs were set aside is not judged again."""


class JobQueue:
    """The operations of daemons on the evaluations of a database. Every method is one transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def listener(self) -> Listener:
        """Wakes a daemon when there may be something to take."""
        return self._database.listener(WORK)

    def has_work(self, wanted: WorkerCapabilities) -> bool:
        """Whether `take` would find something. Writes nothing, so that idle daemons may ask often."""
        asked = any_waits(wanted)
        if asked is None:
            return False
        return bool(self._database.read(lambda session: session.connection().execute(asked).scalar()))

    def take(
        self, owner: str, most: int, wanted: WorkerCapabilities, lease_s: float = LEASE_S, *, busy: bool = False
    ) -> list[LeasedJob]:
        """Gives a daemon as many evaluations as it has places, but no more than its fair share: the greatest
        priority first, then the oldest.

        It may have been another daemon's, who lost it; then the token is greater. One that was lost TOGETHER
        times comes alone: a daemon that is `busy` gets nothing while it is the next. Those past their
        deadline are left out.
        """
        state = wanted.taken

        def take(session: Session) -> list[LeasedJob]:
            now = clock(session)
            few = fair_share(session, owner, most, wanted, now)
            rows = [row for place in wanted.waiting for row in waiting(session, *place, few, now)]
            rows.sort(key=lambda found: (-found[0].priority, found[0].submitted, found[0].id))
            chosen = together(rows[:few], busy)
            return give(session, chosen, state, owner, now, lease_s)

        return self._database.change(take)

    def renew(self, owner: str, held: Mapping[str, int], lease_s: float = LEASE_S) -> set[str]:
        """Renews the leases of a daemon; which of `held` (id to token) it has no more."""
        e = Evaluation

        def renew(session: Session) -> set[str]:
            mine = select(e.id, e.token).where(e.owner == owner, e.state.in_(TAKEN), e.id.in_(sorted(held)))
            rows = session.execute(mine.order_by(e.id).with_for_update())  # locked in one order
            kept = {number for number, token in rows if held[number] == token}
            _changed(session, update(e).where(e.id.in_(sorted(kept))).values(leased=clock(session) + lease_s))
            return set(held) - kept

        return self._database.change(renew) if held else set()

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
            row = _held(session, number, token)
            if row is None:
                return False
            if gpu is not None and not is_held(session, gpu):
                row.late_verdicts += 1
                return False
            if isinstance(result, Finished):
                self._database.take_turn(session)
                row.state, row.attempt_id = "done", add_finished(session, result)
            else:
                row.state, row.error, row.infrastructure = "failed", result.why, result.infrastructure
            row.finished, row.leased, row.owner = clock(session), None, None
            return True

        done = self._database.change(finish)
        self._database.notify(ENDED)
        return done

    def built(self, number: str, token: int, artefact: str | None) -> bool:
        """A builder is done with an evaluation: it waits for a judge now. `artefact`: its key; None where
        nothing was published.

        False, and counted, as `finish` has it.
        """

        def built(session: Session) -> bool:
            row = _held(session, number, token, building=True)
            if row is None:
                return False
            row.state, row.artefact, row.built = "built", artefact, clock(session)
            row.leased, row.owner = None, None
            return True

        done = self._database.change(built)
        self._database.notify(WORK)
        return done

    def hand_back(self, number: str, token: int) -> None:
        """Puts one evaluation back into the queue, if its daemon still has it."""
        e = Evaluation
        mine = and_(e.id == number, e.token == token, e.state.in_(TAKEN))
        if self._database.change(lambda session: _back(session, mine)):
            self._database.notify(WORK)

    def give_back(self, owner: str, *, bad_gpu: bool = False) -> int:
        """Puts what a daemon has back into the queue; how many there were.

        `bad_gpu`: its GPU was set aside. An evaluation to which this happened MOST_BAD_GPUS times fails, so
        that one candidate cannot take every GPU away.
        """
        e = Evaluation
        mine = and_(e.owner == owner, _is_held())

        def give_back(session: Session) -> int:
            if not bad_gpu:
                return _back(session, mine)
            _changed(session, update(e).where(mine).values(bad_gpus=e.bad_gpus + 1))
            why = f"{MOST_BAD_GPUS} GPUs in a row were set aside while they had it"
            failed = {"state": "failed", "error": why, "infrastructure": True, "finished": clock(session)}
            worn = update(e).where(mine, e.bad_gpus >= MOST_BAD_GPUS)
            ended = _changed(session, worn.values(**failed, owner=None, leased=None))
            return ended + _back(session, mine)

        back = self._database.change(give_back)
        if bad_gpu:
            self._database.notify(ENDED)
        if back:
            self._database.notify(WORK)
        return back

    def recover(self) -> int:
        """Puts back what daemons lost: their leases ended, or they were processes of this machine that are
        gone. Ends what was lost too often, and what is past its deadline. How many there were of all.

        Writes nothing where there is nothing to do, so that every daemon may call it often.
        """
        e = Evaluation

        def found(session: Session) -> tuple[bool, list[str]]:
            now = clock(session)
            owners = session.scalars(select(e.owner).where(_is_held()).distinct())
            gone = [owner for owner in owners if owner is not None and is_gone(owner)]
            some = select(or_(exists().where(_is_lost(now, gone)), exists().where(_is_late(now))))
            return bool(session.scalar(some)), gone

        def recover(session: Session) -> tuple[int, int]:
            now = clock(session)
            why = "its deadline passed before a worker was free"
            ended = {"state": "expired", "finished": now, "error": why}
            late = _changed(session, update(e).where(_is_late(now)).values(**ended))
            return _lose(session, _is_lost(now, gone), now), late

        some, gone = self._database.read(found)
        if not some:
            return 0
        back, late = self._database.change(recover)
        if back:
            self._database.notify(WORK)
        self._database.notify(ENDED)
        return back + late


def _held(session: Session, number: str, token: int, *, building: bool = False) -> Evaluation | None:
    """The row, locked, where this token holds it; None, and counted, where it does not."""
    row = session.get(Evaluation, number, with_for_update=True)
    if row is None or (row.token == token and row.state == ("building" if building else "running")):
        return row
    if building:
        row.late_builds += 1
    else:
        row.late_verdicts += 1
    return None


def _is_held() -> ColumnElement[bool]:
    """Whether a daemon has it: in the words of a small index."""
    return and_(Evaluation.leased.is_not(None), Evaluation.state.in_(TAKEN))


def _is_lost(now: float, gone: Sequence[str]) -> ColumnElement[bool]:
    e = Evaluation
    return and_(_is_held(), or_(e.leased < now, e.owner.in_(gone)))


def _is_late(now: float) -> ColumnElement[bool]:
    e = Evaluation
    return and_(e.state.in_(WAITING), e.deadline.is_not(None), e.deadline < now)


def _back(session: Session, which: ColumnElement[bool]) -> int:
    """Puts them back to where they were taken from; how many there were."""
    back = {"state": _origin(), "owner": None, "leased": None, "started": None}
    return _changed(session, update(Evaluation).where(which).values(**back))


def _lose(session: Session, which: ColumnElement[bool], now: float) -> int:
    """Puts back those whose daemon was lost, and ends those to which that happened too often; how many there
    were."""
    e = Evaluation
    often = e.losses + 1 >= e.most_losses
    why = literal("the daemons that had it were lost ") + sql_cast(e.losses + 1, String)
    why += " times: they were killed, or silent until their leases ended; it may be what ends them"
    ended = {"finished": case((often, now)), "error": case((often, why))}
    freed = {"owner": None, "leased": None, "started": case((often, e.started))}
    lost = {
        "state": case((often, "failed"), else_=_origin()),
        "losses": e.losses + 1,
        "infrastructure": often,
    }
    return _changed(session, update(e).where(which).values(**lost, **ended, **freed))


def _origin() -> ColumnElement[str]:
    """The state in which an evaluation was taken."""
    e = Evaluation
    return case((and_(e.state == "running", e.built.is_not(None)), "built"), else_="queued")


def _changed(session: Session, change: Update) -> int:
    """Makes a change; how many rows it met."""
    return int(session.execute(change).rowcount)  # type: ignore[attr-defined]
