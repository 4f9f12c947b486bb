"""The waiting evaluations of the service, in the order in which daemons take them. Callers hold the
transaction."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import cache
from typing import Any, cast

from sqlalchemy import Select, Table, and_, bindparam, exists, func, or_, select, update
from sqlalchemy.orm import Session

from kernelproof.db import loading
from kernelproof.db.evaluation_records import TOGETHER, State, Taken, Wanted
from kernelproof.db.models import Problem as ProblemRow
from kernelproof.db.rows import Reading, whole
from kernelproof.db.service_tables import Evaluation
from kernelproof.db.texts import Library
from kernelproof.types import VerifySettings

Found = tuple[Evaluation, ProblemRow]
"""The rows of an evaluation and of its problem, to read."""


@cache
def any_waits(wanted: Wanted) -> Select[Any] | None:
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
) -> list[Taken]:
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
        Taken(
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
