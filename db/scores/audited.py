"""Audits of the results that lead the boards now."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection

from kernelproof.db.audits import newest_audits
from kernelproof.db.scores.records import Audited, ProblemScores


def audited(connection: Connection, problems: Iterable[ProblemScores]) -> tuple[Audited, ...]:
    """For each board of which a leading result was audited: how many of them held when they last were.

    A result that took the lead since is not audited.
    """
    leaders: dict[tuple[object, ...], list[tuple[ProblemScores, int]]] = {}
    for row in problems:
        if row.best is not None:
            leaders.setdefault((row.source, row.setting), []).append((row, row.best.verification_id))
    every = [number for board in leaders.values() for _, number in board]
    found = newest_audits(connection, every)
    said = []
    for board in leaders.values():
        audits = [found[number] for _, number in board if number in found]
        if audits:
            first = board[0][0]
            said.append(
                Audited(
                    source=first.source,
                    setting=first.setting,
                    ranked=len(board),
                    audited=len(audits),
                    held=sum(audit.finding.confirms for audit in audits),
                    refuted=sum(audit.finding.refutes for audit in audits),
                    last=max(audit.created for audit in audits),
                )
            )
    return tuple(said)
