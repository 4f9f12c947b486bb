"""One attempt on screen: what was asked, answered, built, checked and measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Literal

from rich.box import SIMPLE
from rich.console import Console
from rich.segment import Segment, Segments
from rich.style import Style
from rich.table import Table
from rich.text import Text

from db.views import StoredAttempt, StoredVerification
from pipeline.nouns import CheckOutcome, Environment, Measurement, Prompt, Status, Verification
from pipeline.report.plain import clean

Part = Literal["prompt", "response", "source", "log", "checks", "all"]

OUTCOME_STYLE = {
    CheckOutcome.PASS: "green",
    CheckOutcome.FAIL: "bold red",
    CheckOutcome.NOT_APPLICABLE: "dim",
}


def print_attempt(attempt: StoredAttempt, console: Console, part: Part = "all") -> None:
    """The whole attempt, or one part of it without headings around it.

    Texts of models and compilers are printed with control characters taken out.
    """
    if part == "all":
        _print_summary(attempt, console)
        for title, section in _SECTIONS:
            _words(console, f"\n== {title} ==", "bold")
            section(attempt, console)
    else:
        _PARTS[part](attempt, console)


def _print_summary(attempt: StoredAttempt, console: Console) -> None:
    key, run = attempt.key, attempt.run
    _words(console, f"Attempt #{attempt.id}: {key.problem_id}, sample {key.sample}, turn {key.turn}", "bold")
    for alteration in attempt.alterations:
        _words(console, f"ALTERED: {alteration}", "bold red")
    verdict = attempt.verdict
    status = verdict.verification.status if verdict else attempt.status
    facts = {
        "status": "in progress" if status is None else f"{status}: {status.meaning}",
        "reason": verdict.verification.reason if verdict else "",
        "model": run.model,
        "run": f"{attempt.run_id} {run.name or ''}".strip(),
        "backend, size": f"{run.verify.backend}, {run.verify.size}",
        "problem": f"{attempt.problem.summary or attempt.problem.name} (sha256 {key.problem_sha256[:12]})",
        "repairs": f"#{attempt.parent_id}" if attempt.parent_id else "",
        "begun": attempt.created,
        "finished": attempt.finished or "",
    }
    _facts(console, facts, style="green" if status is Status.CORRECT else "")


def _print_prompt(attempt: StoredAttempt, console: Console) -> None:
    prompt = attempt.prompt
    if prompt is None:
        _words(console, "No prompt: the candidate was given as a file.")
        return
    for role, text in _turns(prompt):
        _words(console, f"[{role}]", "bold")
        _words(console, text)


def _turns(prompt: Prompt) -> Iterable[tuple[str, str]]:
    return (("system", prompt.system), *prompt.history, ("user", prompt.user))


def _print_response(attempt: StoredAttempt, console: Console) -> None:
    if not attempt.responses:
        _words(console, "No response is stored.")
    for stored in attempt.responses:
        response = stored.response
        if response is None:
            _words(console, f"[provider error] {stored.error}", "red")
            continue
        usage = response.usage.model_dump(exclude_none=True) if response.usage else {}
        facts = {
            "served model": response.served_model or "",
            "finish reason": response.finish_reason or "",
            "usage": ", ".join(f"{name} {count}" for name, count in usage.items()),
            "latency": f"{response.latency_s:.2f} s" if response.latency_s is not None else "",
            "request id": response.request_id or "",
            "refusal": response.refusal or "",
        }
        _facts(console, facts)
        if response.reasoning:
            _words(console, "[reasoning]", "bold")
            _words(console, response.reasoning)
        _words(console, "[answer]", "bold")
        _words(console, response.text or "(none)")


def _print_source(attempt: StoredAttempt, console: Console) -> None:
    _words(console, attempt.source if attempt.source is not None else "No program was extracted.")


def _print_extraction(attempt: StoredAttempt, console: Console) -> None:
    extraction = attempt.extraction
    if extraction is None:
        _words(console, "Nothing was extracted yet.")
        return
    facts = {
        "method": extraction.method,
        "status": extraction.status or "",
        "warnings": ", ".join(extraction.warnings),
        "characters": "{} to {}".format(*extraction.span) if extraction.span else "",
        "sha256": extraction.candidate.sha256 if extraction.candidate else "",
    }
    _facts(console, facts)
    _print_source(attempt, console)


def _print_log(attempt: StoredAttempt, console: Console) -> None:
    verification = _verification(attempt)
    if verification is None or not verification.builds:
        _words(console, "Nothing was built.")
        return
    for build in verification.builds:
        how = "from the cache" if build.cached else "compiled"
        _words(console, f"[{build.name}: {build.state}, {how}, {build.duration_s:.1f} s]", "bold")
        for command in build.commands:
            _words(console, f"$ {command}", "dim")
        _words(console, build.log or "(the compilers said nothing)")


def _print_checks(attempt: StoredAttempt, console: Console) -> None:
    verification = _verification(attempt)
    if verification is None:
        _words(console, "No verification is stored.")
        return
    print_verification(verification, console)


def print_verification(verification: Verification, console: Console) -> None:
    """The verdict with its evidence: findings, checks, error statistics, measurement, process output."""
    _words(console, f"{verification.status}: {verification.reason}", "bold")
    _print_findings(verification, console)
    _print_evidence(verification, console)
    _print_errors(verification, console)
    if verification.measurement:
        _print_measurement(verification.measurement, console)
    if verification.details:
        _words(console, "[details]", "bold")
        _words(console, verification.details)


def _print_findings(verification: Verification, console: Console) -> None:
    if verification.findings:
        table = _table("finding", "severity", "line", "what", "evidence")
        for f in verification.findings:
            line = "" if f.line is None else str(f.line)
            table.add_row(*map(_cell, (f.rule, f.severity, line, f.message, f.evidence)))
        console.print(table)


def _print_evidence(verification: Verification, console: Console) -> None:
    if not verification.checks:
        _words(console, "No check was made.")
        return
    table = _table("check", "outcome", "asked", "seen", "figures")
    for check in verification.checks:
        figures = ", ".join(f"{name} {_figure(value)}" for name, value in check.figures.items())
        outcome = Text(check.outcome, style=OUTCOME_STYLE[check.outcome])
        table.add_row(_cell(check.name), outcome, *map(_cell, (check.asked, check.seen, figures)))
    console.print(table)


def _print_errors(verification: Verification, console: Console) -> None:
    if not verification.errors:
        return
    table = _table(
        "trial", "output", "dtype", "wrong", "max abs", "max rel", "norm", "reference's", "first bad"
    )
    for e in verification.errors:
        where = ""
        if e.first_bad is not None:
            where = f"{list(e.first_bad)}: {e.first_bad_values}"
        sizes = (e.max_abs, e.max_rel, e.relative_norm, e.reference_relative_norm)
        wrong = f"{e.wrong}/{e.count}" + (f" ({e.nan} NaN)" if e.nan else "")
        table.add_row(*map(_cell, (e.trial, str(e.output), e.dtype, wrong, *map(_figure, sizes), where)))
    console.print(table)


def _print_measurement(m: Measurement, console: Console) -> None:
    interval = m.speedup_interval
    facts = {
        "speedup": f"{m.speedup:.3f} (95 % interval {interval.low:.3f} to {interval.high:.3f}): {m.pace}",
        "candidate": f"{m.candidate_ms:.6g} ms",
        m.baseline: f"{m.baseline_ms:.6g} ms",
        "host clock": f"{m.host_ms:.6g} ms a call, {m.overhead_ms:.3g} ms overhead taken off",
        "resolution": f"{100 * m.resolution:.2g} %, A/A spread {100 * m.aa_spread:.2g} %",
        "samples": f"{sum(map(len, m.candidate_samples_ms))} in {len(m.order)} blocks ({' '.join(m.order)}), "
        f"{m.slots} input sets, {m.flush_bytes} bytes flushed between calls",
        "clocks before": _pairs(m.clocks_before),
        "clocks after": _pairs(m.clocks_after),
    }
    _facts(console, facts)


def _print_environment(attempt: StoredAttempt, console: Console) -> None:
    verification = _verification(attempt)
    if verification is None or verification.environment is None:
        _words(console, "No process was started.")
    else:
        _facts(console, _environment_facts(verification.environment))
    if verification is not None:
        sandbox = verification.sandbox
        facts = {
            "sandbox": f"tier {sandbox.tier}; {_pairs(sandbox.layers)}" if sandbox else "",
            "seeds": _pairs(verification.seeds),
            "process": verification.exit or "",
            "stage seconds": _pairs(verification.stage_seconds),
            "verifier": verification.verifier,
        }
        _facts(console, facts)


def _environment_facts(environment: Environment) -> dict[str, str]:
    facts = environment.model_dump(exclude={"gpu"}, exclude_none=True)
    if environment.gpu:
        gpu = environment.gpu.model_dump(exclude_none=True)
        facts |= {f"gpu {name}": value for name, value in gpu.items()}
    return {name.replace("_", " "): str(value) for name, value in facts.items()}


def _print_verifications(attempt: StoredAttempt, console: Console) -> None:
    if not attempt.verifications:
        _words(console, "No verification is stored.")
        return
    table = _table("verification", "kind", "status", "speedup", "device", "made", "note")
    for stored in attempt.verifications:
        v = stored.verification
        speedup = f"{v.measurement.speedup:.3f}" if v.measurement else ""
        device = v.environment.device_name if v.environment else ""
        cells = (
            str(stored.id),
            stored.kind,
            v.status,
            speedup,
            device,
            stored.created,
            _note(attempt, stored),
        )
        table.add_row(*map(_cell, cells))
    console.print(table)


def _note(attempt: StoredAttempt, stored: StoredVerification) -> str:
    if stored.retracted is not None:
        return f"retracted: {stored.retracted}"
    return "counts" if stored == attempt.verdict else ""


def _verification(attempt: StoredAttempt) -> Verification | None:
    """The verification that counts, else the newest."""
    if attempt.verdict is not None:
        return attempt.verdict.verification
    return attempt.verifications[-1].verification if attempt.verifications else None


def _words(console: Console, text: str, style: str = "") -> None:
    # Neither wrapped nor tabs expanded: copied code is the code.
    segment = Segment(clean(text) + "\n", Style.parse(style))
    console.print(Segments([segment]), end="", crop=False)


def _facts(console: Console, facts: dict[str, str], style: str = "") -> None:
    table = Table.grid(padding=(0, 2))
    for name, value in facts.items():
        if value:
            table.add_row(
                Text(name, style="dim"), Text(clean(value), style=style if name == "status" else "")
            )
    console.print(table)


def _table(*columns: str) -> Table:
    return Table(*columns, box=SIMPLE, pad_edge=False, show_edge=False)


def _cell(text: str) -> Text:
    return Text(clean(text))


def _figure(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _pairs(values: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {_figure(value)}" for name, value in values.items())


_SECTIONS: tuple[tuple[str, Callable[[StoredAttempt, Console], None]], ...] = (
    ("prompt", _print_prompt),
    ("response", _print_response),
    ("source", _print_extraction),
    ("build log", _print_log),
    ("checks", _print_checks),
    ("environment", _print_environment),
    ("verifications", _print_verifications),
)

_PARTS: dict[str, Callable[[StoredAttempt, Console], None]] = {
    "prompt": _print_prompt,
    "response": _print_response,
    "source": _print_source,
    "log": _print_log,
    "checks": _print_checks,
}
