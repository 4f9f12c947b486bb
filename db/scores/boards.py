"""The views of the leaderboard, and the audits of the results that lead them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

import numpy as np
from sqlalchemy import Connection

from kernelproof.db.reported import newest_audits
from kernelproof.db.scores.filters import RunFacts
from kernelproof.db.scores.packing import Floats, Ints, Truths, dense
from kernelproof.db.scores.records import Audited, Kernel, KernelScores, Mean, ProblemScores, Rate, Source
from kernelproof.db.scores.selecting import Selected
from kernelproof.db.scores.statistics import mean_interval, wilson
from kernelproof.types import ErrorClass, Flag, Interval, Pace, Setting

SOURCES: tuple[Source, ...] = ("model", "file", "tuner")


def source_of(run: RunFacts) -> int:
    return {"verify": 1, "tune": 2}.get(run.kind, 0)


def rate(part: int, whole: int) -> Rate:
    return Rate(part=part, whole=whole, share=part / whole if whole else None, interval=wilson(part, whole))


def geometric_mean(values: Floats) -> Mean:
    """The geometric mean of the positive ones, with its bootstrap interval."""
    logs = np.log(values[values > 0])
    if not len(logs):
        return Mean(value=None, interval=None, count=0)
    found = mean_interval(logs)
    interval = found and Interval(low=float(np.exp(found.low)), high=float(np.exp(found.high)))
    return Mean(value=float(np.exp(logs.mean())), interval=interval, count=len(logs))


def by_run_column(of: Selected, values: dict[int, int]) -> Ints:
    """For each row the value of its run."""
    size = max(values, default=0) + 1
    column = np.zeros(size, np.int64)
    for run, value in values.items():
        column[run] = value
    found: Ints = column[of.rows["run"]]
    return found


def firsts(place: Ints, count: int, claimed: Floats, attempt: Ints, chosen: Truths) -> Ints:
    """For each of `count` places the row that ranks first of those chosen: the highest claim, then the oldest
    attempt; -1 where none is chosen."""
    best = np.full(count, -1.0)
    np.maximum.at(best, place[chosen], claimed[chosen])
    rows = np.flatnonzero(chosen & (claimed == best[place]))
    order = np.lexsort((-attempt[rows], place[rows]))
    first = np.full(count, -1)
    first[place[rows[order]]] = rows[order]  # the last one written is the oldest
    return first


def kernel(of: Selected, row: int) -> Kernel:
    r = of.rows.record(row)
    facts, run = of.facts.all[r["facts"]], of.book.runs[int(r["run"])]
    compiled, fraction = _known(r["compile_speedup"]), _known(r["fraction"])
    return Kernel(
        attempt_id=int(r["attempt"]),
        verification_id=int(r["verification"]),
        model=run.model,
        run=run.name,
        run_id=run.id,
        strategy=run.strategy,
        speedup=float(r["speedup"]),
        interval=Interval(low=float(r["low"]), high=float(r["high"])),
        pace=Pace(facts.pace),
        candidate_ms=float(r["candidate_ms"]),
        baseline_ms=float(r["baseline_ms"]),
        baseline=facts.baseline or "eager",
        compile_speedup=compiled,
        compile_interval=None
        if compiled is None
        else Interval(low=float(r["compile_low"]), high=float(r["compile_high"])),
        roofline_fraction=fraction,
        headroom=1 / fraction if fraction else None,
        rigor=facts.rigor,
        error_class=None if facts.error_class is None else ErrorClass(facts.error_class),
        flags=tuple(map(Flag, json.loads(facts.flags))),
    )


def _known(figure: np.float64) -> float | None:
    return float(figure) if np.isfinite(figure) else None


def problem_scores(samples: Selected) -> tuple[ProblemScores, ...]:
    problems = list(samples.book.problems)
    place, groups = dense(
        (_index(samples.rows["problem"], problems), len(problems)),
        (samples.rule, len(samples.settings)),
        (sources(samples), len(SOURCES)),
    )
    judged = samples.facts.judged[samples.rows["facts"]]
    best = firsts(place, len(groups), samples.claimed, samples.rows["attempt"], samples.measured)
    total, of_judged, correct = (
        np.bincount(place, weights=column, minlength=len(groups)).astype(int)
        for column in (np.ones(len(place)), judged, samples.correct)
    )
    results = []
    for number, (problem, rule, source) in enumerate(groups):
        facts = samples.book.problems[problems[problem]]
        results.append(
            ProblemScores(
                source=SOURCES[source],
                problem_id=facts.problem_id,
                problem_sha256=facts.sha256,
                problem=facts.name,
                suite=facts.suite,
                level=facts.level,
                setting=samples.settings[rule],
                samples=int(total[number]),
                errors=int(total[number] - of_judged[number]),
                correct=rate(int(correct[number]), int(of_judged[number])),
                best=kernel(samples, int(best[number])) if best[number] >= 0 else None,
            )
        )
    results.sort(
        key=lambda r: (
            SOURCES.index(r.source),
            setting_order(r.setting),
            natural(r.problem_id),
            r.problem_sha256,
        )
    )
    return tuple(results)


def kernel_scores(samples: Selected, top: int | None) -> tuple[KernelScores, ...]:
    """The correct measured samples of each setting and source, those that rank first; `top` of each."""
    chosen = np.flatnonzero(samples.measured)
    place, groups = dense(
        (sources(samples)[chosen], len(SOURCES)), (samples.rule[chosen], len(samples.settings))
    )
    results = []
    claimed, attempt = samples.claimed[chosen], samples.rows["attempt"][chosen]
    order = sorted(
        range(len(groups)), key=lambda n: (groups[n][0], setting_order(samples.settings[groups[n][1]]))
    )
    for number in order:
        source, rule = groups[number]
        inside = np.flatnonzero(place == number)
        if top is not None and len(inside) > top:
            edge = np.partition(claimed[inside], len(inside) - top)[len(inside) - top]
            inside = inside[claimed[inside] >= edge]
        ranked = inside[np.lexsort((attempt[inside], -claimed[inside]))][:top]
        for row in chosen[ranked].tolist():
            facts = samples.book.problems[int(samples.rows["problem"][row])]
            results.append(
                KernelScores(
                    source=SOURCES[source],
                    problem_id=facts.problem_id,
                    problem_sha256=facts.sha256,
                    problem=facts.name,
                    setting=samples.settings[rule],
                    kernel=kernel(samples, row),
                )
            )
    return tuple(results)


def _index(values: Ints, of: Sequence[int]) -> Ints:
    return np.searchsorted(np.array(of, np.int64), values)


def sources(of: Selected) -> Ints:
    return by_run_column(of, {number: source_of(run) for number, run in of.book.runs.items()})


def natural(text: str) -> tuple[tuple[int, str], ...]:
    """Sorts `level1/9` before `level1/10`."""
    return tuple(
        (int(part or 0), "") if part.isdecimal() else (-1, part) for part in re.split(r"([0-9]+)", text)
    )


def setting_order(setting: Setting) -> tuple[str, str, str, str, str, bool]:
    rules = (setting.numerics, setting.purity, not setting.own_kernel)
    return setting.backend, setting.size, setting.device or "", *rules


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
