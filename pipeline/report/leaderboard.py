"""What `kernelproof leaderboard` prints: tables, comparisons by pairs, and claims beside verdicts.

docs/guide/leaderboard.md defines the figures.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any, NamedTuple

from rich.console import Console
from rich.text import Text

from kernelproof.db.scores.comparing import ComparedProblem, Comparison
from kernelproof.db.scores.filters import CURRENT, Filters
from kernelproof.db.scores.groups import FAST, KS
from kernelproof.db.scores.records import (
    Details,
    Kernel,
    KernelScores,
    Leaderboard,
    ProblemScores,
    Scores,
    Source,
    ViewName,
)
from kernelproof.db.scores.reported_results import ClaimedResult, Claims, ClaimTotals
from kernelproof.report.export.files import Typeset
from kernelproof.report.findings import (
    NOT_SOLVED,
    NOT_TIMED,
    SEPARATOR,
    against,
    bounded,
    lowered,
    speedup_and_interval,
    tally,
    times,
    why_unresolved,
)
from kernelproof.report.layout import (
    Axis,
    Column,
    Fitted,
    attempt_number,
    csv_text,
    entries,
    fitting,
    folded,
    percents_between,
    print_lines,
    setting_line,
    share,
    shortened,
)
from kernelproof.report.plain import clean
from kernelproof.types import Pace, Setting, Status
from kernelproof.types.measurement import resolved
from kernelproof.wording import counted

PACE_STYLE = {Pace.FASTER: "green", Pace.SAME: "", Pace.SLOWER: "red", Pace.UNRESOLVED: "magenta"}
SOURCES: dict[Source, str] = {
    "model": "",
    "file": "candidates given as files · ",
    "tuner": "what a tuner tried · ",
}
Place = tuple[Source, Setting]
NO_DETAILS = Details()


def print_leaderboard(
    board: Leaderboard,
    console: Console,
    details: Details = NO_DETAILS,
    *,
    wide: bool = False,
    where: str = "",
) -> None:
    """The tables of each source and setting: those of the views that were asked for, and what they come to.

    `wide`: with all columns that have anything in them, whatever all rows have in common. `where`: the option
    that names the workspace, with a blank before it, for commands.
    """
    there = places(board)
    if not there:
        print_lines(console, nothing(board, "show").split("\n"))
        return
    for number, place in enumerate(there):
        if number:
            console.print()
        rows = kernel_rows(board, place, details)
        tables = [_kernel_table(rows, _AUTHORS[place[0]], console, wide)] if rows else []
        heading = [title_of(place), "against PyTorch", *(words for table in tables for words in table.common)]
        legends = speedup_legends(rows)
        for view, owners in _OWNERS.items():
            if scores := _scores(board, view, place):
                tables += [fitting((*owners, *of), scores, console, whole=wide) for of in (_SCORES, _FUNNEL)]
        console.print(Text(SEPARATOR.join(heading), style="bold"))
        print_lines(console, filter(None, (audit_of(board, place),)))
        for table in tables:
            console.print(table.table)
            legends += table.legends
            print_lines(console, filter(None, (SEPARATOR.join(legends),)), "dim")
            legends = []
            console.print()
        print_lines(console, closing(rows, where))
    print_lines(console, remarks(board, unresolved=not (board.problems or board.kernels)))


def place_of(row: Scores | ProblemScores | KernelScores) -> Place:
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


def remarks(board: Leaderboard, *, unresolved: bool = True) -> list[str]:
    """A sentence for each reason why attempts are left out, and what to do about it.

    `unresolved`: also what is to be said of times that vary too much.
    """
    counts, said = board.counts, []
    if board.kernels and len(board.kernels) < counts.kernels:
        said.append(f"{len(board.kernels)} of {counts.kernels} kernels shown; --top shows more.")
    if unresolved and (results := _unresolved(board)):
        said.append(
            f"{results} of unresolved pace: the times vary too much for a claim, so the speedup counts as "
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
    """Why there is nothing to `show`, `report` or `export`, and what to do."""
    if board.hints:
        return "\n  ".join(("no finished attempt passes these filters", *board.hints))
    said = " ".join(remarks(board)) or "make some with kernelproof generate, or kernelproof verify"
    return f"no finished attempt to {deed}: {said}".rstrip(".")


def _requirements(filters: Filters) -> str:
    """The filters that a correct attempt must pass: `without ..., ... or better`."""
    said = [f"without {flag}" for flag in filters.without]
    return ", ".join(said + ([f"{filters.error_class} or better"] if filters.error_class else []))


def outcome(problem: ProblemScores) -> str:
    """The pace of its best kernel, or why it has none."""
    if problem.best is not None:
        return problem.best.pace
    return NOT_TIMED if problem.correct.part else NOT_SOLVED


class Row(NamedTuple):
    problem: str
    name: str
    kernel: Kernel | None
    correct: str = ""
    author: str = ""
    because: str | None = None
    """Why its pace is unresolved, as it is stored."""
    missing: str = ""


def kernel_rows(board: Leaderboard, place: Place, details: Details) -> list[Row]:
    there = [p for p in board.problems if place_of(p) == place]
    versions = Counter(p.problem_id for p in there)
    rows = []
    for p in there:
        edited = versions[p.problem_id] > 1  # an edited problem is another problem
        name = p.problem_id + (f" @{p.problem_sha256[:8]}" if edited else "")
        correct = f"{p.correct.part}/{p.correct.whole}"
        rows.append(_row(Row(name, p.problem, p.best, correct, missing=outcome(p)), details))
    some = [k for k in board.kernels if place_of(k) == place]
    return rows + [_row(Row(k.problem_id, k.problem, k.kernel), details) for k in some]


def _row(row: Row, details: Details) -> Row:
    k = row.kernel
    if k is None:
        return row
    author = details.files.get(k.attempt_id, k.model)
    return row._replace(author=author, because=details.reasons.get(k.verification_id))


def _kernel(title: str, show: Callable[[Kernel], Text | str], missing: str = "", **more: Any) -> Column:
    return Column(title, lambda row: show(row.kernel) if row.kernel else missing, optional=True, **more)


def _speedup(k: Kernel) -> str:
    mark = BOUNDED_MARK if bounded(k.speedup, k.interval) else ""
    counts = "→1" if lowered(k.speedup, k.pace) else ""
    return speedup_and_interval(k.speedup, k.interval)[0] + mark + counts


def _pace_or_why(row: Row) -> str:
    """The pace; where it is unresolved why."""
    k = row.kernel
    if k is None:
        return row.missing
    return why_unresolved(k.interval, k.pace, row.because).removeprefix("the ") or k.pace


def _label(text: str, room: int) -> str:
    """`level1/5 arg…`: an id, and as much of the name as there is room for."""
    room = max(text.find(" "), room)
    return text if len(text) <= room else f"{text[: room - 1].rstrip()}…"


def _paced(row: Row, words: str) -> Text:
    return Text(words, style=PACE_STYLE[row.kernel.pace] if row.kernel else "dim")


BOUNDED_MARK = "†"
SAME = "same: surely within the resolution of 1, 5 % at most"
_PROBLEM = Column("problem", lambda row: f"{row.problem} {row.name}", number=False, fit=_label)
_SPEEDUP = _kernel("speedup", _speedup, "-")
_INTERVAL = _kernel(
    "95 % interval", lambda k: speedup_and_interval(k.speedup, k.interval)[1], number=False, spare=9
)
_PACE = Column(
    "pace",
    lambda row: _paced(row, _pace_or_why(row)),
    number=False,
    short=lambda row: _paced(row, re.sub(r": [^±,]+", "", _pace_or_why(row))),
    legend="pace: what is proved, or why not",
)
_AUTHOR = Column("model", lambda row: row.author, number=False, fit=shortened, optional=True)
_MODEL, _FILE = replace(_AUTHOR, common="all by {}"), replace(_AUTHOR, title="file", common="all of {}")
_AUTHORS = {"model": _MODEL, "file": _FILE, "tuner": _MODEL}
_CORRECT = Column("correct", lambda row: row.correct, spare=5, optional=True, common="{} correct each")
_TIMES = _kernel("time against PyTorch", lambda k: against(k.candidate_ms, k.baseline_ms), spare=3)


def _kernel_columns(axis: Axis, author: Column) -> tuple[Column, ...]:
    def on_axis(row: Row) -> Text:
        k = row.kernel
        return Text(axis.row(k.speedup, k.interval), style=PACE_STYLE[k.pace]) if k else Text()

    return (
        *(_PROBLEM, _SPEEDUP, _INTERVAL),
        Column(axis.title, on_axis, number=False, spare=8, optional=True),
        _PACE,
        _kernel(
            "over compile",
            lambda k: "" if k.compile_speedup is None else times(k.compile_speedup),
            spare=2,
            legend="over compile: against torch.compile",
        ),
        _kernel(
            "of roofline",
            lambda k: "" if k.roofline_fraction is None else f"{100 * k.roofline_fraction:.0f} %",
            spare=4,
            legend="of roofline: 100 % is the device's limit",
        ),
        _kernel(
            "headroom",
            lambda k: "" if k.headroom is None else times(k.headroom),
            spare=1,
            legend="headroom: what the roofline leaves",
        ),
        *(_TIMES, _CORRECT),
        _kernel(
            "error class",
            lambda k: k.error_class or "",
            number=False,
            spare=2,
            common="error class {}",
            legend="error class: of the arithmetic",
        ),
        _kernel("flags", lambda k: ", ".join(k.flags), number=False, fit=folded),
        author,
        _kernel("#", lambda k: str(k.attempt_id)),
    )


def _kernel_table(rows: list[Row], author: Column, console: Console, wide: bool) -> Fitted:
    axis = Axis([row.kernel.interval for row in rows if row.kernel], max(9, min(15, console.width - 69)))
    return fitting(_kernel_columns(axis, author), rows, console, whole=wide)


def speedup_legends(rows: Iterable[Row]) -> list[str]:
    kernels = [row.kernel for row in rows if row.kernel]
    marked = any(bounded(k.speedup, k.interval) for k in kernels)
    said = [f"{BOUNDED_MARK}: cut to what the referee's clock shows"] if marked else []
    said += ["→1: counts as 1"] * any(lowered(k.speedup, k.pace) for k in kernels)
    return said + [SAME] * any(k.pace is Pace.SAME for k in kernels)


def closing(rows: Sequence[Row], where: str = "") -> list[str]:
    """What the rows of a table come to, and what to do next."""
    kernels = [row.kernel for row in rows if row.kernel]
    if not rows:
        return []
    noun = "problem" if rows[0].correct else "kernel"
    paces = tally(row.kernel.pace if row.kernel else row.missing for row in rows)
    lines = [f"{counted(len(rows), noun)} against PyTorch: {paces}"]
    best = max(kernels, key=lambda k: resolved(k.interval.low, k.pace), default=None)
    if best is not None:
        number = f"{best.attempt_id}{where}"
        lines.append(
            f"the best: kernelproof show {number}; to measure it again: kernelproof reproduce {number}"
        )
    runs = dict.fromkeys(str(k.run or k.run_id) for k in kernels if k.pace is Pace.UNRESOLVED)
    again = f"to resolve more, on a quieter machine: kernelproof runs rejudge {{}} --again{where}"
    return lines + [again.format(run) for run in runs]


def pace_text(pace: Pace | None) -> Text:
    """The pace in its colour; empty for None."""
    return Text(pace or "", style=PACE_STYLE[pace] if pace else "")


def _name(title: str, get: Callable[[Scores], str | None]) -> Column:
    return Column(title, lambda scores: get(scores) or "-", number=False, fit=folded)


_BY_MODEL = _name("model", lambda s: s.model)
_BY_STRATEGY = _name("strategy", lambda s: s.strategy)
_BY_TEMPLATE = _name("template", lambda s: s.template)
_BY_RUN = _name("run", lambda s: s.run or f"#{s.run_id}")
_OWNERS: dict[ViewName, tuple[Column, ...]] = {
    "model": (_BY_MODEL,),
    "run": (_BY_RUN, _BY_MODEL, _BY_STRATEGY),
    "template": (_BY_TEMPLATE, _BY_MODEL),
    "strategy": (_BY_STRATEGY, _BY_MODEL),
}
"""The columns that name a row of scores, by view."""


def _scores(board: Leaderboard, view: ViewName, place: Place) -> list[Scores]:
    of = {"model": board.models, "run": board.runs, "template": board.templates, "strategy": board.strategies}
    return [scores for scores in of[view] if place_of(scores) == place]


def _pass_at(place: int, spare: int) -> Column:
    def cell(scores: Scores) -> str:
        mean = scores.pass_at[place].mean.value
        return "" if mean is None or scores.source != "model" else share(mean)

    return Column(f"pass@{KS[place]}", cell, spare=spare, optional=True)


def _fast(place: int, spare: int = 0) -> Column:
    name = f"fast_{FAST[place]:g}"
    legend = "" if spare else "fast_p: p times as fast"
    return Column(name, lambda s: share(s.fast[place].rate.share), spare=spare, legend=legend)


def _mean(title: str, of: str, **more: Any) -> Column:
    def cell(scores: Scores) -> str:
        mean = getattr(scores, of)
        return "-" if mean.value is None else times(mean.value, mean.interval)

    return Column(title, cell, **more)


_SOLVED = Column("solved", lambda s: f"{s.solved}/{s.problems}")
_SAMPLES = Column("correct", lambda s: f"{s.correct.part}/{s.correct.whole}", legend="correct: of samples")
_FAST_1, _FAST_2 = _fast(2), _fast(4, 7)
_MEAN = _mean("mean speedup [95 %]", "geometric_mean", legend="mean: geometric, of the solved")
_SCORES = (
    *(_SOLVED, _SAMPLES),
    Column("rate", lambda s: share(s.correct.share), spare=5),
    Column("95 %", lambda s: percents_between(s.correct.interval) or "-", spare=4),
    *(_pass_at(0, 8), _pass_at(1, 4), _pass_at(2, 4)),
    *(_fast(0, 3), _fast(1, 3), _FAST_1, _fast(3, 3), _FAST_2),
    _MEAN,
    _mean("median [95 %]", "median", spare=1),
    _mean("mean over all", "geometric_mean_all", spare=2),
)


def _per_correct(title: str, of: str, digits: str, spare: int) -> Column:
    def cell(scores: Scores) -> str:
        value = getattr(scores, of).value
        return "" if value is None else format(value, digits)

    return Column(title, cell, spare=spare, optional=True)


_FUNNEL = (
    Column("attempts", lambda s: str(s.attempts), spare=1),
    Column("answered", lambda s: str(s.answered), spare=1),
    Column("with code", lambda s: str(s.extracted), spare=1),
    Column("built", lambda s: str(s.built), spare=1),
    _per_correct("tokens/correct", "tokens_per_correct", ",.0f", 2),
    _per_correct("$/correct", "cost_per_correct", ".4g", 3),
    Column(
        "how samples ended",
        lambda s: ", ".join(f"{count} {status}" for status, count in s.statuses.items()),
        number=False,
        fit=entries,
    ),
)


_PASTED_KERNELS = (_PROBLEM, _SPEEDUP, _INTERVAL, _PACE, _TIMES)
_PASTED_SCORES = (_SOLVED, _SAMPLES, _FAST_1, _FAST_2)


def pasted(board: Leaderboard, view: ViewName, details: Details = NO_DETAILS) -> list[Typeset]:
    """A view as tables of six columns for a README or a paper, one for each source and setting."""
    tables = []
    for place in places(board):
        if owners := _OWNERS.get(view, ())[:2]:
            columns = (*(*owners, *_PASTED_SCORES)[:5], _MEAN)
            notes = [SEPARATOR.join(column.legend for column in columns if column.legend)]
            tables.append(typeset(columns, _scores(board, view, place), title_of(place), notes))
        else:
            rows = kernel_rows(board, place, details)
            notes = [*closing(rows)[:1], SEPARATOR.join((*speedup_legends(rows), _PACE.legend))]
            columns = (*_PASTED_KERNELS, _AUTHORS[place[0]])
            tables.append(typeset(columns, rows, title_of(place), notes))
    return tables


def typeset(columns: Sequence[Column], rows: Iterable[Any], heading: str, notes: Sequence[str]) -> Typeset:
    cells = [[str(column.cell(row)) for column in columns] for row in rows]
    kept = [note for note in notes if note]
    return Typeset(heading, [c.title for c in columns], [c.number for c in columns], cells, kept)


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
        console.print(fitting(_COLUMNS, found.problems, console).table)
        print_lines(console, _comparison_sentences(found))


def _side(of: str) -> tuple[Column, Column, Column, Column]:
    """The columns of a side: correct samples, speedup, its interval, attempt."""
    get, name = attrgetter(of), of.upper()
    return (
        Column(f"{name} correct", lambda p: f"{get(p).correct}/{get(p).judged}"),
        Column(f"{name} speedup", lambda p: times(get(p).speedup)),
        Column("95 % interval", lambda p: speedup_and_interval(get(p).speedup, get(p).interval)[1], spare=2),
        Column(f"{name} attempt", lambda p: attempt_number(get(p).attempt_id), spare=1),
    )


def _winner(title: str, of: str) -> Column:
    def cell(problem: ComparedProblem) -> Text:
        word = getattr(problem, of)
        return Text(_WORDS[word], style=_STYLES.get(word, ""))

    return Column(title, cell, number=False)


_A, _B = _side("a"), _side("b")
_COLUMNS = (
    Column("problem", lambda p: p.problem_id, number=False, fit=folded),
    *(_A[0], _B[0], _winner("more correct", "more_correct")),
    *(*_A[1:3], *_B[1:3], _winner("faster", "faster"), _A[3], _B[3]),
)


def pasted_comparisons(comparisons: Iterable[Comparison]) -> list[Typeset]:
    columns = (_COLUMNS[0], _A[0], _B[0], _A[1], _B[1], _COLUMNS[8])
    tables = []
    for c in comparisons:
        notes = [f"A: {c.a}, B: {c.b}", *_comparison_sentences(c)]
        tables.append(typeset(columns, c.problems, setting_line(c.setting), notes))
    return tables


def _comparison_sentences(c: Comparison) -> list[str]:
    difference = c.correct_difference.interval
    within = f" (95 %: {100 * difference.low:+.1f} to {100 * difference.high:+.1f})" if difference else ""
    said = [
        f"Correct, on {counted(len(c.problems), 'problem')}: A {share(c.correct_a)}, "
        f"B {share(c.correct_b)}, difference {100 * (c.correct_a - c.correct_b):+.1f} points{within}. "
        f"A is right more often on {c.more_correct_a}, B on {c.more_correct_b}: p = {c.correct_p:.3g} "
        "(exact sign test)."
    ]
    if c.ratio.value is not None and c.ratio_p is not None:
        said.append(
            f"Speed, on {counted(c.ratio.count, 'problem')} that both solved: A's best is "
            f"{times(c.ratio.value, c.ratio.interval)} as fast as B's, p = {c.ratio_p:.3g} "
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
    Column("problem", lambda r: r.problem_id, number=False, fit=folded),
    Column("claimed", lambda r: _claim(r), number=False),
    Column("claimed speedup", lambda r: times(r.claimed_speedup)),
    Column("claimed on", lambda r: r.claimed_device or "", number=False, fit=folded, spare=2, optional=True),
    Column("judged here", lambda r: _judged(r), number=False),
    Column("speedup", lambda r: times(r.speedup)),
    Column("95 % interval", lambda r: speedup_and_interval(r.speedup, r.interval)[1], number=False, spare=5),
    Column("pace", lambda r: pace_text(r.pace), number=False, spare=6),
    Column("flags", lambda r: ", ".join(r.flags), number=False, fit=folded, spare=3, optional=True),
    Column("model", lambda r: r.model, number=False, fit=shortened, spare=4),
    Column("source", lambda r: r.source, number=False, fit=folded, spare=1),
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
        console.print(fitting(_TABLE, results, console).table)
        print_lines(console, _claim_sentences(totals))


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
        means = f"{times(t.claimed_geometric_mean)} claimed, {times(t.geometric_mean)} here"
        said.append(f"Geometric mean of {counted(t.compared, 'speedup')}: {means}.")
    return said


def _cells(r: ClaimedResult) -> tuple[object, ...]:
    ends = {"speedup_low": r.interval.low, "speedup_high": r.interval.high} if r.interval else {}
    facts = {**r.model_dump(), **r.setting.model_dump(), **ends, "flags": " ".join(r.flags)}
    return tuple(facts.get(name) for name in COLUMNS)
