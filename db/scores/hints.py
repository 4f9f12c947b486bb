"""Where nothing passes the filters: which of them keeps everything out, and which values there are."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime

import numpy as np

from kernelproof.db import counting
from kernelproof.db.scores.boards import natural
from kernelproof.db.scores.filters import (
    ANY,
    CURRENT,
    Filters,
    ProblemFacts,
    RunFacts,
    problem_passes,
    run_passes,
)
from kernelproof.db.scores.reading import Book

MOST = 20
"""Values that are listed."""
NEUTRAL = Filters(policy=ANY)
OPTIONS = {"device": "gpu"}
"""Filters whose option has another name."""
_RUN = ("run", "tag", "kind", "model", "template", "strategy")
_PROBLEM = ("problem", "level", "suite")
_VERDICT = ("backend", "size", "device", "numerics", "purity", "rigor", "policy")


def hints(filters: Filters, book: Book) -> tuple[str, ...]:
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
        said = "" if matches is None else "matches by itself; " if matches else "matches nothing; "
        lines.append(f"--{OPTIONS.get(name, name)} {value} {said}there are: {_listed(values)}")
    if filters.policy == CURRENT and _only_stale(book):
        there = _values("policy", runs, problems, book) or []
        lines.append(f"--policy current is {counting.POLICY}, and there are only: {_listed(there)}")
    return tuple(lines)


def _only_stale(book: Book) -> bool:
    verified = [
        book.facts[code] for code in np.unique(book.rows["facts"]).tolist() if book.facts[code].verified
    ]
    return bool(verified) and all(facts.policy != counting.POLICY for facts in verified)


def _matches(
    name: str, alone: Filters, runs: dict[int, RunFacts], problems: dict[int, ProblemFacts], book: Book
) -> bool | None:
    """Whether anything passes this filter alone; None where that is not asked."""
    if name in _RUN:
        return any(run_passes(run, alone) for run in runs.values())
    if name in _PROBLEM:
        return any(problem_passes(problem, alone) for problem in problems.values())
    return None


def _values(
    name: str, runs: dict[int, RunFacts], problems: dict[int, ProblemFacts], book: Book
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
        days = [_day(moment) for moment in (book.rows["created"].min(), book.rows["created"].max())]
        found = [" to ".join(dict.fromkeys(days))]
    else:
        return None
    return sorted({str(value) for value in found if value is not None}, key=natural)


def _day(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).date().isoformat()


def _listed(values: list[str]) -> str:
    shown = [re.sub(r"\s+", " ", value) for value in values[:MOST]]
    more = f" and {len(values) - MOST} more" if len(values) > MOST else ""
    return ", ".join(shown) + more if values else "none"
