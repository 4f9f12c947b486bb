"""Selecting: of each attempt the verification that counts, of each sample the turn that decides.

docs/guide/leaderboard.md says the rules. Everything here works on whole columns.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cached_property

import numpy as np

from kernelproof.db.counting import NO_JUDGEMENT, rank_verification
from kernelproof.db.scores.filters import ERROR_CLASSES, Facts, Filters, policy_passes, setting_passes
from kernelproof.db.scores.packing import Floats, Ints, Rows, Truths, dense, distinct, starts, steps
from kernelproof.db.scores.score_table import RETRACTED, ScoreTable
from kernelproof.types import Pace, Setting, Status

CORRECT = Status.CORRECT.value


@dataclass(frozen=True)
class Selected:
    """The attempts that count, a row for each setting of each; equal rows of all columns belong together."""

    book: ScoreTable
    rows: Rows
    """By run, problem, sample, setting and turn."""
    rule: Ints
    """The number of its setting in `settings`."""
    settings: list[Setting]
    facts: _FactColumns
    retracted: int
    stale: int
    stale_samples: int

    @cached_property
    def correct(self) -> Truths:
        """Correct, and not refused by the filters."""
        found: Truths = self.facts.accepted[self.rows["facts"]]
        return found

    @cached_property
    def measured(self) -> Truths:
        found: Truths = self.correct & np.isfinite(self.rows["speedup"])
        return found

    @cached_property
    def faster(self) -> Truths:
        found: Truths = self.measured & self.facts.faster[self.rows["facts"]]
        return found

    @cached_property
    def claimed(self) -> Floats:
        """The figure that ranks: the interval's lower end, 1 at most where the pace is unresolved; 0 unless
        measured."""
        return self._bounded("low")

    @cached_property
    def speedup(self) -> Floats:
        """The speedup as rates and means take it, likewise."""
        return self._bounded("speedup")

    @cached_property
    def high(self) -> Floats:
        """The interval's upper end, likewise."""
        return self._bounded("high")

    def _bounded(self, column: str) -> Floats:
        figures = np.where(self.measured, self.rows[column], 0.0)
        if not self.facts.unresolved.any():
            return figures
        unresolved = self.facts.unresolved[self.rows["facts"]]
        return np.where(unresolved, np.minimum(figures, 1.0), figures)

    def only(self, chosen: Truths | Ints) -> Selected:
        if chosen.dtype == bool and chosen.all():
            return self
        return Selected(
            *(self.book, self.rows.only(chosen), self.rule[chosen], self.settings, self.facts),
            *(self.retracted, self.stale, self.stale_samples),
        )

    def samples(self) -> Selected:
        """The rows that decide: of each sample and setting the fastest correct turn, else the last one.

        A question that asked for plans was no attempt at a kernel, and never decides.

        Samples whose last turn is unfinished are left out, unless an earlier one was correct.
        """
        if self.rows.one_each:
            decides = self.facts.finished & ~self.facts.plans
            return self.only(decides[self.rows["facts"]])
        place = steps(self.rows.sample, self.rule)
        plans = self.facts.plans[self.rows["facts"]]
        rank = np.where(plans, -2.0, np.where(self.correct, self.claimed, -1.0))
        first = starts(place)
        best = np.maximum.reduceat(rank, first)
        last = np.where(rank == best[place], np.arange(len(place)), -1)
        deciding = np.maximum.reduceat(last, first)
        return self.only(deciding[self.facts.finished[self.rows["facts"][deciding]] & ~plans[deciding]])


class _FactColumns:
    """Columns with an entry for each number of facts. `column[rows["facts"]]` has an entry for each row."""

    def __init__(self, facts: list[Facts], filters: Filters) -> None:
        def column(test: Callable[[Facts], bool]) -> Truths:
            return np.array([test(each) for each in facts], bool)

        self.all = facts
        self.passes = column(lambda f: setting_passes(f, filters))
        self.current = column(lambda f: policy_passes(f, filters))
        self.retracted = column(lambda f: f.status == RETRACTED)
        self.finished = column(lambda f: f.status is not None)
        self.plans = column(lambda f: f.status == Status.PLANS)
        self.judged = column(lambda f: f.status is not None and f.status not in NO_JUDGEMENT)
        ranks = [
            rank_verification(None, f.status or "", f.screening) for f in facts
        ]  # policies passed before
        ordered = sorted(set(ranks))
        self.rank = np.array([ordered.index(each) for each in ranks], np.int64)
        self.correct = column(lambda f: f.status == CORRECT)
        self.accepted = column(lambda f: f.status == CORRECT and _accepted(f, filters))
        self.unresolved = column(lambda f: f.pace == Pace.UNRESOLVED)
        self.faster = column(lambda f: f.pace == Pace.FASTER)
        rules = [(f.backend, f.size, f.numerics, f.purity, f.own_kernel) for f in facts]
        self.bases = list(dict.fromkeys(rules))
        self.base = np.array([self.bases.index(rule) for rule in rules], np.int64)
        self.devices = sorted({f.device for f in facts if f.device is not None})
        self.device = np.array(
            [-1 if f.device is None else self.devices.index(f.device) for f in facts], np.int64
        )


def _accepted(facts: Facts, filters: Filters) -> bool:
    if filters.without and not set(filters.without).isdisjoint(json.loads(facts.flags)):
        return False
    wanted, found = filters.error_class, facts.error_class
    return wanted is None or found is None or ERROR_CLASSES.index(found) <= ERROR_CLASSES.index(wanted)


def select(book: ScoreTable, filters: Filters) -> Selected:
    """The attempts that pass the filters, each with the verification that counts under each setting."""
    facts = _FactColumns(book.facts, filters)
    rows = book.rows
    rows = rows.only(facts.passes[rows["facts"]] & _in_time(rows, filters))
    gone = facts.retracted[rows["facts"]]
    retracted, rows = int(gone.sum()), rows.only(~gone)
    usual, mixed = _usual(rows.only(facts.current[rows["facts"]]), facts)
    rows, stale, stale_samples = _without_stale(rows, facts)
    rows, device = _placed(rows, usual, mixed, facts)
    counts = _counting(rows, device, facts)
    rows, device = rows.only(counts), device[counts]
    rule, settings = _settings(facts.base[rows["facts"]], device, facts)
    wanted = (filters.device or "").casefold()
    passing = np.array([wanted in (s.device or "").casefold() for s in settings], bool)
    chosen = Selected(book, rows, rule, settings, facts, retracted, stale, stale_samples)
    return _ordered(chosen.only(passing[rule]))


def _in_time(rows: Rows, filters: Filters) -> Truths:
    passes = np.ones(len(rows), bool)
    if filters.turns is not None:
        passes &= rows["turn"] <= filters.turns
    if filters.since is not None:
        passes &= rows["created"] >= _midnight(filters.since)
    if filters.until is not None:
        passes &= rows["created"] < _midnight(filters.until + timedelta(days=1))
    return passes


def _midnight(day: date) -> float:
    return datetime.combine(day, time(), UTC).timestamp()


def _without_stale(rows: Rows, facts: _FactColumns) -> tuple[Rows, int, int]:
    """The rows under the policy that is asked for, with how many attempts and samples are left out.

    A sample goes as a whole: without its best turn, another would decide.
    """
    old = ~facts.current[rows["facts"]]
    if not old.any():
        return rows, 0, 0
    attempt = steps(rows["attempt"])
    sample = rows.sample
    fresh = np.bincount(attempt, weights=~old) > 0
    stale = ~fresh[attempt]
    stale_sample = np.bincount(sample, weights=stale) > 0
    kept = rows.only(~old & ~stale_sample[sample])
    return kept, int((~fresh).sum()), int(stale_sample.sum())


def _placed(rows: Rows, usual: Ints, mixed: bool, facts: _FactColumns) -> tuple[Rows, Ints]:
    """The rows with their device's number, -1 for none. `usual`, `mixed`: as `_usual` has them.

    A turn that reached no device belongs to each device on which its sample was judged under the same rules,
    else to the one on which most attempts of its run were judged.
    """
    code = rows["facts"]
    device = facts.device[code]
    nowhere = device < 0
    if not nowhere.any() or not facts.devices:
        return rows, device
    if rows.one_each or not mixed:
        return rows, np.where(nowhere, usual[rows["run"]], device)
    sample = rows.sample
    key = sample * len(facts.bases) + facts.base[code]
    beside = ~nowhere & (np.bincount(sample, weights=nowhere) > 0)[sample]
    reached = distinct(key[beside] * len(facts.devices) + device[beside])
    keys, devices = reached // len(facts.devices), reached % len(facts.devices)
    left = np.searchsorted(keys, key[nowhere], "left")
    found = np.searchsorted(keys, key[nowhere], "right") - left
    times = np.ones(len(rows), np.int64)
    times[nowhere] = np.maximum(found, 1)
    several = np.repeat(np.arange(len(rows)), times)  # a row for each device
    new = nowhere[several]
    times, which = times[nowhere], several[new]
    offset = np.arange(len(which)) - np.repeat(np.cumsum(times) - times, times)
    somewhere = np.repeat(found > 0, times)
    at = np.minimum(np.repeat(left, times) + offset, max(len(keys) - 1, 0))
    chosen = devices[at] if len(keys) else np.full(len(which), -1)
    theirs = np.where(somewhere, chosen, usual[rows["run"][which]])
    placed = device[several]
    placed[new] = theirs
    return (rows if len(several) == len(rows) else rows.only(several)), placed


def _usual(rows: Rows, facts: _FactColumns) -> tuple[Ints, bool]:
    """For each run the device of most attempts, -1 where none reached one; and whether a run reached
    several."""
    device, devices = facts.device[rows["facts"]], len(facts.devices)
    if not len(rows) or not devices:
        return np.zeros(0, np.int64), False
    runs = int(rows["run"].max()) + 1
    attempts = distinct((steps(rows["attempt"]) * devices + device)[device >= 0])
    run = rows["run"][starts(rows["attempt"])].astype(np.int64)[attempts // devices]
    counts = np.bincount(run * devices + attempts % devices, minlength=runs * devices)
    by_run = counts.reshape(runs, devices)
    usual = np.where(by_run.max(axis=1) > 0, by_run.argmax(axis=1), -1)
    return usual, bool((np.count_nonzero(by_run, axis=1) > 1).any())


def _counting(rows: Rows, device: Ints, facts: _FactColumns) -> Truths:
    """For each attempt, setting and device whether it is the verification that counts there."""
    keep = np.ones(len(rows), bool)
    if rows.one_each:
        return keep
    attempt = steps(rows["attempt"])
    several = np.flatnonzero(np.bincount(attempt)[attempt] > 1)
    code = rows["facts"][several]
    keys = attempt[several], facts.base[code], device[several]
    order = np.lexsort((rows["verification"][several], facts.rank[code], *reversed(keys)))
    place = steps(*(key[order] for key in keys))
    keep[several[order]] = np.append(place[1:] != place[:-1], True)[: len(order)]
    return keep


def _settings(base: Ints, device: Ints, facts: _FactColumns) -> tuple[Ints, list[Setting]]:
    names = [None, *facts.devices]
    number, found = dense((base, len(facts.bases)), (device + 1, len(names)))
    settings = []
    for rules, place in found:
        backend, size, numerics, purity, own = facts.bases[rules]
        settings.append(
            Setting(
                backend=backend,
                size=size,
                device=names[place],
                numerics=numerics,
                purity=purity,
                own_kernel=own,
            )
        )
    return number, settings


def _ordered(chosen: Selected) -> Selected:
    """By run, problem, sample, setting and turn."""
    if chosen.rows.one_each:
        return chosen
    # Rows came by run, problem, sample and turn.
    place = chosen.rows.sample * len(chosen.settings) + chosen.rule
    if (place[1:] >= place[:-1]).all():
        return chosen
    return chosen.only(np.argsort(place, kind="stable"))
