"""One verification on screen, as `verify` and `show` print it: the verdict, its evidence, its measurement.
And a reproduction: what was claimed, what was seen now, and what differs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from kernelproof.analysis.analyse import KernelFacts, analyse
from kernelproof.analysis.bottleneck import Bottleneck
from kernelproof.choices import Rigor
from kernelproof.report.findings import (
    SEPARATOR,
    against,
    bound_words,
    finding_of,
    gist,
    headline,
    milliseconds,
    score_words,
    times,
    why_unresolved,
)
from kernelproof.report.layout import (
    attempt_number,
    figure,
    pairs,
    percent,
    print_facts,
    print_table,
    print_words,
    scaled,
    setting_line,
)
from kernelproof.report.leaderboard import PACE_STYLE
from kernelproof.report.plain import clean
from kernelproof.types import (
    Check,
    CheckOutcome,
    Extraction,
    Kernels,
    Measurement,
    Pace,
    Replayed,
    Reproduction,
    Roofline,
    Status,
    Verification,
    VerifySettings,
)
from kernelproof.types import ReproductionFinding as Finding
from kernelproof.types.reproduction import Bundled
from kernelproof.types.verification import SANITIZER
from kernelproof.wording import counted

OUTCOME_STYLE = {
    CheckOutcome.PASS: "green",
    CheckOutcome.FAIL: "bold red",
    CheckOutcome.NOT_APPLICABLE: "dim",
}
OUTCOME_MARKS = {CheckOutcome.FAIL: "FAIL", CheckOutcome.PASS: "pass", CheckOutcome.NOT_APPLICABLE: "n/a"}
ERROR_COLUMNS = (
    *("trial", "output", "dtype", "wrong", "max abs", "max rel", "norm", "allowed", "reference's"),
    "first bad",
)
ERROR_SPARE = ("dtype", "max rel", "reference's", "max abs", "allowed", "norm")
KERNEL_COLUMNS = (
    *("kernel", "whose", "launches", "ms", "share"),
    *("threads", "registers", "spilled", "shared", "occupancy", "limited by"),
)
KERNEL_SPARE = ("launches", "shared", "threads", "whose", "spilled", "ms")
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
    *,
    checks: bool = False,
    where: str = "",
) -> None:
    """The result: what it is, what it rests on, and what to do next. `checks`: with all of the evidence.
    `where`: the option that names the workspace, for the commands."""
    reason = "the file is empty" if status is Status.EMPTY else extraction.reason
    print_headline(status, verification, reason, attempt_id, console)
    extracted = f"by {extraction.method} {' '.join(extraction.warnings)}".rstrip()
    facts = {"extracted": "" if extraction.method in ("whole", "none") else extracted}
    if verification is None:
        if status is not Status.EMPTY:
            print_facts(console, {"meaning": status.meaning, **facts})
    else:
        print_facts(console, facts | result_facts(verification))
        if not checks and verification.status is not Status.CORRECT:
            print_failure(verification, console)
    if checks and verification is not None:
        console.print()
        print_verification(verification, console)
    print_next(next_steps(status, verification, attempt_id, where), console)


def print_headline(
    status: Status | None,
    verification: Verification | None,
    reason: str,
    attempt_id: int | None,
    console: Console,
    name: str = "",
) -> None:
    """The result in one line, behind the candidate's name; a narrow terminal folds it between its parts,
    where they fit."""
    first, *parts = clean(headline(status, verification, reason, attempt_id)).split(SEPARATOR)
    before = f"{name}: " if name else ""
    lines = [before + first]
    for part in parts:
        joined = f"{lines[-1]}{SEPARATOR}{part}"
        # What fits into no line is folded where it is.
        whole = cell_len(joined) > console.width > cell_len(part) + 1 and console.is_terminal
        lines[-1:] = [lines[-1], f"  {part}"] if whole else [joined]
    line = Text("\n".join(lines), style="bold")
    style = "green" if status is Status.CORRECT else "red" if status else "dim"
    line.stylize(style, len(before), len(before + first))
    for pace, style in PACE_STYLE.items():
        line.highlight_regex(rf"(?<=\] ){pace}", style)
    console.print(line, soft_wrap=not console.is_terminal)


def result_facts(verification: Verification) -> dict[str, str]:
    """What a result rests on, a line each; empty where there is nothing to say."""
    v, m = verification, verification.measurement
    # A check's words stand beside it, and what the headline quotes whole is not said twice.
    seen = any(check.outcome is CheckOutcome.FAIL and check.seen in v.reason for check in v.checks)
    correct = v.status is Status.CORRECT
    usual = seen or v.reason.startswith("every check passed") or v.reason.rstrip(" .") == gist(v.reason)
    grade = (v.error_class, v.determinism and f"repeats: {v.determinism}") if correct else ()
    counts = Counter(check.outcome for check in v.checks)
    # A correct candidate can fail only probes, and these give flags.
    words = OUTCOME_WORDS | ({CheckOutcome.FAIL: "flagged"} if correct else {})
    outcomes = (f"{counts[outcome]} {said}" for outcome, said in words.items() if counts[outcome])
    facts = {
        "reason": "" if usual else v.reason,
        "checks": SEPARATOR.join(filter(None, (", ".join(outcomes), *grade))),
        "flags": ", ".join(f"{flag}: {flag.meaning}" for flag in v.flags),
        "sanitizers": "; ".join(
            f"{check.name.removeprefix(SANITIZER)}: {check.seen}"
            for check in v.checks
            if check.name.startswith(SANITIZER)
        ),
    }
    if m is not None and correct:
        facts |= {
            "speedup": bound_words(m),
            "score": score_words(m.speedup_interval, m.pace),
            **{f"beside {a.baseline}": f"{finding_of(a)}, {milliseconds(a.baseline_ms)}" for a in m.against},
            "measured": f"{counted(len(m.order), 'round')} beside PyTorch, rigor {v.settings.rigor}; "
            f"a gain below {percent(m.resolution)} would not count",
            "busy": m.busy,
        }
        if m.roofline is not None:
            facts["roofline"] = (
                f"the kernel reaches {percent(m.roofline.fraction)} of what this device can do at best"
            )
    return facts | {"on": setting_line(v.setting)}


OUTCOME_WORDS = {
    CheckOutcome.PASS: "passed",
    CheckOutcome.FAIL: "failed",
    CheckOutcome.NOT_APPLICABLE: "not applicable",
}
EXCERPT = 12
"""Lines of a compiler's or a program's words that are shown with a failure."""


def print_failure(verification: Verification, console: Console) -> None:
    """What failed, and what had passed; with the first lines of an error, or the last of a traceback."""
    if verification.findings:
        console.print()
        _print_findings(verification, console)
    if verification.checks:
        console.print()
        _print_checks(
            [c for c in verification.checks if c.outcome is CheckOutcome.FAIL], console, figures=False
        )
        passed = [c.name for c in verification.checks if c.outcome is CheckOutcome.PASS]
        if passed:
            print_facts(console, {"pass": ", ".join(passed)})
    if lines := excerpt(verification.details):
        console.print()
        print_words(console, lines)


def excerpt(details: str) -> str:
    """EXCERPT lines: from a compiler's first error on, else the last ones."""
    lines = details.rstrip().splitlines()
    first = next((n for n, line in enumerate(lines) if ": error:" in line), None)
    return "\n".join(lines[-EXCERPT:] if first is None else lines[first : first + EXCERPT])


Steps = dict[str, str]


def next_steps(
    status: Status | None, verification: Verification | None, attempt_id: int | None, where: str = ""
) -> Steps:
    """What to do with a result. `where`: the option that names the workspace, with a blank before it."""
    if attempt_id is None:
        return {} if verification is None else {"the same command with --checks": "every check, all figures"}
    show = f"kernelproof show {attempt_id}{where}"
    again = f"kernelproof reproduce {attempt_id}{where}"
    if verification is None:
        return {f"{show} --response": "the text that was given"} if status else {}
    checks = (
        {f"{show} --checks": "each check with its evidence, and all figures"} if verification.checks else {}
    )
    m = verification.measurement
    if status is Status.CORRECT and m is not None and m.pace is Pace.UNRESOLVED:
        more = LONGER[verification.settings.rigor]
        return checks | {f"{again} --rigor {more}": "measure longer, best on a quiet machine"}
    if status is Status.CORRECT:
        board = {f"kernelproof leaderboard{where}": "beside other results"}
        return checks | {again: "build and measure it once more"} | board
    if status is Status.INFRASTRUCTURE_ERROR:
        return checks | {"kernelproof doctor": "what this machine lacks"}
    log = {f"{show} --log": "all that the compilers said"} if verification.builds else {}
    return (log if status in BUILDING else checks) | {f"{show} --source": "the program that was judged"}


LONGER = {Rigor.QUICK: Rigor.STANDARD, Rigor.STANDARD: Rigor.PUBLISH, Rigor.PUBLISH: Rigor.PUBLISH}
BUILDING = (Status.BUILD_ERROR, Status.BUILD_TIMEOUT)


def print_next(steps: Steps, console: Console) -> None:
    if not steps:
        return
    console.print()
    longest = max(map(len, steps))
    beside = longest + 2 + max(map(len, steps.values())) <= console.width
    for command, purpose in steps.items():
        said = Text(f"{clean(purpose)}:\n  " if not beside else "", style="dim")
        said.append(clean(command).ljust(longest if beside else 0), style="not dim")
        said.append(f"  {clean(purpose)}" if beside else "")
        console.print(said, soft_wrap=True)


def json_facts(
    extraction: Extraction, status: Status, verification: Verification | None, attempt_id: int | None
) -> dict[str, object]:
    """A result as `verify --json` prints it."""
    return {
        "attempt": attempt_id,
        "status": status,
        "extraction": extraction.model_dump(exclude={"candidate"}),
        "verification": verification,
    }


def print_verification(verification: Verification, console: Console) -> None:
    """All of the evidence: rules, findings, checks, errors, kernels, times, process output."""
    print_facts(console, {"rules": rules(verification.settings)})
    _print_findings(verification, console)
    if not verification.checks:
        print_words(console, "No check was made.")
    _print_checks(verification.checks, console)
    print_table(console, ERROR_COLUMNS, error_rows(verification), ERROR_SPARE)
    analysis = analyse(verification)
    if verification.kernels:
        _print_kernels(verification.kernels, analysis.kernels, console)
    if analysis.bottleneck is not None:
        print_facts(console, {"bottleneck": _bottleneck_line(analysis.bottleneck)})
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


def _print_findings(verification: Verification, console: Console) -> None:
    table = Table.grid(padding=(0, 2))
    for f in verification.findings:
        words = Text("\n".join(filter(None, (clean(f.message), clean(f.evidence)))))
        table.add_row(f.severity, clean(f.rule) + ("" if f.line is None else f", line {f.line}"), words)
    if table.row_count:
        console.print(table)


def _print_checks(checks: Sequence[Check], console: Console, *, figures: bool = True) -> None:
    """Outcome and name; the question where it is another than before, the answer, the figures."""
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    known: set[str] = set()
    for check in checks:
        asked = "" if check.asked in known else check.asked
        known.add(check.asked)
        parts = [(asked, "dim"), (check.seen, ""), (flat_figures(check) if figures else "", "dim")]
        said = Text("\n").join(Text(clean(words), style=style) for words, style in parts if words)
        mark = Text(OUTCOME_MARKS[check.outcome], style=OUTCOME_STYLE[check.outcome])
        table.add_row(mark, clean(check.name), said)
    if table.row_count:
        console.print(table)


def flat_figures(check: Check) -> str:
    """A check's figures for people: nested ones are for machines, which read `--json`."""
    return pairs({k: v for k, v in check.figures.items() if not isinstance(v, dict | list | tuple)})


def error_rows(verification: Verification) -> Iterator[tuple[str, ...]]:
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


def _print_kernels(kernels: Kernels, analysed: Sequence[KernelFacts], console: Console) -> None:
    """Whose they are, what they took, and what of an SM; columns of which nothing is known are left out."""
    total_ms = sum(launch.ms or 0.0 for launch in kernels.launches)
    rows = [_kernel(facts, total_ms) for facts in analysed[:KERNEL_ROWS]]
    known = [n for n, cells in enumerate(zip(*rows, strict=True)) if any(cells)]
    titles = [KERNEL_COLUMNS[n] for n in known]
    print_table(console, titles, [[row[n] for n in known] for row in rows], KERNEL_SPARE)
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


def _kernel(facts: KernelFacts, total_ms: float) -> tuple[str, ...]:
    launch, occupancy = facts.launch, facts.occupancy
    name = launch.name
    if len(name) > KERNEL_NAME:
        name = f"{name[: KERNEL_NAME // 2]} ... {name[-KERNEL_NAME // 2 + 5 :]}"
    spilled, shared = (
        "" if size is None else f"{size} B" for size in (facts.spill_bytes, facts.shared_bytes)
    )
    return (
        *(name, launch.origin, str(launch.count)),
        "" if launch.ms is None else figure(launch.ms),
        percent(launch.ms / total_ms) if launch.ms is not None and total_ms else "",
        *("" if count is None else str(count) for count in (launch.threads, facts.registers)),
        *(spilled, shared),
        *((percent(occupancy.share), occupancy.limited_by) if occupancy else ("", "")),
    )


REASONS = 3


def print_measurement(m: Measurement, console: Console) -> None:
    print_facts(console, measurement_facts(m))


def measurement_facts(m: Measurement) -> dict[str, str]:
    return {
        "speedup": finding_of(m),
        "candidate": f"{m.candidate_ms:.6g} ms" + (", launch-bound" if m.launch_bound else ""),
        m.baseline: f"{m.baseline_ms:.6g} ms",
        **{
            f"against {a.baseline}": f"{finding_of(a)}; {a.baseline_ms:.6g} ms, measured {a.measured}"
            for a in m.against
        },
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


def _replayed(replayed: Replayed, baseline: str) -> str:
    """Both times without their launches; the ratio has no interval, so no pace is claimed."""
    mine, other = replayed.candidate_ms, replayed.baseline_ms
    said = [
        f"candidate {mine:.6g} ms" if mine is not None else "the candidate cannot be captured",
        f"{baseline} {other:.6g} ms" if other is not None else f"{baseline} cannot be captured",
    ]
    if mine and other:
        said.append(f"ratio {times(other / mine)}")
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
MOST_TRIALS = 5
"""Trials of a tuner that a table shows, the original apart."""


class Timed(NamedTuple):
    facts: Sequence[str]
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
    cells = [
        (
            *facts,
            times(m.speedup, m.speedup_interval),
            m.pace,
            attempt_number(attempt_id),
            why_unresolved(m.speedup_interval, m.pace, m.unresolved_because),
        )
        for facts, m, attempt_id in rows
    ]
    last = ("why",) if any(row[-1] for row in cells) else ()
    titles = (*titles, "speedup, 95 % interval", "pace", "attempt", *last)
    print_table(console, titles, [row[: len(titles)] for row in cells])


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


STYLE = {Finding.SAME: "bold green", Finding.FASTER: "bold green", Finding.AMBIGUOUS: "bold yellow"}


def print_reproduction(result: Reproduction, console: Console) -> None:
    console.print(
        f"attempt {result.attempt_id}: {result.finding.value.replace('_', ' ')}",
        style=STYLE.get(result.finding, "bold red"),
    )
    console.print(clean(result.reason), soft_wrap=True)
    _print_alterations(result.alterations, console)
    for label, verification in (("then", result.then), ("now", result.now)):
        if verification is not None:
            console.print(f"{label:<5} {clean(_line(verification))}", soft_wrap=True)
    for field, (then, now) in result.differences.items():
        console.print(f"  {field}: {clean(str(then))} then, {clean(str(now))} now", soft_wrap=True)
    if result.now is not None and not result.differences:
        console.print("the environment is the same")
    if result.verification_id is not None:
        console.print(f"kept as verification {result.verification_id}: kernelproof show {result.attempt_id}")


def print_tampering(path: Path, tampering: Sequence[str], console: Console) -> None:
    console.print(f"{clean(str(path))}: tampered", style="bold red", soft_wrap=True)
    console.print("the bundle is not what its manifest says; nothing was run", soft_wrap=True)
    _print_alterations(tampering, console)


def print_bundle(path: Path, sha256: str, attempts: Mapping[int, Bundled | None], console: Console) -> None:
    """Prints the attempts of a bundle. None: an attempt whose records cannot be read."""
    console.print(f"{clean(str(path))}: {counted(len(attempts), 'attempt')}, sha256 {sha256}", soft_wrap=True)
    rows = [
        (str(number), *(_row(a) if a else ("cannot be read", *[""] * 5))) for number, a in attempts.items()
    ]
    print_table(console, ("attempt", "problem", "model", "status", "speedup", "device", "verified"), rows)


def _row(attempt: Bundled) -> tuple[str, ...]:
    claim = attempt.verification
    speedup = times(claim.measurement.speedup) if claim.measurement else ""
    device = claim.environment.device_name if claim.environment else ""
    return attempt.problem.id, attempt.run.model, claim.status, speedup, device, claim.created


def _print_alterations(alterations: Sequence[str], console: Console) -> None:
    for alteration in alterations:
        console.print(f"  tampered: {clean(alteration)}", soft_wrap=True)


def _line(verification: Verification) -> str:
    device = verification.environment.device_name if verification.environment else "no device"
    measured = verification.measurement
    if measured is None:
        return f"{verification.status} on {device}, {verification.created}"
    said = f"{finding_of(measured)}, {against(measured.candidate_ms, measured.baseline_ms)}"
    return f"{verification.status}, {said} on {device}, {verification.created}"
