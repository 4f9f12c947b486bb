"""The pages: a function each, which asks the store and fills the page's template.

`kernelproof report` and `show --html` write them to files, `kernelproof serve` and the evaluation service
answer with them. What differs is where links lead, and that a served page follows the database.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlencode

from markupsafe import Markup

from kernelproof.db.scores.filters import Filters
from kernelproof.db.scores.records import Scores
from kernelproof.db.store import Store
from kernelproof.db.views import StoredBatch
from kernelproof.errors import UsageError, writing
from kernelproof.report import findings, progress
from kernelproof.report.layout import percents_between, share
from kernelproof.report.leaderboard import outcome
from kernelproof.report.progress import head, line, progress_of
from kernelproof.report.show import (
    VERIFICATION_COLUMNS,
    builds_of,
    environment_facts,
    response_facts,
    summary_facts,
    verification_lines,
)
from kernelproof.report.verification import ERROR_COLUMNS, error_rows, flat_figures, measurement_facts
from kernelproof.report.web.charts import SHAPES, board_pictures, charted, rounds_picture
from kernelproof.report.web.facts import (
    TERMS,
    AttemptPage,
    Board,
    Bundler,
    Report,
    attempt_page,
    badges,
    closing_line,
    gather,
    headline,
    three_figures,
)
from kernelproof.report.web.figures import NARROW, WIDE, forest, forest_rows
from kernelproof.report.web.query import query_of
from kernelproof.report.web.rendering import (
    MOST_CODE,
    MOST_LOG,
    TEMPLATES,
    Page,
    breakable,
    coloured,
    cut,
    difference,
    fragment,
    rendered,
)
from kernelproof.wording import counted

NEWEST = 15
LISTED = 100
MOST_BATCHES = 5
Link = tuple[str, str]


@dataclass(frozen=True)
class Content:
    """What a page shows, whoever asks for it."""

    heading: str
    links: Sequence[Link]
    """Its parts, or pages near it."""
    body: Markup
    filters: Filters | None = None
    """Those that it may be asked by; None for a page of one attempt."""


def board(
    store: Store,
    filters: Filters,
    *,
    base: str | None = None,
    report: Report | None = None,
    title: str | None = None,
) -> Content:
    """The leaderboard. `base`: the address below which attempts have pages; None for a file, which has
    sections of the report's kernels instead. `report`: what `gather` found for the filters; None: it is asked
    now. `title`: the page's; None: what the data say.

    Raises UsageError for a file without anything in it; a served board says why there is nothing.
    """
    newest = store.newest.attempts(filters, NEWEST) if base is not None else []
    links = [("The newest attempts", "#newest-title")] if newest else []
    facts: dict[str, object] = {"newest": newest, "more": _address(base, filters), "base": base}
    try:
        report = report or gather(store, filters)
    except UsageError as error:
        if base is None:
            raise
        why = [words.strip().removeprefix("--") for words in str(error).split("\n")]
        facts |= {"report": None, "why": why}
    else:
        shown = {found.attempt.id: f"#kernel-{found.attempt.id}" for found in report.kernels}
        href: Callable[[int], str | None] = (
            shown.get if base is None else lambda number: f"{base}/attempts/{number}"
        )
        pictures = [board_pictures(each, href) for each in report.boards]
        facts |= {"report": report, "pictures": pictures, "href": href}
        facts["forests"] = [_forests(each, href) for each in report.boards]
        title = title or (headline(report.boards[0]) if len(report.boards) == 1 else None)
        boards = [(each.title, f"#board-{number}") for number, each in enumerate(report.boards, 1)]
        links = [
            *(boards if len(boards) > 1 else []),
            *([("Kernels with their evidence", "#kernels")] if report.kernels else []),
            *links,
        ]
    return Content(title or "Kernels that were verified", links, fragment("board.html", facts), filters)


def _forests(board: Board, href: Callable[[int], str | None]) -> list[Markup]:
    rows = forest_rows(board, href)
    said = f"Speedups with 95 % intervals of {counted(len(rows), 'problem')}: {closing_line(board)}"
    return [forest(rows, layout, said) for layout in (WIDE, NARROW)]


def attempts(store: Store, filters: Filters, before: int | None, base: str) -> Content:
    """A page of the list of attempts, the newest first. `before`: from which attempt on it goes."""
    lines = store.newest.attempts(filters, LISTED, before)
    older = _address(base, filters, before=lines[-1].id) if len(lines) == LISTED else ""
    body = fragment("attempts.html", {"lines": lines, "older": older, "base": base})
    return Content("Attempts", [("All results", f"{base}/")], body, filters)


def attempt(
    store: Store, attempt_id: int, base: str | None = None, bundler: Bundler | None = None
) -> Content:
    """One attempt with its evidence. `base`: None for a file, which names no other attempts. `bundler` makes
    the bundle that the page holds.

    Raises UsageError when there is no such attempt, StoreError when its rows make no sense.
    """
    found = attempt_page(store, attempt_id, bundler=bundler)
    sample = store.newest.sample_of(attempt_id) if base is not None else []
    links = [("All results", f"{base}/"), ("All attempts", f"{base}/attempts")] if base is not None else []
    if found.parent is not None and base is not None:
        parent = found.parent.id
        links.append((f"What it was built on: attempt #{parent}", f"{base}/attempts/{parent}"))
    body = fragment("attempt.html", {"found": found, "sample": sample, "base": base})
    problem = found.attempt.problem
    return Content(f"Attempt #{attempt_id}: {problem.id} {problem.name}", links, body)


def message(heading: str, lines: Sequence[str], base: str) -> Page:
    """A page that says something, such as what went wrong."""
    body = fragment("message.html", {"lines": lines, "base": base})
    return rendered({"content": Content(heading, (), body), "live": None}, scripts=(), served=False)


def in_file(content: Content) -> str:
    """The page as one HTML file that needs nothing else."""
    facts = {
        "content": content,
        "live": None,
        "made": f"Made on {datetime.now(UTC):%Y-%m-%d}",
        "query": query_of(content.filters) if content.filters else (),
    }
    return rendered(facts, scripts=("page.js",), served=False).text


def write(content: Content, path: Path) -> int:
    """Writes the page as one HTML file; its bytes. Raises MachineError where that cannot be."""
    data = in_file(content).encode("utf-8")
    with writing(path):
        path.write_bytes(data)
    return len(data)


def progress_part(batches: Sequence[StoredBatch]) -> Markup:
    """How far batches are, as `kernelproof runs status` shows it: those at work; where none is, a line about
    the newest. `batches`: the newest first."""
    working = [batch for batch in batches if batch.alive][:MOST_BATCHES]
    if working:
        return fragment("progress.html", {"batches": [_batch(batch) for batch in working]})
    return fragment(
        "progress.html", {"batches": [{"head": line(batch), "cells": None} for batch in batches[:1]]}
    )


def _batch(batch: StoredBatch) -> dict[str, object]:
    found = progress_of(batch)
    if found is None:
        return {"head": head(batch), "cells": None}
    best = progress.fastest_lines(found.fastest[:3], several=len(found.models) > 1)
    return {
        "id": batch.id,
        "head": head(batch),
        "over": found.whole.over,
        "samples": found.whole.samples,
        "cells": progress.progress_cells(found),
        "facts": [
            *progress.progress_facts(found),
            *(("best", text.removeprefix("best").strip()) for text in best),
            *(("failed", progress.failure_line(failure).strip()) for failure in found.failures[:3]),
        ],
    }


def _address(base: str | None, filters: Filters, **more: int) -> str:
    query = urlencode([*query_of(filters), *more.items()])
    return f"{base}/attempts?{query}" if query else f"{base}/attempts"


def funnel(scores: Scores) -> list[tuple[str, int, float]]:
    """From question to faster: name, count, and part of what was asked (of the samples, for the last two)."""
    attempts = {
        "asked": scores.attempts,
        "answered": scores.answered,
        "extracted": scores.extracted,
        "built": scores.built,
        "correct": scores.right,
    }
    samples = {"correct samples": scores.correct.part, "faster samples": scores.fast_p(1.0).rate.part}
    return [
        *((name, count, count / max(scores.attempts, 1)) for name, count in attempts.items()),
        *((name, count, count / max(scores.samples, 1)) for name, count in samples.items()),
    ]


def differences(page: AttemptPage) -> list[tuple[str, str]]:
    """To the parent, where there is one, and to the reference: each in words, with the diff."""
    own, source = f"attempt #{page.attempt.id}", page.attempt.source or ""
    compared = []
    if page.parent is not None and page.parent.source is not None:
        name = f"attempt #{page.parent.id}"
        compared.append((f"its parent, {name}", difference(page.parent.source, source, name, own)))
    problem = page.attempt.problem
    return [*compared, ("the reference", difference(problem.source, source, problem.id, own))]


TEMPLATES.globals |= {
    "attempt_headline": findings.headline,
    "badges": badges,
    "base64": lambda data: base64.b64encode(data).decode(),
    "breakable": breakable,
    "builds_of": builds_of,
    "charted": charted,
    "closing_line": closing_line,
    "coloured": coloured,
    "counted": counted,
    "cut": lambda text, most=MOST_LOG: cut(text, most),
    "differences": differences,
    "environment_facts": environment_facts,
    "error_columns": ERROR_COLUMNS,
    "error_rows": error_rows,
    "finding_of": findings.finding_of,
    "flat_figures": flat_figures,
    "funnel": funnel,
    "headline": headline,
    "measurement_facts": measurement_facts,
    "MOST_CODE": MOST_CODE,
    "outcome": outcome,
    "percents_between": percents_between,
    "response_facts": response_facts,
    "rounds_picture": rounds_picture,
    "shapes": SHAPES,
    "share": share,
    "speedup_and_interval": findings.speedup_and_interval,
    "summary_facts": summary_facts,
    "terms": TERMS,
    "three_figures": three_figures,
    "verification_columns": VERIFICATION_COLUMNS,
    "verification_lines": verification_lines,
}
