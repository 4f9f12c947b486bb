"""Scores of models, runs, templates and strategies, and curves of what fewer turns or tokens would reach."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from kernelproof.db.scores.boards import (
    SOURCES,
    by_run_column,
    firsts,
    geometric_mean,
    rate,
    setting_order,
    source_of,
)
from kernelproof.db.scores.filters import Filters, RunFacts
from kernelproof.db.scores.packing import Floats, Ints, Truths, dense, steps
from kernelproof.db.scores.records import Fast, Mean, PassAt, Rate, Scores, Source
from kernelproof.db.scores.score_table import ScoreTable
from kernelproof.db.scores.selecting import Selected, select
from kernelproof.db.scores.statistics import mean_interval, median_interval, pass_at_k, ratio_interval
from kernelproof.types import FrozenRecord, Setting, Stage, Status

FAST = (0.5, 0.8, 1.0, 1.5, 2.0)
KS = (1, 5, 10)


class Owner(NamedTuple):
    """Whose samples a group holds, its setting apart."""

    source: Source
    model: str
    run_id: int | None = None
    run: str | None = None
    template: str | None = None
    strategy: str | None = None


def by_model(run: RunFacts) -> Owner:
    return Owner(SOURCES[source_of(run)], run.model)


def by_run(run: RunFacts) -> Owner:
    return Owner(SOURCES[source_of(run)], run.model, run.id, run.name, run.template, run.strategy)


def by_template(run: RunFacts) -> Owner:
    return Owner(SOURCES[source_of(run)], run.model, template=run.template)


def by_strategy(run: RunFacts) -> Owner:
    return Owner(SOURCES[source_of(run)], run.model, strategy=run.strategy)


def group_scores(
    turns: Selected, samples: Selected, owner: Callable[[RunFacts], Owner]
) -> tuple[Scores, ...]:
    groups = Groups(turns, samples, owner)
    found = [groups.scores(number) for number in range(len(groups.names))]
    return tuple(sorted((scores for scores in found if scores is not None), key=_rank))


def _rank(s: Scores) -> tuple[Any, ...]:
    sure = s.fast_p(1.0).sure / (s.correct.whole or 1)
    best_first = (-(s.correct.share or 0), -sure, -(s.geometric_mean_all.value or 0))
    names = (s.model, s.template or "", s.strategy or "", s.run_id or 0)
    return (SOURCES.index(s.source), setting_order(s.setting), *best_first, *names)


@dataclass(frozen=True)
class ProblemFigures:
    numbers: Ints
    judged: Floats
    correct: Floats
    best: Floats
    """The counted speedup of the best; NaN where none was measured."""
    faster: Truths
    """Whether the best is surely faster."""
    tokens: Floats
    cost: Floats


class Groups:
    """All figures of all groups, counted at once. A group is known by its number."""

    def __init__(self, turns: Selected, samples: Selected, owner: Callable[[RunFacts], Owner]) -> None:
        self._turns, self._samples = turns, samples
        of_run = {number: owner(run) for number, run in turns.book.runs.items()}
        owners = list(dict.fromkeys(of_run.values()))
        places = {name: place for place, name in enumerate(owners)}
        owned = {number: places[name] for number, name in of_run.items()}
        size = (len(owners), len(turns.settings))
        place, keys = dense((by_run_column(turns, owned), size[0]), (turns.rule, size[1]))
        self.names = [(owners[name], turns.settings[rule]) for name, rule in keys]
        """The owner and the setting of each group."""
        self.of_turn = self._of_sample = place
        """Each turn's group."""
        if samples is not turns:
            known = {key: number for number, key in enumerate(keys)}
            inner, keys = dense((by_run_column(samples, owned), size[0]), (samples.rule, size[1]))
            translate = np.array([known[key] for key in keys], np.int64)
            self._of_sample = translate[inner]
        by_facts = [self._by_facts(turns, place), self._by_facts(samples, self._of_sample)]
        self._statuses, self._sample_statuses = (self._by_status(counts) for counts in by_facts)
        self._counts = self._counted(*by_facts)
        self._spent = {
            name: np.bincount(place, weights=turns.rows[name], minlength=len(self.names))
            if turns.rows[name].any()
            else np.zeros(len(self.names))
            for name in ("answers", "tokens", "cost", "unknown_tokens", "unknown_cost")
        }
        self._problems = self._by_problem()

    def _by_facts(self, of: Selected, place: Ints) -> Ints:
        shape = len(self.names), len(of.facts.all)
        code = place * shape[1] + of.rows["facts"]
        return np.bincount(code, minlength=shape[0] * shape[1]).reshape(shape)

    def _by_status(self, counts: Ints) -> list[dict[str, int]]:
        """For each group the number of rows by status; None is left out."""
        facts = self._turns.facts.all
        tables: list[dict[str, int]] = [{} for _ in self.names]
        for group, code in np.argwhere(counts).tolist():
            status = facts[code].status
            if status is not None:
                tables[group][status] = tables[group].get(status, 0) + int(counts[group, code])
        return tables

    def _counted(self, by_turn: Ints, by_sample: Ints) -> dict[str, Ints]:
        """For each group how many samples are so, and how many turns are right."""
        samples, facts = self._samples, self._samples.facts
        rows = np.flatnonzero(samples.measured)
        group = self._of_sample[rows]
        unresolved = facts.unresolved[samples.rows["facts"][rows]]
        measured = np.bincount(group, minlength=len(self.names))
        return {
            "judged": by_sample[:, facts.judged].sum(axis=1),
            "correct": by_sample[:, facts.accepted & facts.judged].sum(axis=1),
            "right": by_turn[:, facts.accepted].sum(axis=1),
            "unmeasured": by_sample[:, facts.accepted].sum(axis=1) - measured,
            "measured": measured,
            "unresolved": np.bincount(group[unresolved], minlength=len(self.names)),
            **self._above("fast", group, samples.speedup[rows]),
            **self._above("sure", group, samples.claimed[rows]),
        }

    def _above(self, word: str, group: Ints, figures: Floats) -> dict[str, Ints]:
        """For each p of FAST and each group how many figures are greater."""
        passed = np.searchsorted(FAST, figures, "left")  # values of p that are smaller
        shape = len(self.names), len(FAST) + 1
        counts = np.bincount(group * shape[1] + passed, minlength=shape[0] * shape[1]).reshape(shape)
        return {f"{word} {p}": counts[:, number + 1 :].sum(axis=1) for number, p in enumerate(FAST)}

    def _by_problem(self) -> list[ProblemFigures]:
        turns, samples, groups = self._turns, self._samples, len(self.names)
        width = int(turns.rows["problem"].max()) + 1 if len(turns.rows) else 1
        of_turn = self.of_turn * width + turns.rows["problem"]
        place = of_turn if samples is turns else self._of_sample * width + samples.rows["problem"]
        size = groups * width
        first = firsts(place, size, samples.claimed, samples.rows["attempt"], samples.measured)
        best, faster = np.full(size, np.nan), np.zeros(size, bool)
        best[first >= 0] = samples.speedup[first[first >= 0]]
        faster[first >= 0] = samples.faster[first[first >= 0]]
        judged = samples.facts.judged[samples.rows["facts"]]
        columns = [
            np.bincount(place[judged], minlength=size).astype(np.float64),
            np.bincount(place[samples.correct & judged], minlength=size).astype(np.float64),
            best,
            faster,
            np.bincount(of_turn, weights=turns.rows["tokens"], minlength=size),
            np.bincount(of_turn, weights=turns.rows["cost"], minlength=size),
        ]
        tables = [column.reshape(groups, width) for column in columns]
        found = []
        for group in range(groups):
            here = np.flatnonzero(tables[0][group] > 0)
            found.append(ProblemFigures(here, *(table[group][here] for table in tables)))
        return found

    def finished(self, group: int) -> int:
        return sum(self._sample_statuses[group].values())

    def problems(self, group: int) -> ProblemFigures:
        return self._problems[group]

    def speedups(self, group: int) -> Floats:
        found: Floats = self._samples.speedup[(self._of_sample == group) & self._samples.measured]
        return found

    def everywhere(self, group: int) -> Floats:
        """The best speedup of each problem with a judged sample, 1 where none was measured. Empty where
        correct samples exist and none of them was measured: then nothing is said about speed."""
        best = self._problems[group].best
        return np.where(np.isfinite(best), best, 1.0) if self._timed(group) else best[:0]

    def _timed(self, group: int) -> bool:
        return self._counts["measured"][group] > 0 or not self._counts["correct"][group]

    def scores(self, group: int) -> Scores | None:
        """The scores of one group; None where no sample is finished."""
        owner, setting = self.names[group]
        statuses, count = self._sample_statuses[group], {k: int(v[group]) for k, v in self._counts.items()}
        samples = self.finished(group)
        if not samples:
            return None
        problems = self._problems[group]
        best = problems.best[np.isfinite(problems.best)]
        everywhere, known = self.everywhere(group), self._timed(group)
        return Scores(
            **owner._asdict(),
            setting=setting,
            **self._funnel(group),
            right=count["right"],
            samples=samples,
            errors=samples - count["judged"],
            correct=rate(count["correct"], count["judged"]),
            statuses={
                Status(s): n for s, n in sorted(statuses.items(), key=lambda item: (-item[1], item[0]))
            },
            fast=tuple(
                Fast(p=p, rate=_fast(count[f"fast {p}"], count["judged"], known), sure=count[f"sure {p}"])
                for p in FAST
            ),
            unmeasured=count["unmeasured"],
            unresolved=count["unresolved"],
            pass_at=tuple(PassAt(k=k, mean=_pass_at(problems, k)) for k in KS),
            problems=len(problems.judged),
            solved=int((problems.correct > 0).sum()),
            geometric_mean=geometric_mean(best),
            median=_median(best),
            geometric_mean_all=geometric_mean(everywhere),
            median_all=_median(everywhere),
            **self._costs(group, problems),
        )

    def _funnel(self, group: int) -> dict[str, Any]:
        count = {"attempts": 0, "answered": 0, "extracted": 0, "built": 0}
        for name, number in self._statuses[group].items():
            for stage in _stages(name):
                count[stage] += number
        return count

    def _costs(self, group: int, problems: ProblemFigures) -> dict[str, Any]:
        spent = {name: column[group] for name, column in self._spent.items()}
        correct = self._counts["correct"][group]
        costs: dict[str, Any] = {
            "tokens": int(spent["tokens"]),
            "cost_usd": float(spent["cost"]),
            "unknown_tokens": int(spent["unknown_tokens"]),
            "unknown_cost": int(spent["unknown_cost"]),
        }
        for name, column in (("tokens", problems.tokens), ("cost", problems.cost)):
            told = spent["answers"] > 0 and spent[f"unknown_{name}"] == 0 and correct > 0
            costs[f"{name}_per_correct"] = Mean(
                value=float(spent[name] / correct) if told else None,
                interval=ratio_interval(column, problems.correct) if told else None,
                count=len(column),
            )
        return costs


def _stages(name: str) -> tuple[str, ...]:
    status = Status(name)
    if status is Status.PLANS:
        return ()
    if status is Status.PROVIDER_ERROR:
        return ("attempts",)
    if status.stage is Stage.EXTRACTION:
        return ("attempts", "answered")
    return ("attempts", "answered", "extracted", *["built"] * status.is_built)


def _fast(part: int, whole: int, known: bool) -> Rate:
    """Nothing is said about speed where correct samples exist and none of them was measured."""
    found = rate(part, whole)
    return found if known else found.model_copy(update={"share": None, "interval": None})


def _pass_at(problems: ProblemFigures, k: int) -> Mean:
    enough = problems.judged >= k
    chances = pass_at_k(problems.judged[enough], problems.correct[enough], k)
    value = float(chances.mean()) if len(chances) else None
    return Mean(value=value, interval=mean_interval(chances), count=len(chances))


def _median(speedups: Floats) -> Mean:
    value = float(np.median(speedups)) if len(speedups) else None
    return Mean(value=value, interval=median_interval(speedups), count=len(speedups))


MOST_TURNS = 12
BUDGETS = 60
_Key = tuple[Source, str, Setting]


class TurnsPoint(NamedTuple):
    """What a model reaches if each sample may have so many turns."""

    turns: int
    solved: int
    """Problems with a correct sample."""
    faster: int
    """Problems whose best sample is surely faster."""


class TokensPoint(NamedTuple):
    """What a model reaches if each problem may cost so many tokens."""

    tokens: float
    solved: int
    """Problems with a correct attempt."""
    faster: int
    """Problems with an attempt that is surely faster."""


class Curves(FrozenRecord):
    """A model's samples under one setting, as curves need them."""

    source: Source
    model: str
    setting: Setting
    speedups: tuple[float, ...]
    """Of the correct measured samples, rising; one whose pace is unresolved is 1 at most."""
    turns: tuple[TurnsPoint, ...]
    """As many turns as there are, and MOST_TURNS at most."""
    budgets: tuple[TokensPoint, ...]
    """The attempts on a problem are made in the order in which they were begun. Empty where tokens are
    unknown, nothing was paid for, or nothing was solved."""


def curves(book: ScoreTable, filters: Filters) -> tuple[Curves, ...]:
    """The curves of each model under each setting, for the attempts that pass the filters."""
    turns = select(book, filters)
    groups = Groups(turns, turns.samples(), by_model)
    over_turns = _over_turns(book, filters, turns)
    found = []
    for number, (owner, setting) in enumerate(groups.names):
        key = (owner.source, owner.model, setting)
        if not groups.finished(number):
            continue
        found.append(
            Curves(
                source=owner.source,
                model=owner.model,
                setting=setting,
                speedups=tuple(sorted(groups.speedups(number).tolist())),
                turns=tuple(over_turns[key]),
                budgets=_over_budgets(turns, groups, number),
            )
        )
    return tuple(found)


def _over_turns(book: ScoreTable, filters: Filters, turns: Selected) -> dict[_Key, list[TurnsPoint]]:
    found: defaultdict[_Key, list[TurnsPoint]] = defaultdict(list)
    most = int(turns.rows["turn"].max()) if len(turns.rows) else 0
    for allowed in range(1, min(most, MOST_TURNS) + 1):
        some = turns
        if allowed < most:
            some = select(book, filters.model_copy(update={"turns": allowed}))
        groups = Groups(some, some.samples(), by_model)
        for number, (owner, setting) in enumerate(groups.names):
            problems = groups.problems(number)
            if not len(problems.numbers):
                continue
            key = (owner.source, owner.model, setting)
            found[key].append(
                TurnsPoint(
                    turns=allowed, solved=int((problems.correct > 0).sum()), faster=int(problems.faster.sum())
                )
            )
    return found


def _over_budgets(turns: Selected, groups: Groups, number: int) -> tuple[TokensPoint, ...]:
    rows = np.flatnonzero(groups.of_turn == number)
    rows = rows[np.isin(turns.rows["problem"][rows], groups.problems(number).numbers)]
    tokens = turns.rows["tokens"][rows]
    if turns.rows["unknown_tokens"][rows].any() or not tokens.any():
        return ()
    order = np.lexsort((turns.rows["attempt"][rows], turns.rows["problem"][rows]))
    rows, tokens = rows[order], tokens[order]
    problem = steps(turns.rows["problem"][rows])
    spent = _running(tokens, problem)
    solved = _first_spent(spent, problem, turns.correct[rows])
    faster = _first_spent(spent, problem, turns.faster[rows])
    if not len(solved):
        return ()
    budgets = np.geomspace(max(solved[0], 1.0), max(spent.max(), 1.0), BUDGETS)
    budgets[-1] = spent.max()  # which rounding would miss
    counts = (np.searchsorted(events, budgets, "right").tolist() for events in (solved, faster))
    return tuple(map(TokensPoint, budgets.tolist(), *counts))


def _first_spent(spent: Floats, problem: Ints, chosen: Truths) -> Floats:
    """For each problem with a chosen row the tokens up to its first, rising."""
    rows = np.flatnonzero(chosen)
    first = np.unique(problem[rows], return_index=True)[1]
    return np.sort(spent[rows[first]])


def _running(tokens: Floats, problem: Ints) -> Floats:
    """For each row the tokens of its problem so far, its own included."""
    total = np.cumsum(tokens)
    first = np.flatnonzero(np.diff(problem, prepend=-1))
    found: Floats = total - (total[first] - tokens[first])[problem]
    return found
