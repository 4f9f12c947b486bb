"""What `kernelproof leaderboard` prints: tables, comparisons by pairs, and claims beside verdicts.

docs/guide/leaderboard.md defines the figures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from rich.console import Console
from rich.text import Text

from kernelproof.db.scores.comparing import ComparedProblem, Comparison, Side
from kernelproof.db.scores.filters import CURRENT, Filters
from kernelproof.db.scores.groups import FAST, KS
from kernelproof.db.scores.records import Kernel, KernelScores, Leaderboard, ProblemScores, Scores, Source
from kernelproof.db.scores.reported_results import ClaimedResult, Claims, ClaimTotals
from kernelproof.report.layout import (
    Column,
    attempt_number,
    between,
    csv_text,
    fitting,
    percents_between,
    ratio,
    setting_line,
    share,
)
from kernelproof.report.plain import clean
from kernelproof.types import Pace, Setting, Status
from kernelproof.wording import counted

PACE_STYLE = {Pace.FASTER: "green", Pace.SAME: "", Pace.SLOWER: "red", Pace.UNRESOLVED: "yellow"}
SOURCES: dict[Source, str] = {
    "model": "",
    "file": "candidates given as files · ",
    "tuner": "what a tuner tried · ",
}
"""The words before a table's setting."""
Place = tuple[Source, Setting]


def print_leaderboard(board: Leaderboard, console: Console) -> None:
    """The tables of each source and setting: those of the views that were asked for."""
    found = places(board)
    if not found:
        _print_empty(board, console)
    for place in found:
        console.print(Text(title_of(place), style="bold"))
        if said := audit_of(board, place):
            console.print(said, soft_wrap=True)
        _print_problems([p for p in board.problems if place_of(p) == place], console)
        _print_kernels([k for k in board.kernels if place_of(k) == place], console)
        for scores, owners in (
            (board.models, _MODEL),
            (board.runs, _RUN),
            (board.templates, _TEMPLATE),
            (board.strategies, _STRATEGY),
        ):
            _print_scores([s for s in scores if place_of(s) == place], owners, console)
    for line in remarks(board):
        console.print(line, soft_wrap=not console.is_terminal)


def place_of(row: Scores | ProblemScores | KernelScores) -> Place:
    """The table that a row stands in."""
    return row.source, row.setting


def title_of(place: Place) -> str:
    """The line above a table: its setting, and where its programs are from if no model wrote them."""
    source, setting = place
    return SOURCES[source] + setting_line(setting)


def audit_of(board: Leaderboard, place: Place) -> str:
    """The last audit of a board's best results: its day, and how many held; empty where there was none."""
    for found in board.audits:
        if (found.source, found.setting) == place:
            more = [(found.refuted, "did not hold"), (found.undecided, "undecided")]
            more += [(found.ranked - found.audited, "not audited")]
            rest = "".join(f", {number} {words}" for number, words in more if number)
            results = counted(found.ranked, "ranked result")
            return f"audited on {found.last[:10]}: {found.held} of {results} held{rest}"
    return ""


def places(board: Leaderboard) -> list[Place]:
    """The tables of a leaderboard: each setting, files, and what a tuner tried have their own."""
    scores = (*board.models, *board.runs, *board.templates, *board.strategies)
    found = [*map(place_of, scores), *map(place_of, board.problems), *map(place_of, board.kernels)]
    order = list(SOURCES)
    return sorted(dict.fromkeys(found), key=lambda place: order.index(place[0]))


def remarks(board: Leaderboard) -> list[str]:
    """A sentence for each reason why attempts are left out, and what to do about it."""
    counts, said = board.counts, []
    if board.kernels and len(board.kernels) < counts.kernels:
        said.append(f"{len(board.kernels)} of {counts.kernels} kernels shown; --top shows more.")
    if unresolved := _unresolved(board):
        said.append(
            f"{unresolved} of unresolved pace: the times vary too much for a claim, so the speedup counts as "
            "1 at most. kernelproof show ATTEMPT says why. On a quieter machine, kernelproof runs rejudge "
            "RUN --again measures again; --seconds 20 takes more time for it."
        )
    if counts.unfinished:
        unfinished = counted(counts.unfinished, "attempt")
        said.append(f"{unfinished} not finished; the same generate command continues.")
    if counts.refused:
        refused = counted(counts.refused, "correct attempt")
        said.append(f"{refused} not counted as correct here: {_requirements(board.filters)}.")
    if counts.retracted:
        said.append(f"{counted(counts.retracted, 'attempt')} left out: retracted.")
    if counts.stale:
        said.append(
            f"{counted(counts.stale, 'attempt')} stale, judged under another policy: "
            f"{counted(counts.stale_samples, 'sample')} left out. "
            "kernelproof runs rejudge --stale judges them again"
            + ("; --policy any shows them." if board.filters.policy == CURRENT else ".")
        )
    return said


def _unresolved(board: Leaderboard) -> str:
    """How many results of unresolved pace the tables count; empty for none."""
    samples = sum(s.unresolved for s in (board.models or board.runs or board.templates or board.strategies))
    if samples:
        return counted(samples, "correct sample")
    shown = [*(row.kernel for row in board.kernels), *(row.best for row in board.problems)]
    kernels = sum(best is not None and best.pace is Pace.UNRESOLVED for best in shown)
    return counted(kernels, "kernel") if kernels else ""


def nothing(board: Leaderboard, deed: str) -> str:
    """Why there is nothing to `report` or `export`, and what to do."""
    if board.hints:
        return "\n  ".join(("no finished attempt passes these filters", *board.hints))
    said = " ".join(remarks(board))
    return f"no finished attempt to {deed}: {said or 'make some with kernelproof generate'}".rstrip(".")


def _requirements(filters: Filters) -> str:
    """The filters that a correct attempt must pass: `without ..., ... or better`."""
    said = [f"without {flag}" for flag in filters.without]
    return ", ".join(said + ([f"{filters.error_class} or better"] if filters.error_class else []))


def _print_empty(board: Leaderboard, console: Console) -> None:
    if board.filters != Filters():
        console.print("No finished attempt passes these filters; kernelproof leaderboard shows them all.")
        for hint in board.hints:
            console.print(f"  {clean(hint)}", soft_wrap=True)
    elif board.counts.stale or board.counts.retracted:
        console.print("No result counts under the current policy.")
    elif board.counts.unfinished:
        stored = counted(board.counts.unfinished, "attempt")
        console.print(f"{stored} stored, none finished; the same generate command continues.")
    else:
        console.print(
            "No attempts yet. Make some: kernelproof generate, or kernelproof verify FILE --problem PROBLEM."
        )


class _Best(NamedTuple):
    """A kernel in its table; of a problem the best one that there is."""

    problem: str
    kernel: Kernel | None
    correct: str = ""


def _kernel(title: str, show: Callable[[Kernel], Text | str], missing: str = "", **more: Any) -> Column:
    return Column(title, lambda row: missing if row.kernel is None else show(row.kernel), **more)


_KERNEL_TABLE = (
    Column("problem", lambda row: row.problem, number=False, name=True),
    _kernel("speedup", lambda k: f"{k.speedup:.3f}", "-"),
    _kernel("95 % interval", lambda k: between(k.interval), spare=5),
    _kernel("pace", lambda k: pace_text(k.pace), number=False),
    _kernel(
        "over compile",
        lambda k: "" if k.compile_speedup is None else f"{k.compile_speedup:.3f}",
        spare=2,
        optional=True,
    ),
    _kernel(
        "of roofline",
        lambda k: "" if k.roofline_fraction is None else f"{100 * k.roofline_fraction:.0f} %",
        spare=2,
        optional=True,
    ),
    _kernel("headroom", lambda k: "" if k.headroom is None else f"{k.headroom:.3g}x", spare=1, optional=True),
    _kernel("candidate ms", lambda k: f"{k.candidate_ms:.4g}", spare=3),
    _kernel("baseline ms", lambda k: f"{k.baseline_ms:.4g}", spare=1),
    Column("correct", lambda row: row.correct, spare=4, optional=True),
    _kernel("error class", lambda k: k.error_class or "", number=False, spare=2, optional=True),
    _kernel("flags", lambda k: ", ".join(k.flags), number=False, name=True, optional=True),
    _kernel("model", lambda k: k.model, number=False, name=True),
    _kernel("attempt", lambda k: f"#{k.attempt_id}"),
)


def _print_problems(results: list[ProblemScores], console: Console) -> None:
    versions = Counter(result.problem_id for result in results)
    rows = []
    for result in results:
        edited = versions[result.problem_id] > 1  # an edited problem is another problem
        name = result.problem_id + (f" @{result.problem_sha256[:8]}" if edited else "")
        rows.append(_Best(name, result.best, f"{result.correct.part}/{result.correct.whole}"))
    _print_table(_KERNEL_TABLE, rows, console)


def _print_kernels(results: list[KernelScores], console: Console) -> None:
    _print_table(_KERNEL_TABLE, [_Best(result.problem_id, result.kernel) for result in results], console)


def _print_table(columns: Sequence[Column], records: Sequence[Any], console: Console) -> None:
    """A table, and a line below it that is empty; nothing without records."""
    if records:
        console.print(fitting(columns, records, console))
        console.print()


def pace_text(pace: Pace | None) -> Text:
    """The pace in its colour; empty for None."""
    return Text(pace or "", style=PACE_STYLE[pace] if pace else "")


def _name(title: str, get: Callable[[Scores], str | None]) -> Column:
    return Column(title, lambda scores: get(scores) or "-", number=False, name=True)


_BY_MODEL = _name("model", lambda s: s.model)
_BY_STRATEGY = _name("strategy", lambda s: s.strategy)
_BY_TEMPLATE = _name("template", lambda s: s.template)
_MODEL = (_BY_MODEL,)
_RUN = (_name("run", lambda s: s.run or f"#{s.run_id}"), _BY_MODEL, _BY_STRATEGY)
_TEMPLATE = (_BY_TEMPLATE, _BY_MODEL)
_STRATEGY = (_BY_STRATEGY, _BY_MODEL)


def _pass_at(place: int, **more: Any) -> Column:
    def cell(scores: Scores) -> str:
        mean = scores.pass_at[place].mean.value
        return "" if mean is None and place else share(mean)

    return Column(f"pass@{KS[place]}", cell, **more)


def _fast(place: int, **more: Any) -> Column:
    return Column(f"fast_{FAST[place]:g}", lambda s: share(s.fast[place].rate.share), **more)


_FIGURES = (
    Column("correct", lambda s: f"{s.correct.part}/{s.correct.whole}"),
    Column("rate", lambda s: share(s.correct.share)),
    Column("95 %", lambda s: percents_between(s.correct.interval) or "-", spare=4),
    _pass_at(0, spare=8),
    _pass_at(1, spare=5, optional=True),
    _pass_at(2, spare=5, optional=True),
    *(_fast(0, spare=2), _fast(1, spare=2), _fast(2), _fast(3, spare=2), _fast(4, spare=7)),
    Column("geo. mean", lambda s: ratio(s.geometric_mean.value)),
    Column("95 %", lambda s: between(s.geometric_mean.interval, 2) or "-", spare=4),
    Column("median", lambda s: ratio(s.median.value), spare=1),
    Column("over all", lambda s: ratio(s.geometric_mean_all.value), spare=3),
    Column("solved", lambda s: f"{s.solved}/{s.problems}", spare=9),
    Column("samples", lambda s: str(s.samples), spare=6),
)


def _per_correct(title: str, of: str, digits: str, spare: int) -> Column:
    def cell(scores: Scores) -> str:
        value = getattr(scores, of).value
        return "" if value is None else format(value, digits)

    return Column(title, cell, spare=spare, optional=True)


_FUNNEL = (
    Column("attempts", lambda s: str(s.attempts), spare=1),
    Column("answered", lambda s: str(s.answered), spare=1),
    Column("extracted", lambda s: str(s.extracted), spare=1),
    Column("built", lambda s: str(s.built), spare=1),
    _per_correct("tokens/correct", "tokens_per_correct", ",.0f", 2),
    _per_correct("$/correct", "cost_per_correct", ".4g", 3),
    Column(
        "statuses of samples",
        lambda s: ", ".join(f"{count} {status}" for status, count in s.statuses.items()),
        number=False,
        name=True,
        listed=True,
    ),
)


def _print_scores(results: list[Scores], owners: Sequence[Column], console: Console) -> None:
    """Two tables: how often and how fast, then how far the attempts came and what they cost."""
    for columns in (_FIGURES, _FUNNEL):
        _print_table((*owners, *columns), results, console)


_STYLES = {"a": "green", "b": "red"}
_WORDS = {"a": "A", "b": "B", "tie": "tie", "neither": "-"}


def print_comparisons(comparisons: Sequence[Comparison], console: Console) -> None:
    """For each setting the problems with who wins where, then the tests in words."""
    if not comparisons:
        console.print("No problem was judged for both under one setting: there is nothing to compare.")
    for found in comparisons:
        source = "" if found.source == "model" else f"{found.source} · "
        console.print(Text(source + setting_line(found.setting), style="bold"))
        console.print(Text(f"A: {found.kind} {clean(found.a)}\nB: {found.kind} {clean(found.b)}"))
        console.print(fitting(_COLUMNS, found.problems, console))
        for line in _comparison_sentences(found):
            console.print(line, soft_wrap=True)


def _side(of: str) -> tuple[Column, Column, Column, Column]:
    """The columns of a side: correct samples, speedup, its interval, attempt."""
    get, name = attrgetter(of), of.upper()

    def timed(show: Callable[[Side], str], missing: str = "") -> Callable[[ComparedProblem], str]:
        return lambda p: missing if get(p).speedup is None or get(p).interval is None else show(get(p))

    return (
        Column(f"{name} correct", lambda p: f"{get(p).correct}/{get(p).judged}"),
        Column(f"{name} speedup", timed(lambda side: f"{side.speedup:.3f}", "-")),
        Column("95 % interval", timed(lambda side: between(side.interval)), spare=2),
        Column(f"{name} attempt", lambda p: attempt_number(get(p).attempt_id), spare=1),
    )


def _winner(title: str, of: str) -> Column:
    def cell(problem: ComparedProblem) -> Text:
        word = getattr(problem, of)
        return Text(_WORDS[word], style=_STYLES.get(word, ""))

    return Column(title, cell, number=False)


_A, _B = _side("a"), _side("b")
_COLUMNS = (
    Column("problem", lambda p: p.problem_id, number=False, name=True),
    *(_A[0], _B[0], _winner("more correct", "more_correct")),
    *(*_A[1:3], *_B[1:3], _winner("faster", "faster"), _A[3], _B[3]),
)


def _comparison_sentences(c: Comparison) -> list[str]:
    difference = c.correct_difference.interval
    within = f" (95 %: {100 * difference.low:+.1f} to {100 * difference.high:+.1f})" if difference else ""
    said = [
        f"Correct, on {counted(len(c.problems), 'problem')}: A {share(c.correct_a)}, "
        f"B {share(c.correct_b)}, difference {100 * (c.correct_a - c.correct_b):+.1f} points{within}. "
        f"A is right more often on {c.more_correct_a}, B on {c.more_correct_b}: p = {c.correct_p:.3g} "
        "(exact sign test).",
    ]
    if c.ratio.value is not None and c.ratio_p is not None:
        found = c.ratio.interval
        within = f" (95 %: {between(found)})" if found else ""
        said.append(
            f"Speed, on {counted(c.ratio.count, 'problem')} that both solved: A's best is "
            f"{c.ratio.value:.3f} times as fast as B's{within}, p = {c.ratio_p:.3g} "
            "(Wilcoxon's signed-rank test)."
        )
    ties = len(c.problems) - c.faster_a - c.faster_b
    said.append(f"Faster: A on {c.faster_a}, B on {c.faster_b}, neither on {ties}.")
    if c.only_a or c.only_b:
        said.append(f"Left out: {c.only_a} only A was judged on, {c.only_b} only B was.")
    return said


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
        _print_no_claims(claims, console)
        return
    for totals in claims.totals:
        console.print(Text(setting_line(totals.setting), style="bold"))
        results = [result for result in claims.results if result.setting == totals.setting]
        console.print(fitting(_TABLE, results, console))
        for line in _claim_sentences(totals):
            console.print(line, soft_wrap=True)


def claims_csv(claims: Claims) -> str:
    """One line a program and setting; empty cells: nothing was claimed, or nothing is known."""
    return csv_text(COLUMNS, map(_cells, claims.results))


def _print_no_claims(claims: Claims, console: Console) -> None:
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


def _claim_sentences(t: ClaimTotals) -> list[str]:
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
