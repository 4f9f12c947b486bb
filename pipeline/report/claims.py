"""Claims that came with imported programs, beside the verdicts here: on screen and as CSV."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from kernelproof.db.claims import ClaimedResult, Claims, ClaimTotals
from kernelproof.db.scores.filters import Filters
from kernelproof.report.layout import between
from kernelproof.report.leaderboard import PACE_STYLE
from kernelproof.report.plain import clean
from kernelproof.report.tables import Column, csv_text, fitting, setting_line
from kernelproof.types import Setting, Status
from kernelproof.wording import counted

COLUMNS = (
    *("problem_id", "problem_sha256", "attempt_id", "model", "source", *Setting.model_fields),
    *("claimed_compiled", "claimed_correct", "claimed_ms", "claimed_speedup", "claimed_device"),
    *("status", "correct", "speedup", "speedup_low", "speedup_high", "pace"),
    *("candidate_ms", "baseline_ms", "flags"),
)
_TABLE = (
    Column("problem", number=False, name=True),
    Column("claimed", number=False),
    Column("claimed speedup"),
    Column("claimed on", number=False, name=True, spare=2, optional=True),
    Column("judged here", number=False),
    Column("speedup"),
    Column("95 % interval", spare=5),
    Column("pace", number=False, spare=6),
    Column("flags", number=False, name=True, spare=3, optional=True),
    Column("model", number=False, name=True, spare=4),
    Column("source", number=False, name=True, spare=1),
    Column("attempt"),
)


def print_claims(claims: Claims, console: Console) -> None:
    """For each setting a table of the programs, and their totals."""
    if not claims.results:
        _print_empty(claims, console)
        return
    for totals in claims.totals:
        console.print(Text(setting_line(totals.setting), style="bold"))
        rows = [_row(result) for result in claims.results if result.setting == totals.setting]
        console.print(fitting(_TABLE, rows, console))
        for line in _sentences(totals):
            console.print(line, soft_wrap=True)


def claims_csv(claims: Claims) -> str:
    """One line a program and setting; empty cells: nothing was claimed, or nothing is known."""
    return csv_text(COLUMNS, map(_cells, claims.results))


def _print_empty(claims: Claims, console: Console) -> None:
    if claims.filters != Filters():
        console.print("No imported program passes these filters; leaderboard --claims shows them all.")
    else:
        console.print("No program was imported yet. Import some: kernelproof import FOLDER --model NAME.")


def _row(r: ClaimedResult) -> list[Text | str]:
    good = r.status is Status.CORRECT
    contradicted = r.judged and r.claimed_correct is not None and r.claimed_correct is not r.correct
    return [
        Text(clean(r.problem_id)),
        _claim(r),
        "" if r.claimed_speedup is None else f"{r.claimed_speedup:.3f}",
        Text(clean(r.claimed_device or "")),
        Text(r.status or "not judged", style="bold red" if contradicted else "green" if good else ""),
        "" if r.speedup is None else f"{r.speedup:.3f}",
        between(r.interval),
        Text(r.pace or "", style=PACE_STYLE[r.pace] if r.pace else ""),
        Text(", ".join(r.flags)),
        Text(clean(r.model)),
        Text(clean(r.source)),
        f"#{r.attempt_id}",
    ]


def _claim(r: ClaimedResult) -> str:
    if r.claimed_correct is not None:
        return "correct" if r.claimed_correct else "wrong" if r.claimed_compiled is not False else "no build"
    return "something" if r.claimed else "-"


def _sentences(t: ClaimTotals) -> list[str]:
    """The totals in words: `Claimed correct 9: judged correct 7, judged otherwise 2.`"""
    said = [f"{counted(t.programs, 'program')}, {t.with_claim} with a claim; judged correct {t.correct}."]
    if t.claimed_correct:
        unknown = t.claimed_correct - t.confirmed - t.refuted
        rest = f", not judged {unknown}" if unknown else ""
        said.append(
            f"Claimed correct {t.claimed_correct}: "
            f"judged correct {t.confirmed}, judged otherwise {t.refuted}{rest}."
        )
    if t.claimed_wrong_judged_correct:
        said.append(f"Claimed wrong, and judged correct: {t.claimed_wrong_judged_correct}.")
    if t.claimed_faster:
        said.append(f"Claimed faster {t.claimed_faster}: faster here {t.confirmed_faster}.")
    if t.compared:
        means = f"{t.claimed_geometric_mean:.3f} claimed, {t.geometric_mean:.3f} here"
        said.append(f"Geometric mean of {counted(t.compared, 'speedup')}: {means}.")
    return said


def _cells(r: ClaimedResult) -> tuple[object, ...]:
    interval = (None, None) if r.interval is None else (r.interval.low, r.interval.high)
    return (
        *(r.problem_id, r.problem_sha256, r.attempt_id, r.model, r.source),
        *r.setting.model_dump().values(),
        *(r.claimed_compiled, r.claimed_correct, r.claimed_ms, r.claimed_speedup, r.claimed_device),
        *(r.status, r.correct, r.speedup, *interval, r.pace),
        *(r.candidate_ms, r.baseline_ms, " ".join(r.flags)),
    )
