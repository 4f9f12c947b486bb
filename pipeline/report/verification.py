"""One verification on screen, as `verify` and `show` print it: the verdict, its evidence, its measurement."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from rich.console import Console
from rich.text import Text

from kernelproof.analysis.analyse import Analysis, KernelFacts, analyse
from kernelproof.analysis.bottleneck import Bottleneck
from kernelproof.report.layout import (
    attempt_number,
    between,
    figure,
    pairs,
    percent,
    print_facts,
    print_table,
    print_words,
    scaled,
)
from kernelproof.report.plain import clean, json_text
from kernelproof.types import (
    Against,
    Check,
    CheckOutcome,
    Extraction,
    Kernels,
    Launch,
    Measurement,
    Replayed,
    Roofline,
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


REASONS = 3
"""Different reasons for disturbed blocks that are shown."""


def print_measurement(m: Measurement, console: Console) -> None:
    """One line a fact; a fact that was not measured has none."""
    print_facts(console, measurement_facts(m))


def measurement_facts(m: Measurement) -> dict[str, str]:
    """Name and fact; empty where it was not measured."""
    return {
        "speedup": _speedup(m),
        "candidate": f"{m.candidate_ms:.6g} ms" + (", launch-bound" if m.launch_bound else ""),
        m.baseline: f"{m.baseline_ms:.6g} ms",
        **{f"against {a.baseline}": _against(a) for a in m.against},
        "as CUDA graph": _replayed(m.replayed, m.baseline) if m.replayed else "",
        "clocks": _clocks(m),
        "roofline": _roofline(m.roofline) if m.roofline else "",
        "ceilings": _ceilings(m.roofline) if m.roofline else "",
        "resolution": f"{percent(m.resolution)}, A/A spread {percent(m.aa_spread)}",
        "samples": _samples(m),
        "sessions": _sessions(m.sessions),
        "disturbed": _disturbed(m.disturbed),
        "clocks before": pairs(m.clocks_before),
        "clocks after": pairs(m.clocks_after),
    }


def _speedup(m: Measurement | Against) -> str:
    said = f"{m.speedup:.3f} (95 % interval {between(m.speedup_interval)}): {m.pace}"
    return f"{said}, since {m.unresolved_because}" if m.unresolved_because else said


def _against(a: Against) -> str:
    times = f"{a.baseline_ms:.6g} ms, measured {a.measured}"
    return f"{_speedup(a)}; {times}"


def _replayed(replayed: Replayed, baseline: str) -> str:
    """Both times without their launches; the ratio has no interval, so no pace is claimed."""
    mine, other = replayed.candidate_ms, replayed.baseline_ms
    said = [
        f"candidate {mine:.6g} ms" if mine is not None else "the candidate cannot be captured",
        f"{baseline} {other:.6g} ms" if other is not None else f"{baseline} cannot be captured",
    ]
    if mine and other:
        said.append(f"ratio {other / mine:.3f}")
    return ", ".join(said)


def _clocks(m: Measurement) -> str:
    inside = f"inside {m.inside_ms:.6g} ms, " if m.inside_ms is not None else ""
    hidden = f", {m.unseen_ms:.3g} ms of it not shown inside" if m.unseen_ms else ""
    return f"{inside}host {m.host_ms:.6g} ms a call{hidden}; {m.overhead_ms:.3g} ms overhead taken off"


def _roofline(r: Roofline) -> str:
    moved = f"{scaled(r.bytes_read, 'B')} read, {scaled(r.bytes_written, 'B')} written"
    said = [f"{percent(r.fraction)} of the roofline", f"{moved}: at least {r.memory_ms:.4g} ms"]
    if r.operations:
        said.append(f"{scaled(r.operations, 'op')}: at least {r.compute_ms:.4g} ms")
    said.append(f"no program can take less than {r.needed_ms:.4g} ms")
    return "; ".join(said)


def _ceilings(r: Roofline) -> str:
    c = r.ceilings
    rates = f"{scaled(c.bytes_per_s, 'B/s')}, {scaled(c.operations_per_s, 'op/s')}"
    return (
        f"{rates}, {scaled(c.cache_bytes, 'B')} may stay in the cache; "
        f"A/A spread of processes {percent(c.aa_spread)}; measured {c.measured}"
    )


def _samples(m: Measurement) -> str:
    calls = ""
    if m.calls:
        few, many = min(m.calls), max(m.calls)
        calls = f" of {counted(few, 'call')}" if few == many else f" of {few} to {many} calls"
    blocks = counted(len(m.order), "block")
    return (
        f"{sum(map(len, m.candidate_samples_ms))} in {blocks}{calls} ({' '.join(m.order)}), "
        f"{counted(m.slots, 'input set')}, {m.flush_bytes} bytes flushed between calls"
    )


def _sessions(sessions: Sequence[int]) -> str:
    """How many pairs of processes, and how many blocks each; nothing for a single pair."""
    blocks = Counter(sessions)
    if len(blocks) < 2:
        return ""
    counts = ", ".join(str(blocks[session]) for session in sorted(blocks))
    return f"{counted(len(blocks), 'pair')} of fresh processes, with {counts} blocks"


def _disturbed(reasons: Sequence[str]) -> str:
    """How many blocks were thrown away, and the commonest reasons with how often each occurred."""
    if not reasons:
        return ""
    often = Counter(reasons).most_common()
    said = [reason if count == 1 else f"{reason} ({count} times)" for reason, count in often[:REASONS]]
    rest = [f"{len(often) - REASONS} more"] if len(often) > REASONS else []
    return f"{counted(len(reasons), 'block')} repeated: {'; '.join(said + rest)}"


MOST_CANDIDATES = 10
"""Candidates that a table of the fastest shows."""
MOST_TRIALS = 5
"""Trials of a tuner that a table shows, the original apart."""


class Timed(NamedTuple):
    """A program."""

    facts: Sequence[str]
    """Its name and more, in the first columns."""
    measurement: Measurement
    attempt_id: int | None


def print_fastest(titles: Sequence[str], timed: Iterable[Timed], console: Console) -> None:
    """The best, by what each surely reaches, and how many more there are."""
    best = sorted(timed, key=lambda one: -one.measurement.claimed)
    print_timed(titles, best[:MOST_CANDIDATES], console)
    if len(best) > MOST_CANDIDATES:
        console.print(f"and {len(best) - MOST_CANDIDATES} more that were measured")


def print_timed(titles: Sequence[str], rows: Iterable[Timed], console: Console) -> None:
    """A table of programs in their order; nothing where there are none. `titles`: of their facts."""
    cells = (
        (*facts, f"{m.speedup:.3f}", between(m.speedup_interval), m.pace, attempt_number(attempt_id))
        for facts, m, attempt_id in rows
    )
    print_table(console, (*titles, "speedup", "95 % interval", "pace", "attempt"), cells)


ROWS = 20
"""Kernels that the table shows."""
NAME = 60
"""Characters of a kernel's name in it."""


def print_analysis(analysis: Analysis, console: Console) -> None:
    """A table of the kernels of which something is known, and the bottleneck."""
    rows = [_row(facts) for facts in analysis.kernels if facts.registers is not None]
    titles = ("kernel", "threads", "registers", "spilled", "shared", "occupancy", "limited by")
    print_table(console, titles, rows[:ROWS])
    if analysis.bottleneck is not None:
        print_facts(console, {"bottleneck": _bottleneck_line(analysis.bottleneck)})


def _row(facts: KernelFacts) -> tuple[str, ...]:
    occupancy = facts.occupancy
    return (
        facts.launch.name[:NAME],
        _number(facts.launch.threads),
        _number(facts.registers),
        _bytes(facts.spill_bytes),
        _bytes(facts.shared_bytes),
        percent(occupancy.share) if occupancy else "",
        occupancy.limited_by if occupancy else "",
    )


def _number(value: int | None) -> str:
    return "" if value is None else str(value)


def _bytes(value: int | None) -> str:
    return "" if value is None else f"{value} B"


def _bottleneck_line(bottleneck: Bottleneck) -> str:
    """`memory (81 % of the time for the bytes, 2710 GB/s; kernels run for 97 % of it)`."""
    parts = []
    if bottleneck.memory_share is not None and bottleneck.achieved_bytes_per_s is not None:
        speed = figure(bottleneck.achieved_bytes_per_s / 1e9)
        parts.append(f"the bytes need {percent(bottleneck.memory_share)} of the time, {speed} GB/s")
    if bottleneck.compute_share is not None:
        parts.append(f"the arithmetic {percent(bottleneck.compute_share)}")
    if bottleneck.device_share is not None:
        parts.append(f"kernels run for {percent(bottleneck.device_share)} of it")
    return f"{bottleneck.limit} ({'; '.join(parts)})" if parts else bottleneck.limit
