"""Claims about imported programs, beside the verdicts of this database."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np
from sqlalchemy import Connection, RowMapping, func, select

from kernelproof.db.models import Reported
from kernelproof.db.scores.boards import kernel, natural, setting_order
from kernelproof.db.scores.filters import Filters
from kernelproof.db.scores.leaderboard_query import selected
from kernelproof.db.scores.selecting import Selected
from kernelproof.types import Flag, FrozenRecord, Interval, Pace, Setting, Status
from kernelproof.types.measurement import resolved


class ClaimedResult(FrozenRecord):
    """One imported program under one setting: the claim, and the verdict."""

    problem_id: str
    problem_sha256: str
    attempt_id: int
    model: str
    source: str
    setting: Setting
    claimed: bool
    """False when nothing was claimed of it."""
    claimed_compiled: bool | None
    claimed_correct: bool | None
    claimed_ms: float | None
    """Milliseconds of one call."""
    claimed_speedup: float | None
    claimed_device: str | None
    status: Status | None
    """None while it is not judged."""
    judged: bool
    """Whether the status counts against a model: our machine did not fail, and there was a device."""
    correct: bool
    """Correct, and not left out by the filters."""
    speedup: float | None
    """None unless correct and measured."""
    interval: Interval | None
    """Of the speedup, 95 %."""
    pace: Pace | None
    candidate_ms: float | None
    baseline_ms: float | None
    flags: tuple[Flag, ...]


class ClaimTotals(FrozenRecord):
    """All imported programs under one setting, counted."""

    setting: Setting
    programs: int
    with_claim: int
    judged: int
    correct: int
    """Judged correct."""
    claimed_correct: int
    confirmed: int
    """Claimed correct, and judged correct."""
    refuted: int
    """Claimed correct, and judged otherwise. The rest of the claims could not be judged."""
    claimed_wrong_judged_correct: int
    claimed_faster: int
    """Claimed correct with a speedup above 1."""
    confirmed_faster: int
    """Of these, correct and faster here: the whole interval is above 1."""
    compared: int
    """Programs with a claimed speedup that are correct and measured here."""
    claimed_geometric_mean: float | None
    """Of their claimed speedups."""
    geometric_mean: float | None
    """Of the same programs' speedups here. One whose pace is unresolved counts with no more than 1."""


class Claims(FrozenRecord):
    """The answer of `ScoreQueries.claims`."""

    filters: Filters
    totals: tuple[ClaimTotals, ...]
    results: tuple[ClaimedResult, ...]
    """By setting, then by problem in the order of their numbers."""


_REPORTS = select(
    *(Reported.attempt_id, Reported.source, Reported.said_in, Reported.compiled, Reported.correct),
    *(Reported.runtime_ms, Reported.speedup, Reported.device),
)


def claims(connection: Connection, filters: Filters) -> Claims:
    """Every imported program that passes the filters, under each setting that it was judged under."""
    newest = select(func.max(Reported.id)).group_by(Reported.attempt_id)
    rows = connection.execute(_REPORTS.where(Reported.id.in_(newest))).mappings()
    reports = {row["attempt_id"]: row for row in rows}
    found = selected(connection, filters)
    imported = found.only(np.isin(found.rows["attempt"], list(reports)))
    results = [
        _result(imported, row, reports[attempt])
        for row, attempt in enumerate(imported.rows["attempt"].tolist())
    ]
    results.sort(key=lambda r: (setting_order(r.setting), natural(r.problem_id), r.attempt_id))
    groups: defaultdict[Setting, list[ClaimedResult]] = defaultdict(list)
    for result in results:
        groups[result.setting].append(result)
    totals = tuple(_totals(setting, group) for setting, group in groups.items())
    return Claims(filters=filters, totals=totals, results=tuple(results))


def _result(found: Selected, row: int, report: RowMapping) -> ClaimedResult:
    turn = found.rows.record(row)
    facts = found.facts.all[turn["facts"]]
    problem, run = found.book.problems[int(turn["problem"])], found.book.runs[int(turn["run"])]
    times = kernel(found, row) if found.measured[row] else None
    return ClaimedResult(
        problem_id=problem.problem_id,
        problem_sha256=problem.sha256,
        attempt_id=int(turn["attempt"]),
        model=run.model,
        source=report["source"],
        setting=found.settings[found.rule[row]],
        claimed=report["said_in"] is not None,
        claimed_compiled=report["compiled"],
        claimed_correct=report["correct"],
        claimed_ms=report["runtime_ms"],
        claimed_speedup=report["speedup"],
        claimed_device=report["device"],
        status=None if facts.status is None else Status(facts.status),
        judged=bool(found.facts.judged[turn["facts"]]),
        correct=bool(found.correct[row]),
        speedup=times.speedup if times else None,
        interval=times.interval if times else None,
        pace=times.pace if times else None,
        candidate_ms=times.candidate_ms if times else None,
        baseline_ms=times.baseline_ms if times else None,
        flags=tuple(map(Flag, json.loads(facts.flags))),
    )


def _totals(setting: Setting, results: Sequence[ClaimedResult]) -> ClaimTotals:
    def count(test: Callable[[ClaimedResult], object]) -> int:
        return sum(bool(test(result)) for result in results)

    said_right = [r for r in results if r.claimed_correct]
    said_faster = [r for r in said_right if (r.claimed_speedup or 0) > 1]
    pairs = [
        (r.claimed_speedup, resolved(r.speedup, r.pace))
        for r in results
        if r.claimed_speedup and r.speedup and r.pace
    ]
    return ClaimTotals(
        setting=setting,
        programs=len(results),
        with_claim=count(lambda r: r.claimed),
        judged=count(lambda r: r.judged),
        correct=count(lambda r: r.correct),
        claimed_correct=len(said_right),
        confirmed=sum(r.correct for r in said_right),
        refuted=sum(r.judged and not r.correct for r in said_right),
        claimed_wrong_judged_correct=count(lambda r: r.claimed_correct is False and r.correct),
        claimed_faster=len(said_faster),
        confirmed_faster=sum(r.pace is Pace.FASTER for r in said_faster),
        compared=len(pairs),
        claimed_geometric_mean=_geometric_mean([claimed for claimed, _ in pairs]),
        geometric_mean=_geometric_mean([speedup for _, speedup in pairs]),
    )


def _geometric_mean(values: Sequence[float]) -> float | None:
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None
