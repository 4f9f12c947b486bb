"""The one rule: which verification of an attempt counts, and where. docs/rationale/counting.md explains it.

Every reader follows it: leaderboard, `show`, live pages, exports, the service's answers, and the views for
SQL. Reproductions and retracted verifications are out beforehand.
"""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import Connection, text

from kernelproof.types import Status
from kernelproof.version import POLICY as POLICY

NO_JUDGEMENT = frozenset(status.value for status in Status if not status.counts_against_model)
"""Statuses that say nothing about the candidate."""


class VerificationRank(NamedTuple):
    """The rank of a verification among those of its attempt: the greatest one counts."""

    current: bool
    """It is of the current policy, and not stale."""
    judged: bool
    """It judged the candidate: neither our machine failed, nor was there no device."""
    confirmed: bool
    """It is no screening of a search."""
    number: int
    """The newest of equals counts."""


def rank_verification(policy: str | None, status: str, screening: bool, number: int = 0) -> VerificationRank:
    """The rank of verification `number`."""
    return VerificationRank(policy == POLICY, status not in NO_JUDGEMENT, not screening, number)


def order_in_sql(table: str, current: str | None = None) -> str:
    """The same for ORDER BY: the verification that counts comes first. `table`: that of `verifications`.

    `current`: the current policy, as an expression in SQL; None: this program's.
    """
    unjudged = ", ".join(f"'{status}'" for status in sorted(NO_JUDGEMENT))
    return (
        f"{stale_in_sql(table, current)}, "
        f"CASE WHEN {table}.status IN ({unjudged}) THEN 1 ELSE 0 END, "
        f"CASE WHEN {table}.screening THEN 1 ELSE 0 END, {table}.id DESC"
    )


def stale_in_sql(table: str, current: str | None = None) -> str:
    """Whether a verification is stale: 1 or 0. As `order_in_sql`."""
    return f"CASE WHEN {table}.policy = {current or repr(POLICY)} THEN 0 ELSE 1 END"


CURRENT_POLICY = "(SELECT policy FROM current_policy)"
"""The current policy within the database, which views know no other way."""


def is_policy_followed(connection: Connection) -> bool:
    """Whether the database has this program's policy as the current one, or that of a newer program."""
    stored = connection.execute(text("SELECT policy FROM current_policy")).scalar()
    return stored is not None and int(stored) >= int(POLICY)


def follow_policy(connection: Connection) -> bool:
    """Makes this program's policy the current one of the database, unless a newer program was there."""
    if not is_policy_followed(connection):
        connection.execute(text("DELETE FROM current_policy"))
        connection.execute(text("INSERT INTO current_policy (policy) VALUES (:policy)"), {"policy": POLICY})
    return True
