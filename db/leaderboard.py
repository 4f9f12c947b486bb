"""The leaderboard: arithmetic on turns. docs/guide/leaderboard.md defines every figure."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from sqlalchemy import Connection

from kernelproof.db.turns import (
    CORRECT,
    NO_JUDGEMENT,
    ProblemFacts,
    Rules,
    RunFacts,
    Turn,
    flags_of,
    read_turns,
)
from kernelproof.db.views import (
    BestResult,
    Leaderboard,
    LeaderboardFilters,
    ModelResult,
    ProblemResult,
    Setting,
)
from kernelproof.types import ErrorClass, Interval, Pace, Status


def leaderboard(connection: Connection, filters: LeaderboardFilters) -> Leaderboard:
    """Best speedups by problem and rates by model of the attempts that pass the filters."""
    runs, problems, turns, retracted = read_turns(connection, filters)
    samples = _samples(turns)
    return Leaderboard(
        filters=filters,
        problems=_by_problem(samples, runs, problems),
        models=_by_model(turns, samples, runs),
        unfinished=sum(t.status is None for t in turns),
        refused=sum(t.status == CORRECT and not t.correct for t in turns),
        retracted=retracted,
    )


def _samples(turns: Sequence[Turn]) -> list[Turn]:
    """For each finished sample the turn that decides: its fastest correct one, else its last one.

    A sample that was judged under several settings, or on several devices, counts under each of them. A turn
    that reached no device belongs to wherever the sample's other turns ran.
    """
    groups: defaultdict[tuple[int, int, int, Rules], list[Turn]] = defaultdict(list)
    for turn in turns:
        if turn.on_device:
            groups[turn.run_id, turn.problem, turn.sample, turn.rules].append(turn)
    ran: defaultdict[tuple[int, int, int, Rules], list[list[Turn]]] = defaultdict(list)
    for (run, problem, sample, rules), group in groups.items():
        ran[run, problem, sample, rules._replace(device=None)].append(group)
    for turn in turns:
        if not turn.on_device:
            place = (turn.run_id, turn.problem, turn.sample)
            for group in ran.get((*place, turn.rules._replace(device=None))) or [
                groups[(*place, turn.rules)]
            ]:
                group.append(turn)
    deciding = (max(group, key=lambda t: (t.correct, t.claimed, t.turn)) for group in groups.values())
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
    for (problem, rules), group in _grouped(samples, lambda t: (t.problem, t.rules)).items():
        best = max(group, key=lambda t: (t.claimed, -t.attempt_id))
        results.append(
            ProblemResult(
                problem_id=problems[problem].problem_id,
                problem_sha256=problems[problem].sha256,
                level=problems[problem].level,
                setting=Setting(**rules._asdict()),
                judged=sum(t.status not in NO_JUDGEMENT for t in group),
                correct=sum(t.correct for t in group),
                best=_best(best, runs),
            )
        )
    return tuple(
        sorted(results, key=lambda r: (natural(r.problem_id), setting_order(r.setting), r.problem_sha256))
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
        error_class=None if turn.error_class is None else ErrorClass(turn.error_class),
        flags=flags_of(turn.flags),
    )


def _by_model(turns: list[Turn], samples: list[Turn], runs: dict[int, RunFacts]) -> tuple[ModelResult, ...]:
    def key(turn: Turn) -> tuple[str, Rules]:
        return runs[turn.run_id].model, turn.rules

    attempts = Counter(key(turn) for turn in turns if turn.status is not None)
    results = [
        _model_result(model, Setting(**rules._asdict()), group, attempts[model, rules])
        for (model, rules), group in _grouped(samples, key).items()
    ]
    return tuple(
        sorted(results, key=lambda r: (setting_order(r.setting), -(r.rate or 0), -(r.fast_1 or 0), r.model))
    )


def _model_result(model: str, setting: Setting, samples: list[Turn], attempts: int) -> ModelResult:
    judged = [t for t in samples if t.status not in NO_JUDGEMENT]
    correct = [t for t in judged if t.correct]
    by_problem = _grouped(judged, lambda t: t.problem)
    fastest = [max(group, key=lambda t: t.claimed).speedup for group in by_problem.values()]
    logs = [math.log(speedup) for speedup in fastest if speedup > 0]
    return ModelResult(
        model=model,
        setting=setting,
        attempts=attempts,
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

    A speedup whose pace is unresolved counts as 1 at most (`Times.counted`).

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


def natural(text: str) -> tuple[tuple[int, str], ...]:
    """Sorts `level1/9` before `level1/10`."""
    return tuple(
        (int(part or 0), "") if part.isdecimal() else (-1, part) for part in re.split(r"([0-9]+)", text)
    )


def setting_order(setting: Setting) -> tuple[str, str, str, str, str, bool]:
    """The order in which settings are shown."""
    rules = (setting.numerics, setting.purity, not setting.own_kernel)
    return setting.backend, setting.size, setting.device or "", *rules
