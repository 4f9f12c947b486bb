"""The page: templates filled with a report. Everything is escaped, and nothing but our own script runs."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from kernelproof.db.scores.records import Scores
from kernelproof.report.html import charts, words
from kernelproof.report.html.attempts import AttemptPage
from kernelproof.report.html.code import MOST_CODE, MOST_LOG, coloured, cut, difference
from kernelproof.report.html.drawing import SERIES, draw
from kernelproof.report.html.gathering import Board, Report
from kernelproof.report.layout import between, percents_between, ratio, share
from kernelproof.report.measurement import measurement_facts
from kernelproof.report.plain import visible
from kernelproof.report.show import (
    VERIFICATION_COLUMNS,
    builds_of,
    environment_facts,
    prompt_turns,
    response_facts,
    summary_facts,
    verification_rows,
)
from kernelproof.report.verification import ERROR_COLUMNS, error_rows, flat_figures
from kernelproof.version import __version__
from kernelproof.wording import counted


@dataclass(frozen=True)
class Charts:
    """The charts of a board; None where there is nothing to draw."""

    fast_p: Markup | None
    distribution: Markup | None
    cost: Markup | None
    over_turns: Markup | None


@dataclass(frozen=True)
class Page:
    """A page, and the content security policy that stands in it: a server sends that in a header, too."""

    text: str
    policy: str


def page(report: Report, made: str) -> str:
    """The report as one HTML file. `made`: the day, for people."""
    return rendered("page.html", {"made": made, **board_facts(report)}).text


def attempt_file(found: AttemptPage, made: str) -> str:
    """An attempt with its evidence as one HTML file. `made`: the day, for people."""
    return rendered("attempt.html", {"made": made, "found": found}).text


def board_facts(report: Report) -> dict[str, object]:
    """What the templates are told of a report: its charts are drawn here."""
    return {
        "report": report,
        "charts": [_charts(board) for board in report.boards],
        "shown": {found.attempt.id for found in report.kernels},
    }


def rendered(
    template: str, facts: dict[str, object], *, scripts: Sequence[str] = ("page.js",), sources: str = ""
) -> Page:
    """A template filled with facts, and with our style and scripts.

    `sources`: what the policy allows besides, such as `connect-src 'self'` for a page that a server sends.
    """
    style, script = _file("style.css"), "".join(map(_file, scripts))
    allowed = (
        "default-src 'none'",
        f"style-src '{_hash(style)}'",
        f"script-src '{_hash(script)}'",
        "img-src data:",
        *([sources] if sources else []),
        "base-uri 'none'",
        "form-action 'none'",
    )
    policy = "; ".join(allowed)
    ours = {"style": Markup(style), "script": Markup(script), "policy": policy, "version": __version__}
    return Page(_templates().get_template(template).render(ours | facts), policy)


@cache
def _file(name: str) -> str:
    return (files("kernelproof.report.html") / "templates" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """As a content security policy names a text that it allows."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


@cache
def _templates() -> Environment:
    found = Environment(
        loader=PackageLoader("kernelproof.report.html", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.globals |= {
        "between": between,
        "builds_of": builds_of,
        "coloured": coloured,
        "charted": charts.charted,
        "colours": SERIES,
        "counted": counted,
        "cut": lambda text, most=MOST_LOG: cut(text, most),
        "environment_facts": environment_facts,
        "error_columns": ERROR_COLUMNS,
        "error_rows": error_rows,
        "flat_figures": flat_figures,
        "funnel": funnel,
        "kernel_diff": kernel_diff,
        "measurement_facts": measurement_facts,
        "MOST_CODE": MOST_CODE,
        "percents_between": percents_between,
        "prompt_turns": prompt_turns,
        "ratio": ratio,
        "response_facts": response_facts,
        "samples": _samples,
        "share": share,
        "summary_facts": summary_facts,
        "verification_columns": VERIFICATION_COLUMNS,
        "verification_rows": verification_rows,
        "words": words,
    }
    return found


def _shown(value: object) -> object:
    """Every text that a template prints, unless it is markup of ours."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _charts(board: Board) -> Charts:
    models, speedups = board.models, board.speedups
    of = f"{counted(len(charts.charted(models)), 'model')}; the table of models has the figures"
    cost, turns = charts.cost(models), charts.over_turns(board.by_turns, models)
    return Charts(
        fast_p=draw(charts.fast_p(models, speedups), f"Curves of fast_p for {of}") if speedups else None,
        distribution=draw(charts.distribution(models, speedups), f"Speedups of correct samples for {of}")
        if speedups
        else None,
        cost=None if cost is None else draw(cost, f"Tokens for each correct sample against speedup, {of}"),
        over_turns=None if turns is None else draw(turns, f"Speedup after each number of turns, {of}"),
    )


def _samples(found: AttemptPage) -> Markup | None:
    """The chart of single calls; None where the record has none."""
    m = found.verification.measurement if found.verification else None
    if m is None or not m.candidate_samples_ms:
        return None
    title = (
        f"Times of single calls: candidate, median claim {m.candidate_ms:.4g} ms; "
        f"{m.baseline}, median {m.baseline_ms:.4g} ms"
    )
    return draw(charts.samples(m), title)


def funnel(scores: Scores) -> list[tuple[str, int, float]]:
    """From question to faster: name, count, and part of what was asked (of the samples, for the last two)."""
    attempts = [
        ("asked", scores.attempts),
        ("answered", scores.answered),
        ("extracted", scores.extracted),
        ("built", scores.built),
        ("correct", scores.right),
    ]
    samples = [
        ("correct samples", scores.correct.part),
        ("faster samples", scores.fast_p(1.0).rate.part),
    ]
    return [
        *((name, count, count / max(scores.attempts, 1)) for name, count in attempts),
        *((name, count, count / max(scores.samples, 1)) for name, count in samples),
    ]


def kernel_diff(found: AttemptPage) -> tuple[str, str]:
    """The parent, else the reference, in words; and the diff from that to the program."""
    own = f"attempt #{found.attempt.id}"
    if found.parent is not None and found.parent.source is not None:
        name = f"attempt #{found.parent.id}"
        return f"its parent, {name}", difference(found.parent.source, found.attempt.source or "", name, own)
    before = found.attempt.problem.source
    return "the reference", difference(before, found.attempt.source or "", found.attempt.problem.id, own)
