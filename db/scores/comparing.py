"""Two models, runs, templates or strategies side by side: paired by problem, with tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from kernelproof.db.scores.boards import SOURCES, firsts, geometric_mean, natural, setting_order, sources
from kernelproof.db.scores.filters import RunFacts
from kernelproof.db.scores.packing import dense
from kernelproof.db.scores.records import Mean, Source
from kernelproof.db.scores.selecting import Selected
from kernelproof.db.scores.statistics import mean_interval, sign_test, signed_rank_test
from kernelproof.errors import UsageError
from kernelproof.types import FrozenRecord, Interval, Setting

Kind = Literal["model", "run", "template", "strategy"]
KINDS: tuple[Kind, ...] = ("model", "run", "template", "strategy")
Winner = Literal["a", "b", "tie", "neither"]


class Side(FrozenRecord):
    judged: int
    correct: int
    attempt_id: int | None
    """The best correct measured sample's; None without one."""
    speedup: float | None
    """Its speedup; 1 at most where the pace is unresolved."""
    interval: Interval | None


class ComparedProblem(FrozenRecord):
    problem_id: str
    problem_sha256: str
    a: Side
    b: Side
    more_correct: Winner
    """Whose rate of correct samples is higher. `neither`: both are 0."""
    faster: Winner
    """Whose best is faster: the two intervals do not overlap, or only one side has a measured correct sample.
    `tie`: they overlap. `neither`: none has one."""


class Comparison(FrozenRecord):
    """A and B under one setting, over the problems that both were judged on."""

    kind: Kind
    a: str
    b: str
    source: Source
    setting: Setting
    problems: tuple[ComparedProblem, ...]
    only_a: int
    """Problems that only A was judged on: they are left out. Likewise `only_b`."""
    only_b: int
    correct_a: float
    """Mean over the problems of the rate of correct samples. Likewise `correct_b`."""
    correct_b: float
    correct_difference: Mean
    """A's less B's, with a bootstrap interval over problems."""
    more_correct_a: int
    """Problems on which A's rate is higher. Likewise `more_correct_b`."""
    more_correct_b: int
    correct_p: float
    """Exact sign test over these; with one sample a problem McNemar's exact test."""
    ratio: Mean
    """Geometric mean of A's best speedup over B's, on the problems where both have one; with a paired
    bootstrap interval."""
    ratio_p: float | None
    """Wilcoxon's signed-rank test on the logarithms of these ratios; None without any."""
    faster_a: int
    """Problems on which A's best is faster (`faster` above). Likewise `faster_b`."""
    faster_b: int


def name_of(run: RunFacts, kind: Kind) -> str | None:
    return (run.name or str(run.id)) if kind == "run" else getattr(run, kind)


def kind_of(runs: dict[int, RunFacts], a: str, b: str, kind: Kind | None) -> Kind:
    """The kind that A and B share. Raises UsageError where they share none, or several."""
    names = {each: {name_of(run, each) for run in runs.values()} for each in KINDS}
    names["run"] |= {str(run) for run in runs}
    fitting = [each for each in KINDS if {a, b} <= names[each] and kind in (None, each)]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise UsageError(
            f"{a!r} and {b!r} may each be a {' or a '.join(fitting)}; say which: --by {fitting[0]}"
        )
    for missing in (a, b):
        if not any(missing in found for found in names.values()):
            there = sorted({name for found in names.values() for name in found if name}, key=natural)
            listed = ", ".join(there[:30]) or "none"
            raise UsageError(f"there is no model, run, template or strategy {missing!r}; there are: {listed}")
    raise UsageError(
        f"{a!r} and {b!r} are not of one kind; compare two models, runs, templates or strategies"
    )


def compare(samples: Selected, a: str, b: str, kind: Kind) -> tuple[Comparison, ...]:
    """A comparison for each setting and source under which both were judged on some problem."""
    sides = [_Side(samples, _is(kind, name)) for name in (a, b)]
    found = []
    for place in sorted(
        sides[0].places & sides[1].places, key=lambda p: (p[0], setting_order(samples.settings[p[1]]))
    ):
        source, rule = place
        tables = [side.problems(source, rule) for side in sides]
        both = tables[0].keys() & tables[1].keys()
        if not both:
            continue
        problems = [_compared(samples, number, tables[0][number], tables[1][number]) for number in both]
        problems.sort(key=lambda p: (natural(p.problem_id), p.problem_sha256))
        found.append(
            Comparison(
                kind=kind,
                a=a,
                b=b,
                source=SOURCES[source],
                setting=samples.settings[rule],
                problems=tuple(problems),
                only_a=len(tables[0]) - len(both),
                only_b=len(tables[1]) - len(both),
                **_figures(problems),
            )
        )
    return tuple(found)


def _is(kind: Kind, name: str) -> Callable[[RunFacts], bool]:
    return lambda run: name_of(run, kind) == name or (kind == "run" and str(run.id) == name)


class _Side:
    def __init__(self, samples: Selected, belongs: Callable[[RunFacts], bool]) -> None:
        own = np.array([number for number, run in samples.book.runs.items() if belongs(run)], np.int64)
        self._of = samples.only(np.isin(samples.rows["run"], own))
        self._source = sources(self._of)
        found = dense((self._source, len(SOURCES)), (self._of.rule, len(samples.settings)))[1]
        self.places = {(source, rule) for source, rule in found}

    def problems(self, source: int, rule: int) -> dict[int, Side]:
        of = self._of.only((self._source == source) & (self._of.rule == rule))
        place = of.rows["problem"].astype(np.int64)
        judged = of.facts.judged[of.rows["facts"]]
        size = int(place.max()) + 1
        counts = np.bincount(place, weights=judged, minlength=size)
        correct = np.bincount(place, weights=of.correct, minlength=size)
        best = firsts(place, size, of.claimed, of.rows["attempt"], of.measured)
        sides = {}
        for number in np.flatnonzero(counts).tolist():
            row = int(best[number])
            sides[number] = Side(
                judged=int(counts[number]),
                correct=int(correct[number]),
                attempt_id=int(of.rows["attempt"][row]) if row >= 0 else None,
                speedup=float(of.speedup[row]) if row >= 0 else None,
                interval=Interval(low=float(of.claimed[row]), high=float(of.high[row])) if row >= 0 else None,
            )
        return sides


def _compared(samples: Selected, number: int, a: Side, b: Side) -> ComparedProblem:
    facts = samples.book.problems[number]
    rates = a.correct * b.judged, b.correct * a.judged
    return ComparedProblem(
        problem_id=facts.problem_id,
        problem_sha256=facts.sha256,
        a=a,
        b=b,
        more_correct="a"
        if rates[0] > rates[1]
        else "b"
        if rates[1] > rates[0]
        else "tie"
        if rates[0]
        else "neither",
        faster=_faster(a.interval, b.interval),
    )


def _faster(a: Interval | None, b: Interval | None) -> Winner:
    if a is None or b is None:
        return "a" if a else "b" if b else "neither"
    return "a" if a.low > b.high else "b" if b.low > a.high else "tie"


def _figures(problems: Sequence[ComparedProblem]) -> dict[str, Any]:
    rates = np.array([(p.a.correct / p.a.judged, p.b.correct / p.b.judged) for p in problems])
    ratios = np.array([p.a.speedup / p.b.speedup for p in problems if p.a.speedup and p.b.speedup])
    more = [sum(p.more_correct == side for p in problems) for side in ("a", "b")]
    difference = rates[:, 0] - rates[:, 1]
    return {
        "correct_a": float(rates[:, 0].mean()),
        "correct_b": float(rates[:, 1].mean()),
        "correct_difference": Mean(
            value=float(difference.mean()), interval=mean_interval(difference), count=len(problems)
        ),
        "more_correct_a": more[0],
        "more_correct_b": more[1],
        "correct_p": sign_test(more[0], more[1]),
        "ratio": geometric_mean(ratios),
        "ratio_p": signed_rank_test(np.log(ratios)) if len(ratios) else None,
        "faster_a": sum(p.faster == "a" for p in problems),
        "faster_b": sum(p.faster == "b" for p in problems),
    }
