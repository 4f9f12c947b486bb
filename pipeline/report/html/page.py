"""The page: templates filled with a report. Everything is escaped, and nothing but our own script runs."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from kernelproof.db.scores.records import Scores
from kernelproof.report.html import charts, words
from kernelproof.report.html.attempts import AttemptPage
from kernelproof.report.html.code import MOST_CODE, MOST_LOG, coloured, cut, difference
from kernelproof.report.html.drawing import DASHES, MARKS, SERIES
from kernelproof.report.html.gathering import Report
from kernelproof.report.html.pictures import board_pictures, rounds_picture
from kernelproof.report.layout import between, percents_between, ratio, share
from kernelproof.report.measurement import measurement_facts
from kernelproof.report.plain import visible
from kernelproof.report.show import (
    VERIFICATION_COLUMNS,
    builds_of,
    environment_facts,
    response_facts,
    summary_facts,
    verification_rows,
)
from kernelproof.report.verification import ERROR_COLUMNS, error_rows, flat_figures
from kernelproof.version import __version__
from kernelproof.wording import counted


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


def board_facts(report: Report, href: Callable[[int], str | None] | None = None) -> dict[str, object]:
    """The facts of a report for the templates: its charts are drawn here.

    `href`: attempt to where its page is; None: those of the report's own kernels are on the same page.
    """
    shown = {found.attempt.id: f"#kernel-{found.attempt.id}" for found in report.kernels}
    return {
        "report": report,
        "pictures": [board_pictures(board, href or shown.get) for board in report.boards],
        "href": href or shown.get,
    }


def rendered(
    template: str, facts: dict[str, object], *, scripts: Sequence[str] = ("page.js",), served: bool = False
) -> Page:
    """A template filled with facts, and with our style and scripts.

    `served`: it comes from a server of ours, which it may ask for more; else it asks nobody for anything.
    """
    style, script = _file("style.css"), "".join(map(_file, scripts))
    allowed = (
        "default-src 'none'",
        f"style-src '{_hash(style)}'",
        f"script-src '{_hash(script)}'" if scripts else "script-src 'none'",
        "img-src data:",
        *(["connect-src 'self'"] if served else []),
        "base-uri 'none'",
        "form-action 'self'" if served else "form-action 'none'",
    )
    policy = "; ".join(allowed)
    ours = {"style": Markup(style), "script": Markup(script), "policy": policy, "version": __version__}
    return Page(_templates().get_template(template).render(ours | facts), policy)


def fragment(template: str, facts: dict[str, object]) -> Markup:
    """A part of a page: a template filled with facts."""
    return Markup(_templates().get_template(template).render(facts))


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
        "breakable": _breakable,
        "builds_of": builds_of,
        "coloured": coloured,
        "charted": charts.charted,
        "colours": SERIES,
        "counted": counted,
        "cut": lambda text, most=MOST_LOG: cut(text, most),
        "dashes": [" ".join(map(str, dash)) for dash in DASHES],
        "differences": differences,
        "environment_facts": environment_facts,
        "error_columns": ERROR_COLUMNS,
        "error_rows": error_rows,
        "flat_figures": flat_figures,
        "funnel": funnel,
        "marks": MARKS,
        "measurement_facts": measurement_facts,
        "MOST_CODE": MOST_CODE,
        "percents_between": percents_between,
        "ratio": ratio,
        "response_facts": response_facts,
        "rounds_picture": rounds_picture,
        "share": share,
        "summary_facts": summary_facts,
        "verification_columns": VERIFICATION_COLUMNS,
        "verification_rows": verification_rows,
        "words": words,
    }
    return found


def _breakable(text: str) -> Markup:
    """A name that a narrow column breaks after its underscores."""
    return escape(visible(text)).replace("_", Markup("_<wbr>"))


def _shown(value: object) -> object:
    """Every text that a template prints, unless it is markup of ours."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


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


def differences(found: AttemptPage) -> list[tuple[str, str]]:
    """To the parent, where there is one, and to the reference: each in words, with the diff."""
    own, source = f"attempt #{found.attempt.id}", found.attempt.source or ""
    compared = []
    if found.parent is not None and found.parent.source is not None:
        name = f"attempt #{found.parent.id}"
        compared.append((f"its parent, {name}", difference(found.parent.source, source, name, own)))
    problem = found.attempt.problem
    return [*compared, ("the reference", difference(problem.source, source, problem.id, own))]
