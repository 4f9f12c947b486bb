"""One verification on screen, as `verify` and `show` print it: the verdict, then all of its evidence."""

from __future__ import annotations

import json
from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from kernelproof.analysis.analyse import analyse
from kernelproof.report.analysis import print_analysis
from kernelproof.report.layout import figure, pairs, percent, print_facts, print_table, print_words
from kernelproof.report.measurement import print_measurement
from kernelproof.report.plain import clean, json_text
from kernelproof.types import (
    Check,
    CheckOutcome,
    Extraction,
    Kernels,
    Launch,
    Status,
    Verification,
    VerifySettings,
)
from kernelproof.wording import counted

OUTCOME_STYLE = {
    CheckOutcome.PASS: "green",
    CheckOutcome.FAIL: "bold red",
    CheckOutcome.NOT_APPLICABLE: "dim",
}
ERROR_COLUMNS = (
    *("trial", "output", "dtype", "wrong", "max abs", "max rel", "norm", "allowed", "reference's"),
    "first bad",
)
KERNEL_ROWS = 20
"""Kernels that a table shows; those that took longest come first."""
KERNEL_NAME = 100
"""Characters of a kernel's name in it: names of templates run to a thousand."""


def print_verified(
    extraction: Extraction,
    status: Status,
    verification: Verification | None,
    attempt_id: int | None,
    console: Console,
) -> None:
    """The verdict with every check, and where it is kept."""
    if extraction.method != "whole":
        console.print(f"extracted by {extraction.method} {' '.join(extraction.warnings)}".rstrip())
    if verification is None:
        print_words(console, f"{status}: {extraction.reason or status.meaning}", "bold")
        if extraction.reason:
            print_words(console, status.meaning)
    else:
        print_verification(verification, console)
    if attempt_id is not None:
        console.print(f"kept as attempt {attempt_id}: kernelproof show {attempt_id}")


def json_verified(
    extraction: Extraction, status: Status, verification: Verification | None, attempt_id: int | None
) -> str:
    """The same as one JSON object."""
    return clean(json.dumps(_facts(extraction, status, verification, attempt_id), indent=1))


def json_line(
    name: str,
    problem_id: str,
    kept: bool,
    extraction: Extraction,
    status: Status,
    verification: Verification | None,
    attempt_id: int | None,
) -> str:
    """The same on one line, for one of many candidates; `kept` when it was taken from the store."""
    facts = _facts(extraction, status, verification, attempt_id)
    return clean(json.dumps({"id": name, "problem": problem_id, "kept": kept, **facts}))


def _facts(
    extraction: Extraction, status: Status, verification: Verification | None, attempt_id: int | None
) -> dict[str, object]:
    return {
        "attempt": attempt_id,
        "status": status.value,
        "extraction": extraction.model_dump(mode="json", exclude={"candidate"}),
        "verification": json.loads(json_text(verification)) if verification else None,
    }


def print_verification(verification: Verification, console: Console) -> None:
    """The verdict with its evidence: rules, findings, checks, errors, kernels, times, process output."""
    print_words(console, f"{verification.status}: {verification.reason}", "bold")
    _print_verdict(verification, console)
    _print_findings(verification, console)
    _print_evidence(verification, console)
    print_table(console, ERROR_COLUMNS, error_rows(verification))
    if verification.kernels:
        _print_kernels(verification.kernels, console)
    print_analysis(analyse(verification), console)
    if verification.measurement:
        print_measurement(verification.measurement, console)
    if verification.details:
        print_words(console, "[details]", "bold")
        print_words(console, verification.details)


def rules(settings: VerifySettings) -> str:
    """The rules for the candidate and for the clock: `numerics fp32, purity any, rigor standard`."""
    said = f"numerics {settings.numerics}, purity {settings.purity}, rigor {settings.rigor}"
    if settings.threads:
        said += f", {counted(settings.threads, 'thread')}"
    return said + ("" if settings.own_kernel else ", no own kernel required")


def _print_verdict(verification: Verification, console: Console) -> None:
    v = verification
    facts = {
        "rules": rules(v.settings),
        "error class": v.error_class or "",
        "determinism": v.determinism or "",
        "flags": ", ".join(f"{flag}: {flag.meaning}" for flag in v.flags),
    }
    print_facts(console, facts)


def _print_findings(verification: Verification, console: Console) -> None:
    rows = [
        (f.rule, f.severity, "" if f.line is None else str(f.line), f.message, f.evidence)
        for f in verification.findings
    ]
    print_table(console, ("finding", "severity", "line", "what", "evidence"), rows)


def _print_evidence(verification: Verification, console: Console) -> None:
    if not verification.checks:
        print_words(console, "No check was made.")
    rows = (
        (c.name, Text(c.outcome, style=OUTCOME_STYLE[c.outcome]), c.asked, c.seen, flat_figures(c))
        for c in verification.checks
    )
    print_table(console, ("check", "outcome", "asked", "seen", "figures"), rows)


def flat_figures(check: Check) -> str:
    """A check's figures for people: nested ones are for machines, which read `--json`."""
    return pairs({k: v for k, v in check.figures.items() if not isinstance(v, dict | list | tuple)})


def error_rows(verification: Verification) -> Iterator[tuple[str, ...]]:
    """The cells of ERROR_COLUMNS for each output that was compared."""
    for e in verification.errors:
        where = ""
        if e.first_bad is not None:
            where = f"{list(e.first_bad)}: {e.first_bad_values}"
            where += f", allowed error {figure(e.allowed_abs)}" if e.allowed_abs is not None else ""
        allowed = "" if e.allowed_norm is None else figure(e.allowed_norm)
        sizes = (*map(figure, (e.max_abs, e.max_rel, e.relative_norm)), allowed)
        wrong = f"{e.wrong}/{e.count}" + (f" ({e.nan} NaN)" if e.nan else "")
        wrong = f"norm of {e.count}" if e.only_norm else wrong
        own = figure(e.reference_relative_norm)
        yield e.trial, str(e.output), e.dtype, wrong, *sizes, own, where


def _print_kernels(kernels: Kernels, console: Console) -> None:
    times = [launch.ms for launch in kernels.launches if launch.ms is not None]
    rows = [_kernel(launch, sum(times)) for launch in kernels.longest_first[:KERNEL_ROWS]]
    print_table(console, ("kernel", "whose", "launches", "ms", "share"), rows)
    facts = {
        "more kernels": str(len(kernels.launches[KERNEL_ROWS:]) or ""),
        "own share": "" if kernels.own_share is None else f"{percent(kernels.own_share)} of the time",
        "replaced": _replaced(kernels),
        "operators": ", ".join(kernels.operators),
        "took memory": ", ".join(f"{name} {count}" for name, count in kernels.allocations.items()),
        "profile": kernels.trouble,
    }
    print_facts(console, facts)


def _replaced(kernels: Kernels) -> str:
    if kernels.replaced_share is None:
        return ""
    said = f"{percent(kernels.replaced_share)} of the reference's time in libraries"
    if kernels.replaced_outside_products is None:
        return said
    return f"{said}, {percent(kernels.replaced_outside_products)} of it outside of products and convolutions"


def _kernel(launch: Launch, total_ms: float) -> tuple[str, ...]:
    name = launch.name
    if len(name) > KERNEL_NAME:
        name = f"{name[: KERNEL_NAME // 2]} ... {name[-KERNEL_NAME // 2 + 5 :]}"
    if launch.ms is None:
        return name, launch.origin, str(launch.count), "", ""
    share = percent(launch.ms / total_ms) if total_ms else ""
    return name, launch.origin, str(launch.count), figure(launch.ms), share
