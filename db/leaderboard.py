"""The leaderboard: a few narrow scans, then arithmetic. docs/leaderboard.md defines every figure.

Raw samples, logs and other wide columns are never read: 10,000 attempts take a fraction of a second.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from sqlalchemy import Connection, select

from db.models import Attempt, Environment, Measurement, Problem, Retraction, Run, Verification
from db.views import BestResult, Leaderboard, LeaderboardFilters, ModelResult, ProblemResult, Setting
from pipeline.nouns import Interval, Pace, Status

CORRECT = Status.CORRECT.value
NO_JUDGEMENT = frozenset(status.value for status in Status if not status.counts_against_model)


class RunFacts(NamedTuple):
    """A run's columns that matter here."""

    id: int
    name: str | None
    kind: str
    model: str
    backend: str
    size: str


class ProblemFacts(NamedTuple):
    """A problem's columns that matter here."""

    id: int
    problem_id: str
    sha256: str
    level: int | None


class AttemptFacts(NamedTuple):
    """An attempt's columns that matter here."""

    id: int
    run_id: int
    problem: int
    sample: int
    turn: int
    status: str | None


class Verdict(NamedTuple):
    """A verification's columns that matter here; an index holds them all."""

    attempt_id: int
    id: int
    status: str
    backend: str
    size: str
    environment_id: int | None


class Times(NamedTuple):
    """A measurement's columns that matter here; an index holds them all."""

    verification_id: int
    speedup: float
    low: float
    high: float
    candidate_ms: float
    baseline_ms: float
    pace: str
    baseline: str


class Turn(NamedTuple):
    """One finished or unfinished attempt, with the verification that counts."""

    attempt_id: int
    run_id: int
    problem: int
    sample: int
    turn: int
    status: str | None
    backend: str
    size: str
    device: str | None
    times: Times | None
    correct: bool
    speedup: float
    """0 unless correct and measured: such a turn ranks behind every measured one."""


def leaderboard(connection: Connection, filters: LeaderboardFilters) -> Leaderboard:
    """Best speedups by problem and rates by model of the attempts that pass the filters."""
    all_runs = (RunFacts(*row) for row in connection.execute(_RUNS).all())
    all_problems = (ProblemFacts(*row) for row in connection.execute(_PROBLEMS).all())
    runs = {run.id: run for run in all_runs if _run_passes(run, filters)}
    problems = {problem.id: problem for problem in all_problems if _problem_passes(problem, filters)}
    retracted, everything = _turns(connection, runs)
    turns = [t for t in everything if t.problem in problems and _setting_passes(t, filters)]
    samples = _samples(turns)
    return Leaderboard(
        filters=filters,
        problems=_by_problem(samples, runs, problems),
        models=_by_model(turns, samples, runs),
        unfinished=sum(t.status is None for t in turns),
        retracted=sum(problem in problems for problem in retracted),
    )


_RUNS = select(Run.id, Run.name, Run.kind, Run.model, Run.backend, Run.size)
_PROBLEMS = select(Problem.id, Problem.problem_id, Problem.sha256, Problem.level)
_DEVICES = select(Environment.id, Environment.device_name)
_ATTEMPTS = select(Attempt.id, Attempt.run_id, Attempt.problem, Attempt.sample, Attempt.turn, Attempt.status)
_VERDICTS = (
    select(
        Verification.attempt_id,
        Verification.id,
        Verification.status,
        Verification.backend,
        Verification.size,
        Verification.environment_id,
    )
    .where(Verification.kind != "reproduce")
    .order_by(Verification.attempt_id)
)
_TIMES = select(
    Measurement.verification_id,
    Measurement.speedup,
    Measurement.speedup_low,
    Measurement.speedup_high,
    Measurement.candidate_ms,
    Measurement.baseline_ms,
    Measurement.pace,
    Measurement.baseline,
)


def _run_passes(run: RunFacts, filters: LeaderboardFilters) -> bool:
    return (
        (filters.run is None or run.name == filters.run)
        and (filters.kind is None or run.kind == filters.kind)
        and (filters.model is None or filters.model.casefold() in run.model.casefold())
    )


def _problem_passes(problem: ProblemFacts, filters: LeaderboardFilters) -> bool:
    return (filters.level is None or problem.level == filters.level) and (
        filters.problem is None or fnmatchcase(problem.problem_id, filters.problem)
    )


def _setting_passes(turn: Turn, filters: LeaderboardFilters) -> bool:
    return (
        (filters.backend is None or turn.backend == filters.backend)
        and (filters.size is None or turn.size == filters.size)
        and (filters.device is None or filters.device.casefold() in (turn.device or "").casefold())
    )


def _turns(connection: Connection, runs: dict[int, RunFacts]) -> tuple[list[int], list[Turn]]:
    """Problems of the attempts that were retracted wholly, and all other attempts of the runs."""
    devices: dict[int | None, str] = {row[0]: row[1] for row in connection.execute(_DEVICES)}
    retracted, chosen = _verdicts(connection)
    measured = {row[0]: Times(*row) for row in connection.execute(_TIMES).all()}
    all_attempts = (AttemptFacts(*row) for row in connection.execute(_ATTEMPTS).all())
    attempts = [attempt for attempt in all_attempts if attempt.run_id in runs]
    usual = _usual_devices(attempts, chosen, devices)
    gone, turns = [], []
    for a in attempts:
        verdict = chosen.get(a.id)
        if verdict is None and a.id in retracted:
            gone.append(a.problem)
            continue
        facts = verdict or runs[a.run_id]
        device = devices.get(verdict.environment_id) if verdict else None
        status = verdict.status if verdict else a.status
        times = measured.get(verdict.id) if verdict else None
        correct = status == CORRECT
        turns.append(
            Turn(
                attempt_id=a.id,
                run_id=a.run_id,
                problem=a.problem,
                sample=a.sample,
                turn=a.turn,
                status=status,
                backend=facts.backend,
                size=facts.size,
                device=device or usual.get(a.run_id),
                times=times,
                correct=correct,
                speedup=times.speedup if correct and times else 0.0,
            )
        )
    return gone, turns


def _verdicts(connection: Connection) -> tuple[set[int], dict[int, Verdict]]:
    """Attempts with a retracted verification, and for each attempt the verification that counts.

    That is the newest one not retracted; one that judged nothing (our machine failed, or had no device)
    gives way to any that did.
    """
    gone = set(connection.scalars(select(Retraction.verification_id)))
    retracted: set[int] = set()
    chosen: dict[int, Verdict] = {}
    for row in connection.execute(_VERDICTS).all():
        verdict = Verdict(*row)
        if verdict.id in gone:
            retracted.add(verdict.attempt_id)
            continue
        rival = chosen.get(verdict.attempt_id)
        if rival is None or _weight(verdict) > _weight(rival):
            chosen[verdict.attempt_id] = verdict
    return retracted, chosen


def _weight(verdict: Verdict) -> tuple[bool, int]:
    return verdict.status not in NO_JUDGEMENT, verdict.id


def _usual_devices(
    attempts: Iterable[AttemptFacts], chosen: dict[int, Verdict], devices: dict[int | None, str]
) -> dict[int, str]:
    """Run to the device that most of its attempts ran on: where those count that reached no device."""
    seen: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for a in attempts:
        verdict = chosen.get(a.id)
        if verdict is not None and verdict.environment_id is not None:
            seen[a.run_id][devices[verdict.environment_id]] += 1
    return {run: max(sorted(counts), key=lambda device: counts[device]) for run, counts in seen.items()}


def _samples(turns: Iterable[Turn]) -> list[Turn]:
    """For each finished sample the turn that decides: its fastest correct one, else its last one."""
    groups: defaultdict[tuple[int, int, int], list[Turn]] = defaultdict(list)
    for turn in turns:
        groups[turn.run_id, turn.problem, turn.sample].append(turn)
    deciding = (max(group, key=lambda t: (t.correct, t.speedup, t.turn)) for group in groups.values())
    return [turn for turn in deciding if turn.status is not None]


def _grouped(turns: Iterable[Turn], key: Callable[[Turn], Any]) -> dict[Any, list[Turn]]:
    groups: defaultdict[Any, list[Turn]] = defaultdict(list)
    for turn in turns:
        groups[key(turn)].append(turn)
    return groups


def _by_problem(
    samples: list[Turn], runs: dict[int, RunFacts], problems: dict[int, ProblemFacts]
) -> tuple[ProblemResult, ...]:
    results = []
    for (problem, *setting), group in _grouped(
        samples, lambda t: (t.problem, t.backend, t.size, t.device)
    ).items():
        best = max(group, key=lambda t: (t.speedup, -t.attempt_id))
        results.append(
            ProblemResult(
                problem_id=problems[problem].problem_id,
                problem_sha256=problems[problem].sha256,
                level=problems[problem].level,
                setting=Setting(backend=setting[0], size=setting[1], device=setting[2]),
                judged=sum(t.status not in NO_JUDGEMENT for t in group),
                correct=sum(t.correct for t in group),
                best=_best(best, runs),
            )
        )
    return tuple(
        sorted(results, key=lambda r: (_natural(r.problem_id), _setting_order(r.setting), r.problem_sha256))
    )


def _best(turn: Turn, runs: dict[int, RunFacts]) -> BestResult | None:
    m = turn.times
    if not turn.correct or m is None:
        return None
    return BestResult(
        attempt_id=turn.attempt_id,
        model=runs[turn.run_id].model,
        speedup=m.speedup,
        interval=Interval(low=m.low, high=m.high),
        pace=Pace(m.pace),
        candidate_ms=m.candidate_ms,
        baseline_ms=m.baseline_ms,
        baseline=m.baseline,
    )


def _by_model(turns: list[Turn], samples: list[Turn], runs: dict[int, RunFacts]) -> tuple[ModelResult, ...]:
    def key(turn: Turn) -> tuple[str, str, str, str | None]:
        return runs[turn.run_id].model, turn.backend, turn.size, turn.device

    attempts = Counter(key(turn) for turn in turns if turn.status is not None)
    results = [
        _model_result(model, Setting(backend=backend, size=size, device=device), group, attempts)
        for (model, backend, size, device), group in _grouped(samples, key).items()
    ]
    return tuple(
        sorted(results, key=lambda r: (_setting_order(r.setting), -(r.rate or 0), -(r.fast_1 or 0), r.model))
    )


def _model_result(
    model: str, setting: Setting, samples: list[Turn], attempts: Counter[tuple[str, str, str, str | None]]
) -> ModelResult:
    judged = [t for t in samples if t.status not in NO_JUDGEMENT]
    correct = [t for t in judged if t.correct]
    by_problem = _grouped(judged, lambda t: t.problem)
    fastest = [max(t.speedup for t in group) for group in by_problem.values()]
    logs = [math.log(speedup) for speedup in fastest if speedup > 0]
    return ModelResult(
        model=model,
        setting=setting,
        attempts=attempts[model, setting.backend, setting.size, setting.device],
        samples=len(samples),
        judged=len(judged),
        correct=len(correct),
        rate=_share(len(correct), len(judged)),
        statuses={
            Status(name): count for name, count in Counter(str(t.status) for t in samples).most_common()
        },
        fast_1=_fast(1.0, judged),
        fast_2=_fast(2.0, judged),
        geometric_mean=math.exp(sum(logs) / len(logs)) if logs else None,
        solved=sum(any(t.correct for t in group) for group in by_problem.values()),
        problems=len(by_problem),
        pass_1=_mean([sum(t.correct for t in group) / len(group) for group in by_problem.values()]),
    )


def _fast(p: float, judged: list[Turn]) -> float | None:
    """fast_p of KernelBench (Ouyang et al. 2025), over samples: the part correct with a speedup above p.

    None where correct samples exist but none of them was measured: nothing is known about speed then.
    """
    correct = [t for t in judged if t.correct]
    if correct and all(t.times is None for t in correct):
        return None
    return _share(sum(t.speedup > p for t in judged), len(judged))


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _natural(text: str) -> tuple[tuple[int, str], ...]:
    """Sorts `level1/9` before `level1/10`."""
    return tuple(
        (int(part or 0), "") if part.isdecimal() else (-1, part) for part in re.split(r"([0-9]+)", text)
    )


def _setting_order(setting: Setting) -> tuple[str, str, str]:
    return setting.backend, setting.size, setting.device or ""
