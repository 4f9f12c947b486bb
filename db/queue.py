"""The job queue of the evaluation service, as its workers use it, builders and judges among them.

The database is the only truth. A daemon leases jobs with `take`, and renews the leases while it lives. An
expired lease passes to the next daemon with a higher fencing token; what the former owner still delivers is
refused and counted. On a server several daemons take, renew and finish at once. Callers submit jobs through
`evaluations`. All times are by the database's clock, so that machines whose clocks differ agree.

Example: two judges with 34 places each share 40 evaluations. Without `fair_share` the first would take 34,
and the second one's GPU would idle; with it each takes 20. A daemon that is alone fills its places.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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

from kernelproof.backends import backend
from kernelproof.choices import Role
from kernelproof.db import loading
from kernelproof.db.attempts import Finished, add_finished
from kernelproof.db.backend import Listener
from kernelproof.db.columns import clock
from kernelproof.db.connection import HasDatabase, change_transaction, read_transaction
from kernelproof.db.evaluations import ENDED, LEASE_S, LEASED, WAITING, WORK, State
from kernelproof.db.gpus import LeasedGpu, is_held
from kernelproof.db.leases import is_gone
from kernelproof.db.models import Evaluation, Worker
from kernelproof.db.models import Problem as ProblemRow
from kernelproof.db.rows import Library, Reading, whole
from kernelproof.types import Problem, VerifySettings

ALONE_AFTER = 2
"""After so many lost leases a job is leased alone, which shows whether it kills its daemons."""


@dataclass(frozen=True)
class LeasedJob:
    id: str
    token: int
    problem: Problem
    text: str
    settings: VerifySettings
    label: str | None
    artefact: str | None = None
    """Key of the build that a builder published."""
    alone: bool = False
    """Whether the daemon may hold no other job meanwhile."""


@dataclass(frozen=True)
class WorkerCapabilities:
    role: Role
    backends: tuple[str, ...]
    """Those whose candidates it can build or judge."""

    @property
    def leased_state(self) -> State:
        """The state of a job while such a daemon holds it."""
        return "building" if self.role is Role.BUILD else "running"

    @property
    def accepts(self) -> tuple[tuple[State, str], ...]:
        builds, rest = split_by_build(self.backends)
        if self.role is Role.BUILD:
            return tuple(("queued", name) for name in builds)
        queued = rest if self.role is Role.JUDGE else self.backends
        built = tuple[tuple[State, str], ...](("built", name) for name in self.backends)
        return built + tuple(("queued", name) for name in queued)


def split_by_build(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """The backends whose candidates are built ahead, and those that compile at the first call."""
    builds = [name for name in names if backend(name).first_call is None]
    return builds, [name for name in names if name not in builds]


@dataclass(frozen=True)
class NoResult:
    reason: str
    infrastructure: bool
    """Whether our side failed, and not the request."""


MOST_BAD_GPUS = 3
"""A job during which so many GPUs were set aside is not judged again."""


class JobQueue(HasDatabase):
    """What daemons do with the jobs of a database. Every method is one transaction."""

    def listener(self) -> Listener:
        """Wakes a daemon when there may be work."""
        return self._database.listener(WORK)

    def has_work(self, capabilities: WorkerCapabilities) -> bool:
        """Whether a job waits. Writes nothing, so that idle daemons may ask often."""
        query = _has_work(capabilities)
        if query is None:
            return False
        return bool(self._database.read(lambda session: session.connection().execute(query).scalar()))

    @change_transaction
    def take(
        self,
        session: Session,
        owner: str,
        most: int,
        capabilities: WorkerCapabilities,
        lease_s: float = LEASE_S,
        *,
        busy: bool = False,
    ) -> list[LeasedJob]:
        """Leases up to `most` jobs to a daemon, within its fair share: the highest priority first, then the
        oldest. Jobs past their deadline are left out.

        A re-leased job gets a higher fencing token. One that was lost ALONE_AFTER times comes alone: a `busy`
        daemon gets nothing while it is next.
        """
        state = capabilities.leased_state
        now = clock(session)
        limit = fair_share(session, owner, most, capabilities, now)
        rows = [row for kind in capabilities.accepts for row in _next_rows(session, *kind, limit, now)]
        rows.sort(key=lambda row: (-row[0].priority, row[0].submitted, row[0].id))
        chosen = _leasable_together(rows[:limit], busy)
        return _lease(session, chosen, state, owner, now, lease_s)

    @read_transaction
    def surplus(self, session: Session, owner: str, capabilities: WorkerCapabilities) -> int:
        """How many of its jobs a daemon should give up: those beyond its fair share, when none waits and
        another daemon has at most one left. That one gets them before it is done."""
        daemons = _daemons(session, owner, capabilities, clock(session))
        if daemons == 1 or any(_counted(session, state, name, 1) for state, name in capabilities.accepts):
            return 0
        others = _leased_by_owner(session, capabilities)
        share, mine = -(-sum(others.values()) // daemons), others.pop(owner, 0)
        least = min(others.values(), default=0) if len(others) >= daemons - 1 else 0
        return max(0, mine - share) if least <= 1 else 0

    def renew(self, owner: str, held: Mapping[str, int], lease_s: float = LEASE_S) -> set[str]:
        """Renews a daemon's leases on `held` (id to token), and returns the ids that it has lost."""
        e = Evaluation

        def renew(session: Session) -> set[str]:
            mine = select(e.id, e.token).where(e.owner == owner, e.state.in_(LEASED), e.id.in_(sorted(held)))
            rows = session.execute(mine.order_by(e.id).with_for_update())  # locked in one order
            kept = {number for number, token in rows if held[number] == token}
            _changed(session, update(e).where(e.id.in_(sorted(kept))).values(leased=clock(session) + lease_s))
            return set(held) - kept

        return self._database.change(renew) if held else set()

    def finish(
        self, number: str, token: int, result: Finished | NoResult, gpu: LeasedGpu | None = None
    ) -> bool:
        """Ends a job, and stores its result as an attempt in the same transaction. `gpu`: the judge's GPU.

        False if the token is outdated, since the lease was lost or the job cancelled, or if the judge lost
        its GPU, on which another may have measured meanwhile. Then nothing is stored but the count of late
        verdicts.
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
                row.state, row.error, row.infrastructure = "failed", result.reason, result.infrastructure
            row.finished, row.leased, row.owner = clock(session), None, None
            return True

        done = self._database.change(finish)
        self._database.notify(ENDED)
        return done

    def finish_build(self, number: str, token: int, artefact: str | None) -> bool:
        """Ends the build of a job, which then waits for a judge. `artefact`: the key of what was published.

        False, and counted as a late build, where `finish` is False.
        """

        def finish(session: Session) -> bool:
            row = _held(session, number, token, building=True)
            if row is None:
                return False
            row.state, row.artefact, row.built = "built", artefact, clock(session)
            row.leased, row.owner = None, None
            return True

        done = self._database.change(finish)
        self._database.notify(WORK)
        return done

    def release(self, number: str, token: int) -> None:
        """Puts one job back into the queue, if its daemon still holds it."""
        e = Evaluation
        mine = and_(e.id == number, e.token == token, e.state.in_(LEASED))
        if self._database.change(lambda session: _release(session, mine)):
            self._database.notify(WORK)

    def release_all(self, owner: str, *, bad_gpu: bool = False) -> int:
        """Puts all jobs of a daemon back into the queue; returns their number.

        `bad_gpu`: its GPU was set aside. A job to which this happened MOST_BAD_GPUS times fails, so that one
        candidate cannot take every GPU away.
        """
        e = Evaluation
        mine = and_(e.owner == owner, _is_held())

        def release(session: Session) -> int:
            if not bad_gpu:
                return _release(session, mine)
            _changed(session, update(e).where(mine).values(bad_gpus=e.bad_gpus + 1))
            why = f"{MOST_BAD_GPUS} GPUs in a row were set aside while they had it"
            failed = {"state": "failed", "error": why, "infrastructure": True, "finished": clock(session)}
            worn = update(e).where(mine, e.bad_gpus >= MOST_BAD_GPUS)
            ended = _changed(session, worn.values(**failed, owner=None, leased=None))
            return ended + _release(session, mine)

        back = self._database.change(release)
        if bad_gpu:
            self._database.notify(ENDED)
        if back:
            self._database.notify(WORK)
        return back

    def recover(self) -> int:
        """Puts jobs of lost daemons back: those whose lease expired, or whose process on this machine is
        gone. Ends jobs that were lost too often or are past their deadline. Returns the number of all these.

        Writes nothing if there are none, so that every daemon may call it often.
        """
        e = Evaluation

        def look(session: Session) -> tuple[bool, list[str]]:
            now = clock(session)
            owners = session.scalars(select(e.owner).where(_is_held()).distinct())
            gone = [owner for owner in owners if owner is not None and is_gone(owner)]
            any_such = select(or_(exists().where(_is_lost(now, gone)), exists().where(_is_late(now))))
            return bool(session.scalar(any_such)), gone

        def recover(session: Session) -> tuple[int, int]:
            now = clock(session)
            why = "its deadline passed before a worker was free"
            ended = {"state": "expired", "finished": now, "error": why}
            late = _changed(session, update(e).where(_is_late(now)).values(**ended))
            return _lose(session, _is_lost(now, gone), now), late

        any_such, gone = self._database.read(look)
        if not any_such:
            return 0
        back, late = self._database.change(recover)
        if back:
            self._database.notify(WORK)
        self._database.notify(ENDED)
        return back + late


def fair_share(session: Session, owner: str, most: int, capabilities: WorkerCapabilities, now: float) -> int:
    """How many jobs a daemon may take now: `most` if it is alone, else its share less what it holds.

    The share is all waiting and leased jobs over the daemons that do such work, rounded up so that the last
    job is taken.
    """
    daemons = _daemons(session, owner, capabilities, now)
    if daemons == 1:
        return most
    held = _leased_by_owner(session, capabilities)
    own = held.get(owner, 0)
    # Counted no further than it can matter, since a queue may be long.
    enough = (own + most) * daemons
    waiting = sum(_counted(session, state, name, enough) for state, name in capabilities.accepts)
    share = -(-(waiting + sum(held.values())) // daemons)
    return max(0, min(most, share - own))


_OTHER_DAEMONS = select(Worker.role, Worker.backend).where(
    Worker.owner != bindparam("owner"),
    Worker.ended.is_(None),
    Worker.waits.is_(None),
    Worker.renewed >= bindparam("since"),
)


def _daemons(session: Session, owner: str, capabilities: WorkerCapabilities, now: float) -> int:
    """The number of living daemons for such work, including this one."""
    builds = capabilities.role is Role.BUILD
    roles = {str(Role.ALL), str(Role.BUILD if builds else Role.JUDGE)}
    mine = set(capabilities.backends)
    others = session.connection().execute(_OTHER_DAEMONS, {"owner": owner, "since": now - LEASE_S})
    return 1 + sum(role in roles and bool(mine & set(names.split(","))) for role, names in others)


def _leased_by_owner(session: Session, capabilities: WorkerCapabilities) -> dict[str | None, int]:
    """The number of jobs of such work that each daemon holds."""
    e = Evaluation
    leased = e.state == capabilities.leased_state, e.backend.in_(capabilities.backends)
    counted = select(e.owner, func.count()).where(*leased).group_by(e.owner)
    return {row[0]: row[1] for row in session.execute(counted)}


def _counted(session: Session, state: State, name: str, enough: int) -> int:
    e = Evaluation
    first = select(e.id).where(e.state == state, e.backend == name).limit(enough).subquery()
    return session.scalar(select(func.count()).select_from(first)) or 0


_JobRow = tuple[Evaluation, ProblemRow]


@cache
def _has_work(capabilities: WorkerCapabilities) -> Select[Any] | None:
    """Whether a job waits for such a daemon; None if it takes none."""
    e = Evaluation
    waiting = [exists().where(e.state == state, e.backend == name) for state, name in capabilities.accepts]
    return select(or_(*waiting)) if waiting else None


_SAME_KIND = and_(Evaluation.state == bindparam("state"), Evaluation.backend == bindparam("backend"))
_NEXT_PRIORITY = select(func.max(Evaluation.priority)).where(
    _SAME_KIND, Evaluation.priority < bindparam("priority")
)
_OLDEST = Reading(
    (Evaluation, ProblemRow),
    whole(Evaluation, ProblemRow)
    .join_from(Evaluation, ProblemRow, ProblemRow.id == Evaluation.problem)
    .where(
        _SAME_KIND,
        Evaluation.priority == bindparam("priority"),
        or_(Evaluation.deadline.is_(None), Evaluation.deadline >= bindparam("now")),
    )
    .order_by(Evaluation.submitted, Evaluation.id)
    .limit(bindparam("most"))
    .with_for_update(of=Evaluation.__table__, skip_locked=True),
)
_TABLE = cast(Table, Evaluation.__table__)
_LEASE = (
    update(_TABLE)
    .where(_TABLE.c.id == bindparam("number"))
    .values({name: bindparam(name) for name in ("state", "owner", "token", "leased", "started")})
)
_ABOVE_ALL = 1 << 31


def _next_rows(session: Session, state: State, name: str, most: int, now: float) -> list[_JobRow]:
    """The next jobs in this state and of this backend, locked; rows locked by others are skipped.

    Goes priority by priority, so that each query reads an index from its start however long the queue is.
    """
    connection, kind = session.connection(), {"state": state, "backend": name}
    rows, below = list[_JobRow](), _ABOVE_ALL
    while len(rows) < most:
        priority = connection.execute(_NEXT_PRIORITY, {**kind, "priority": below}).scalar()
        if priority is None:
            break
        below = int(priority)
        values = {**kind, "priority": below, "now": now, "most": most - len(rows)}
        rows += cast(list[_JobRow], _OLDEST.rows(session, values))
    return rows


def _leasable_together(rows: Sequence[_JobRow], busy: bool) -> Sequence[_JobRow]:
    """The first of these that one daemon may hold at once."""
    if rows and rows[0][0].losses >= ALONE_AFTER:
        return [] if busy else rows[:1]
    return list(itertools.takewhile(lambda row: row[0].losses < ALONE_AFTER, rows))


def _lease(
    session: Session, chosen: Sequence[_JobRow], state: State, owner: str, now: float, lease_s: float
) -> list[LeasedJob]:
    """Leases jobs to a daemon; they are in `state` until they end."""
    if not chosen:
        return []
    started = now if state == "running" else None
    values = {"state": state, "owner": owner, "leased": now + lease_s, "started": started}
    leases = [{"number": row.id, "token": row.token + 1, **values} for row, _ in chosen]
    session.connection().execute(_LEASE, leases)
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
            alone=row.losses >= ALONE_AFTER,
        )
        for row, problem in chosen
    ]


def _held(session: Session, number: str, token: int, *, building: bool = False) -> Evaluation | None:
    """The row, locked, if this token holds the lease; else None, and counted as late."""
    row = session.get(Evaluation, number, with_for_update=True)
    if row is None or (row.token == token and row.state == ("building" if building else "running")):
        return row
    if building:
        row.late_builds += 1
    else:
        row.late_verdicts += 1
    return None


def _is_held() -> ColumnElement[bool]:
    """Whether a daemon holds it; phrased as the partial index is."""
    return and_(Evaluation.leased.is_not(None), Evaluation.state.in_(LEASED))


def _is_lost(now: float, gone: Sequence[str]) -> ColumnElement[bool]:
    e = Evaluation
    return and_(_is_held(), or_(e.leased < now, e.owner.in_(gone)))


def _is_late(now: float) -> ColumnElement[bool]:
    e = Evaluation
    return and_(e.state.in_(WAITING), e.deadline.is_not(None), e.deadline < now)


def _release(session: Session, which: ColumnElement[bool]) -> int:
    """Puts jobs back into the state they were taken from; returns their number."""
    back = {"state": _origin(), "owner": None, "leased": None, "started": None}
    return _changed(session, update(Evaluation).where(which).values(**back))


def _lose(session: Session, which: ColumnElement[bool], now: float) -> int:
    """Puts jobs of lost daemons back, and ends those that were lost too often; returns the number of all."""
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
    e = Evaluation
    return case((and_(e.state == "running", e.built.is_not(None)), "built"), else_="queued")


def _changed(session: Session, change: Update) -> int:
    """Executes an update; returns the number of its rows."""
    return int(session.execute(change).rowcount)  # type: ignore[attr-defined]
