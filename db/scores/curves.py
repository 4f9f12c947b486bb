"""The figures behind the curves of a report: each model's speedups, and what fewer turns or tokens reach."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from kernelproof.db.scores.filters import Filters
from kernelproof.db.scores.groups import Groups, by_model
from kernelproof.db.scores.layout import Floats, Ints, Truths, steps
from kernelproof.db.scores.reading import Book
from kernelproof.db.scores.records import Source
from kernelproof.db.scores.selecting import Selected, select
from kernelproof.types import FrozenRecord, Setting

MOST_TURNS = 12
"""Points of a curve over turns."""
BUDGETS = 60
"""Points of a curve over tokens, at most."""
_Key = tuple[Source, str, Setting]


class Curves(FrozenRecord):
    """A model's samples under one setting, as curves need them."""

    source: Source
    model: str
    setting: Setting
    speedups: tuple[float, ...]
    """Of the correct measured samples, rising; one whose pace is unresolved is 1 at most."""
    turns: tuple[tuple[int, float], ...]
    """Turns that each sample may have, and the geometric mean over all problems that they reach. As many as
    there are, and MOST_TURNS at most."""
    budgets: tuple[tuple[float, float], ...]
    """Tokens that each problem may cost, and the geometric mean over all problems that they reach, if its
    attempts are made in the order in which they were begun. Empty where tokens are unknown, or nothing was
    paid for."""


def curves(book: Book, filters: Filters) -> tuple[Curves, ...]:
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


def _over_turns(book: Book, filters: Filters, turns: Selected) -> dict[_Key, list[tuple[int, float]]]:
    """For each model and setting its points, by turns."""
    found: defaultdict[_Key, list[tuple[int, float]]] = defaultdict(list)
    most = int(turns.rows["turn"].max()) if len(turns.rows) else 0
    for allowed in range(1, min(most, MOST_TURNS) + 1):
        some = turns
        if allowed < most:
            some = select(book, filters.model_copy(update={"turns": allowed}))
        groups = Groups(some, some.samples(), by_model)
        for number, (owner, setting) in enumerate(groups.names):
            everywhere = groups.everywhere(number)
            if len(everywhere):
                mean = float(np.exp(np.log(everywhere).mean()))
                found[owner.source, owner.model, setting].append((allowed, mean))
    return found


def _over_budgets(turns: Selected, groups: Groups, number: int) -> tuple[tuple[float, float], ...]:
    """The points of one group by tokens."""
    rows = np.flatnonzero(groups.of_turn == number)
    problems = groups.problem_numbers(number)
    rows = rows[np.isin(turns.rows["problem"][rows], problems)]
    tokens = turns.rows["tokens"][rows]
    if turns.rows["unknown_tokens"][rows].any() or not tokens.any() or not len(groups.everywhere(number)):
        return ()
    order = np.lexsort((turns.rows["attempt"][rows], turns.rows["problem"][rows]))
    rows, tokens = rows[order], tokens[order]
    problem = steps(turns.rows["problem"][rows])
    spent = _running(tokens, problem)
    better, gain = _gains(problem, turns.measured[rows], turns.claimed[rows], turns.speedup[rows])
    if not better.any():
        return ()
    at = spent[better]
    order = np.argsort(at, kind="stable")
    at, total = at[order], np.cumsum(gain[order])
    budgets = np.geomspace(max(at[0], 1.0), max(spent.max(), 1.0), BUDGETS)
    budgets[-1] = spent.max()  # which rounding would miss
    reached = np.searchsorted(at, budgets, "right") - 1
    logs = np.where(reached >= 0, total[np.maximum(reached, 0)], 0.0) / len(problems)
    return tuple(zip(budgets.tolist(), np.exp(logs).tolist(), strict=True))


def _running(tokens: Floats, problem: Ints) -> Floats:
    """For each row the tokens of its problem so far, its own included."""
    total = np.cumsum(tokens)
    first = np.flatnonzero(np.diff(problem, prepend=-1))
    found: Floats = total - (total[first] - tokens[first])[problem]
    return found


def _gains(problem: Ints, measured: Truths, claimed: Floats, speedup: Floats) -> tuple[Truths, Floats]:
    """Which rows are their problem's best so far, and by how much each of these changes its speedup's log."""
    ranks = np.unique(np.where(measured, claimed, -1.0), return_inverse=True)[1].reshape(-1)
    code = problem * (int(ranks.max()) + 1) + ranks  # rises from problem to problem
    best = np.maximum.accumulate(code)
    better = measured & (code > np.concatenate(([-1], best[:-1])))
    logs, of = np.log(speedup[better]), problem[better]
    before = np.concatenate(([0.0], logs[:-1]))
    before[np.diff(of, prepend=-1) != 0] = 0.0
    return better, logs - before
