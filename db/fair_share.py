"""How many evaluations a daemon may have while others could take them too.

Two judges, 40 evaluations, 34 places each: without a rule the first judge takes 34, and the GPU of the second
is idle for most of the time. With the rule each has 20. A daemon that is alone fills its places.
"""

from __future__ import annotations

from sqlalchemy import bindparam, func, select
from sqlalchemy.orm import Session

from kernelproof.choices import Role
from kernelproof.db.evaluation_records import LEASE_S, State, Wanted
from kernelproof.db.service_tables import Evaluation, Worker


def fair_share(session: Session, owner: str, most: int, wanted: Wanted, now: float) -> int:
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


def _takers(session: Session, owner: str, wanted: Wanted, now: float) -> int:
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
