"""Claims that came with imported programs, beside the verdicts here: on screen and as CSV."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from kernelproof.db.scores.filters import Filters
from kernelproof.db.scores.reported_results import ClaimedResult, Claims, ClaimTotals
from kernelproof.report.layout import between
from kernelproof.report.leaderboard import pace_text
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
    Column("problem", lambda r: r.problem_id, number=False, name=True),
    Column("claimed", lambda r: _claim(r), number=False),
    Column("claimed speedup", lambda r: "" if r.claimed_speedup is None else f"{r.claimed_speedup:.3f}"),
    Column("claimed on", lambda r: r.claimed_device or "", number=False, name=True, spare=2, optional=True),
    Column("judged here", lambda r: _judged(r), number=False),
    Column("speedup", lambda r: "" if r.speedup is None else f"{r.speedup:.3f}"),
    Column("95 % interval", lambda r: between(r.interval), spare=5),
    Column("pace", lambda r: pace_text(r.pace), number=False, spare=6),
    Column("flags", lambda r: ", ".join(r.flags), number=False, name=True, spare=3, optional=True),
    Column("model", lambda r: r.model, number=False, name=True, spare=4),
    Column("source", lambda r: r.source, number=False, name=True, spare=1),
    Column("attempt", lambda r: f"#{r.attempt_id}"),
)


def print_claims(claims: Claims, console: Console) -> None:
    """For each setting a table of the programs, and their totals."""
    if not claims.results:
        _print_empty(claims, console)
        return
    for totals in claims.totals:
        console.print(Text(setting_line(totals.setting), style="bold"))
        results = [result for result in claims.results if result.setting == totals.setting]
        console.print(fitting(_TABLE, results, console))
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


def _judged(r: ClaimedResult) -> Text:
    contradicted = r.judged and r.claimed_correct is not None and r.claimed_correct is not r.correct
    good = r.status is Status.CORRECT
    return Text(r.status or "not judged", style="bold red" if contradicted else "green" if good else "")


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
