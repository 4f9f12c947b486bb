"""The page: templates filled with a report. Everything is escaped, and nothing but our own script runs."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from kernelproof.db.scores.records import Scores
from kernelproof.report.html import charts, words
from kernelproof.report.html.code import MOST_LOG, coloured, cut, difference
from kernelproof.report.html.drawing import SERIES, draw
from kernelproof.report.html.gathering import Board, KernelPage, Report
from kernelproof.report.layout import between, percents_between, ratio, share
from kernelproof.report.measurement import measurement_facts
from kernelproof.report.plain import visible
from kernelproof.report.show import builds_of, environment_facts
from kernelproof.report.verification import flat_figures
from kernelproof.version import __version__
from kernelproof.wording import counted


@dataclass(frozen=True)
class Charts:
    """The charts of a board; None where there is nothing to draw."""

    fast_p: Markup | None
    distribution: Markup | None
    cost: Markup | None
    over_turns: Markup | None


def page(report: Report, made: str) -> str:
    """The report as one HTML file. `made`: the day, for people."""
    style, script = _file("style.css"), _file("page.js")
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return (
        _templates()
        .get_template("page.html")
        .render(
            report=report,
            charts=[_charts(board) for board in report.boards],
            style=Markup(style),
            script=Markup(script),
            policy=policy,
            made=made,
            version=__version__,
            shown={found.kernel.attempt_id for found in report.kernels},
        )
    )


@cache
def _file(name: str) -> str:
    return (files("kernelproof.report.html") / "templates" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """As a content security policy names a text that it allows."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


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
        "cut": lambda text: cut(text, MOST_LOG),
        "environment_facts": environment_facts,
        "flat_figures": flat_figures,
        "funnel": funnel,
        "kernel_diff": kernel_diff,
        "measurement_facts": measurement_facts,
        "percents_between": percents_between,
        "ratio": ratio,
        "samples": _samples,
        "share": share,
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


def _samples(found: KernelPage) -> Markup | None:
    """The chart of single calls; None where the record has none."""
    m = found.verification.measurement
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


def kernel_diff(found: KernelPage) -> tuple[str, str]:
    """The parent, else the reference, in words; and the diff from that to the program."""
    own = f"attempt #{found.attempt.id}"
    if found.parent is not None and found.parent.source is not None:
        name = f"attempt #{found.parent.id}"
        return f"its parent, {name}", difference(found.parent.source, found.attempt.source or "", name, own)
    before = found.attempt.problem.source
    return "the reference", difference(before, found.attempt.source or "", found.problem.problem_id, own)
