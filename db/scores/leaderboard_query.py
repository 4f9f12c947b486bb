"""Answers to the questions of `ScoreQueries`: the leaderboard, comparisons, the attempts of an export, stale
attempts, and hints if nothing passes the filters. Each takes a connection that sees one state.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np
from sqlalchemy import Connection, text

from kernelproof.db import counting
from kernelproof.db.scores.boards import audited, kernel_scores, natural, problem_scores
from kernelproof.db.scores.comparing import Comparison, Kind, compare, kind_of
from kernelproof.db.scores.filters import (
    ANY,
    CURRENT,
    Filters,
    ProblemFacts,
    RunFacts,
    policy_passes,
    problem_passes,
    run_passes,
    setting_passes,
)
from kernelproof.db.scores.groups import by_model, by_run, by_strategy, by_template, group_scores
from kernelproof.db.scores.packing import Ints, Truths, steps
from kernelproof.db.scores.records import Counts, Leaderboard, ViewName
from kernelproof.db.scores.score_table import ScoreTable, read_book, read_runs
from kernelproof.db.scores.selecting import Selected, select
from kernelproof.types import Setting

_GROUPS = {
    "models": ("model", by_model),
    "runs": ("run", by_run),
    "templates": ("template", by_template),
    "strategies": ("strategy", by_strategy),
}
_ANY_AUDIT = text("SELECT id FROM audits LIMIT 1")


def selected(connection: Connection, filters: Filters) -> Selected:
    return select(read_book(connection, filters), filters)


def leaderboard(
    connection: Connection, filters: Filters, views: Collection[ViewName], top: int | None
) -> Leaderboard:
    """The views that are asked for. `top`: most kernels of each setting; None for all."""
    turns = selected(connection, filters)
    samples = turns.samples()
    groups = {
        field: group_scores(turns, samples, owner)
        for field, (view, owner) in _GROUPS.items()
        if view in views
    }
    status = turns.rows["facts"]
    ever_audited = connection.execute(_ANY_AUDIT).first() is not None
    problems = problem_scores(samples) if ever_audited or "problem" in views else ()
    refused = turns.facts.correct[status] & ~turns.correct
    return Leaderboard(
        filters=filters,
        counts=Counts(
            unfinished=int((~turns.facts.finished[status]).sum()),
            refused=int(refused.sum()),
            retracted=turns.retracted,
            stale=turns.stale,
            stale_samples=turns.stale_samples,
            kernels=int(samples.measured.sum()),
        ),
        **groups,
        problems=problems if "problem" in views else (),
        kernels=kernel_scores(samples, top) if "kernel" in views else (),
        audits=audited(connection, problems) if ever_audited else (),
        hints=() if len(samples.rows) else _hints(connection, filters),
    )


def _hints(connection: Connection, filters: Filters) -> tuple[str, ...]:
    if filters == Filters():
        return ()
    book = read_book(connection, NEUTRAL)
    return hints(filters, book) if len(book.rows) else ()


def comparison(
    connection: Connection, filters: Filters, a: str, b: str, kind: Kind | None
) -> tuple[Comparison, ...]:
    """A and B, for each setting under which both were judged on a problem.

    Raises UsageError where A and B name nothing, or things of different kinds.
    """
    chosen = kind_of(read_runs(connection), a, b, kind)
    return compare(selected(connection, filters).samples(), a, b, chosen)


MOST = 20
NEUTRAL = Filters(policy=ANY)
OPTIONS = {"device": "gpu"}
"""Filters whose option has another name."""
_RUN = ("run", "tag", "kind", "model", "template", "strategy")
_PROBLEM = ("problem", "level", "suite")
_VERDICT = ("backend", "size", "device", "numerics", "purity", "rigor", "policy")


def hints(filters: Filters, book: ScoreTable) -> tuple[str, ...]:
    """A line for each filter that is set: `--model gpt: there are openai:a, replay:b`.

    `book`: all rows, without any filter.
    """
    runs = {number: book.runs[number] for number in np.unique(book.rows["run"]).tolist()}
    problems = {number: book.problems[number] for number in np.unique(book.rows["problem"]).tolist()}
    lines = []
    for name, value in filters.model_dump(mode="json", exclude_defaults=True).items():
        values = _values(name, runs, problems, book)
        if values is None or (name == "policy" and value == ANY):
            continue
        alone = NEUTRAL.model_copy(update={name: getattr(filters, name)})
        matches = _matches(name, alone, runs, problems, book)
        said = "" if matches is None else " matches by itself" if matches else " matches nothing"
        lines.append(f"--{OPTIONS.get(name, name)} {value}{said}; there are: {_listed(values)}")
    if filters.policy == CURRENT and _only_stale(book):
        there = _values("policy", runs, problems, book) or []
        lines.append(f"--policy current is {counting.POLICY}, and there are only: {_listed(there)}")
    return tuple(lines)


def _only_stale(book: ScoreTable) -> bool:
    verified = [
        book.facts[code] for code in np.unique(book.rows["facts"]).tolist() if book.facts[code].verified
    ]
    return bool(verified) and all(facts.policy != counting.POLICY for facts in verified)


def _matches(
    name: str, alone: Filters, runs: dict[int, RunFacts], problems: dict[int, ProblemFacts], book: ScoreTable
) -> bool | None:
    """Whether anything passes this filter alone; None where that is not asked."""
    if name in _RUN:
        return any(run_passes(run, alone) for run in runs.values())
    if name in _PROBLEM:
        return any(problem_passes(problem, alone) for problem in problems.values())
    if name in _VERDICT:
        part = (alone.device or "").casefold()
        facts = [book.facts[code] for code in np.unique(book.rows["facts"]).tolist()]
        known = [each for each in facts if getattr(each, name) is not None]
        there = [each for each in known if part in (each.device or "").casefold()]
        return any(setting_passes(each, alone) and policy_passes(each, alone) for each in there)
    return None


def _values(
    name: str, runs: dict[int, RunFacts], problems: dict[int, ProblemFacts], book: ScoreTable
) -> list[str] | None:
    """The values that a filter could be set to; None where there is no list."""
    found: Iterable[object]
    if name == "run":
        found = (run.name or run.id for run in runs.values())
    elif name == "tag":
        found = (tag for run in runs.values() for tag in run.tags)
    elif name in _RUN:
        found = (getattr(run, name) for run in runs.values())
    elif name in _PROBLEM:
        column = "problem_id" if name == "problem" else name
        found = (getattr(problem, column) for problem in problems.values())
    elif name in _VERDICT:
        codes = np.unique(book.rows["facts"]).tolist()
        found = (getattr(book.facts[code], name) for code in codes)
    elif name == "turns":
        found = np.unique(book.rows["turn"]).tolist()
    elif name in ("since", "until"):
        ends = (book.rows["created"].min(), book.rows["created"].max())
        days = [datetime.fromtimestamp(moment, UTC).date().isoformat() for moment in ends]
        found = [" to ".join(dict.fromkeys(days))]
    else:
        return None
    return sorted({str(value) for value in found if value is not None}, key=natural)


def _listed(values: list[str]) -> str:
    shown = [re.sub(r"\s+", " ", value) for value in values[:MOST]]
    more = f" and {len(values) - MOST} more" if len(values) > MOST else ""
    return ", ".join(shown) + more if values else "none"


class ChosenAttempt(NamedTuple):
    attempt_id: int
    verification_id: int | None
    """The verification that counts there; None where there is none."""
    run_id: int
    problem_id: str
    setting: Setting
    decides: bool
    """Whether it decides about its sample: its fastest correct turn, else its last one."""


@dataclass(frozen=True)
class Chosen:
    """Finished attempts, in a few bytes each: by run, problem, sample, setting and turn."""

    attempts: Ints
    verifications: Ints
    """0 for none."""
    runs: Ints
    problems: Ints
    """Numbers of `problem_ids`."""
    rules: Ints
    """Numbers of `settings`."""
    decides: Truths
    problem_ids: dict[int, str]
    settings: list[Setting]

    def __len__(self) -> int:
        return len(self.attempts)

    def __iter__(self) -> Iterator[ChosenAttempt]:
        return (self[place] for place in range(len(self)))

    def __getitem__(self, place: int) -> ChosenAttempt:
        return ChosenAttempt(
            attempt_id=int(self.attempts[place]),
            verification_id=int(self.verifications[place]) or None,
            run_id=int(self.runs[place]),
            problem_id=self.problem_ids[int(self.problems[place])],
            setting=self.settings[int(self.rules[place])],
            decides=bool(self.decides[place]),
        )

    def only(self, places: Ints | Truths) -> Chosen:
        """The same with some of them, or in another order."""
        return Chosen(
            attempts=self.attempts[places],
            verifications=self.verifications[places],
            runs=self.runs[places],
            problems=self.problems[places],
            rules=self.rules[places],
            decides=self.decides[places],
            problem_ids=self.problem_ids,
            settings=self.settings,
        )

    def by_attempt(self) -> Chosen:
        return self.only(np.argsort(self.attempts, kind="stable"))

    def deciding(self) -> Chosen:
        return self.only(self.decides)


def chosen(connection: Connection, filters: Filters) -> Chosen:
    turns = selected(connection, filters)
    samples = turns.samples()
    turns = turns.only(turns.facts.finished[turns.rows["facts"]])
    many = max(len(turns.settings), 1)
    key = turns.rows["attempt"].astype(np.int64) * many + turns.rule
    deciding = samples.rows["attempt"].astype(np.int64) * many + samples.rule
    return Chosen(
        attempts=turns.rows["attempt"],
        verifications=turns.rows["verification"],
        runs=turns.rows["run"],
        problems=turns.rows["problem"],
        rules=turns.rule,
        decides=np.isin(key, deciding),
        problem_ids={number: problem.problem_id for number, problem in turns.book.problems.items()},
        settings=turns.settings,
    )


def stale_attempts(connection: Connection, filters: Filters) -> dict[int, list[int]]:
    """Run to its attempts without a verification under the policy that the filters ask for; oldest first.

    Of the filters only those on runs and problems are asked.
    """
    book = read_book(connection, filters)
    rows = book.rows
    current = np.array([policy_passes(each, filters) for each in book.facts], bool)[rows["facts"]]
    attempt = steps(rows["attempt"])
    stale = np.bincount(attempt, weights=current) == 0
    found: defaultdict[int, list[int]] = defaultdict(list)
    old = rows.only(stale[attempt])
    for run, number in zip(old["run"].tolist(), old["attempt"].tolist(), strict=True):
        if number not in found[run][-1:]:
            found[run].append(number)
    return dict(found)
