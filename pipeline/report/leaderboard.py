"""The leaderboard on screen. docs/guide/leaderboard.md defines the figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from kernelproof.db.scores.filters import CURRENT, Filters
from kernelproof.db.scores.records import (
    Kernel,
    KernelScores,
    Leaderboard,
    ProblemScores,
    Scores,
    Source,
)
from kernelproof.report.layout import between, percents_between, ratio, share
from kernelproof.report.plain import clean
from kernelproof.report.tables import Column, fitting, setting_line
from kernelproof.types import Pace, Setting
from kernelproof.wording import counted

PACE_STYLE = {Pace.FASTER: "green", Pace.SAME: "", Pace.SLOWER: "red", Pace.UNRESOLVED: "yellow"}
SOURCES: dict[Source, str] = {
    "model": "",
    "file": "candidates given as files · ",
    "tuner": "what a tuner tried · ",
}
"""The words before a table's setting."""
Row = list[Text | str]
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
            "1 at most. kernelproof show ATTEMPT says why. On a quieter machine, kernelproof rejudge RUN "
            "--again measures again; --seconds 20 takes more time for it."
        )
    if counts.unfinished:
        unfinished = counted(counts.unfinished, "attempt")
        said.append(f"{unfinished} not finished; the same generate command continues.")
    if counts.refused:
        refused = counted(counts.refused, "correct attempt")
        said.append(f"{refused} not counted as correct here: {_asked(board.filters)}.")
    if counts.retracted:
        said.append(f"{counted(counts.retracted, 'attempt')} left out: retracted.")
    if counts.stale:
        said.append(
            f"{counted(counts.stale, 'attempt')} stale, judged under another policy: "
            f"{counted(counts.stale_samples, 'sample')} left out. "
            "kernelproof rejudge --stale judges them again"
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


def _asked(filters: Filters) -> str:
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


_KERNEL_TABLE = (
    Column("speedup"),
    Column("95 % interval", spare=5),
    Column("pace", number=False),
    Column("over compile", spare=2, optional=True),
    Column("of roofline", spare=2, optional=True),
    Column("headroom", spare=1, optional=True),
    Column("candidate ms", spare=3),
    Column("baseline ms", spare=1),
)
_KERNEL_END = (
    Column("error class", number=False, spare=2, optional=True),
    Column("flags", number=False, name=True, optional=True),
    Column("model", number=False, name=True),
    Column("attempt"),
)
_NAME = Column("problem", number=False, name=True)


def _print_problems(results: list[ProblemScores], console: Console) -> None:
    if results:
        versions = Counter(result.problem_id for result in results)
        # An edited problem is another problem.
        rows = [_problem_row(result, edited=versions[result.problem_id] > 1) for result in results]
        columns = (_NAME, *_KERNEL_TABLE, Column("correct", spare=4), *_KERNEL_END)
        _print_table(fitting(columns, rows, console), console)


def _print_table(table: Table, console: Console) -> None:
    """A table, and a line below it that is empty."""
    console.print(table)
    console.print()


def _problem_row(result: ProblemScores, *, edited: bool) -> Row:
    name = Text(clean(result.problem_id) + (f" @{result.problem_sha256[:8]}" if edited else ""))
    share = f"{result.correct.part}/{result.correct.whole}"
    if result.best is None:
        return [name, "-", *[""] * (len(_KERNEL_TABLE) - 1), share, *[""] * len(_KERNEL_END)]
    return [name, *_kernel_times(result.best), share, *_kernel_end(result.best)]


def _kernel_times(best: Kernel) -> Row:
    fraction, headroom = best.roofline_fraction, best.headroom
    return [
        f"{best.speedup:.3f}",
        between(best.interval),
        Text(best.pace, style=PACE_STYLE[best.pace]),
        "" if best.compile_speedup is None else f"{best.compile_speedup:.3f}",
        "" if fraction is None else f"{100 * fraction:.0f} %",
        "" if headroom is None else f"{headroom:.3g}x",
        f"{best.candidate_ms:.4g}",
        f"{best.baseline_ms:.4g}",
    ]


def _kernel_end(best: Kernel) -> Row:
    flags = Text(", ".join(best.flags))
    return [best.error_class or "", flags, Text(clean(best.model)), f"#{best.attempt_id}"]


def _print_kernels(results: list[KernelScores], console: Console) -> None:
    if results:
        rows: list[Row] = [
            [Text(clean(r.problem_id)), *_kernel_times(r.kernel), *_kernel_end(r.kernel)] for r in results
        ]
        _print_table(fitting((_NAME, *_KERNEL_TABLE, *_KERNEL_END), rows, console), console)


def _name(title: str, get: Callable[[Scores], str | None]) -> tuple[Column, Callable[[Scores], Text]]:
    return Column(title, number=False, name=True), lambda scores: Text(clean(get(scores) or "-"))


_BY_MODEL = _name("model", lambda s: s.model)
_BY_STRATEGY = _name("strategy", lambda s: s.strategy)
_BY_TEMPLATE = _name("template", lambda s: s.template)
_MODEL = (_BY_MODEL,)
_RUN = (_name("run", lambda s: s.run or f"#{s.run_id}"), _BY_MODEL, _BY_STRATEGY)
_TEMPLATE = (_BY_TEMPLATE, _BY_MODEL)
_STRATEGY = (_BY_STRATEGY, _BY_MODEL)
_FIGURES = (
    Column("correct"),
    Column("rate"),
    Column("95 %", spare=4),
    Column("pass@1", spare=8),
    Column("pass@5", spare=5, optional=True),
    Column("pass@10", spare=5, optional=True),
    Column("fast_0.5", spare=2),
    Column("fast_0.8", spare=2),
    Column("fast_1"),
    Column("fast_1.5", spare=2),
    Column("fast_2", spare=7),
    Column("geo. mean"),
    Column("95 %", spare=4),
    Column("median", spare=1),
    Column("over all", spare=3),
    Column("solved", spare=9),
    Column("samples", spare=6),
)
_FUNNEL = (
    Column("attempts", spare=1),
    Column("answered", spare=1),
    Column("extracted", spare=1),
    Column("built", spare=1),
    Column("tokens/correct", spare=2, optional=True),
    Column("$/correct", spare=3, optional=True),
    Column("statuses of samples", number=False, name=True, listed=True),
)
Owners = Sequence[tuple[Column, Callable[[Scores], Text]]]


def _print_scores(results: list[Scores], owners: Owners, console: Console) -> None:
    """Two tables: how often and how fast, then how far the attempts came and what they cost."""
    if results:
        columns = [column for column, _ in owners]
        for more, cells in ((_FIGURES, _figures), (_FUNNEL, _funnel)):
            rows = [[*(name(scores) for _, name in owners), *cells(scores)] for scores in results]
            _print_table(fitting((*columns, *more), rows, console), console)


def _figures(s: Scores) -> Row:
    passes = [found.mean.value for found in s.pass_at]
    return [
        f"{s.correct.part}/{s.correct.whole}",
        share(s.correct.share),
        percents_between(s.correct.interval) or "-",
        share(passes[0]),
        *("" if found is None else share(found) for found in passes[1:]),
        *(share(found.rate.share) for found in s.fast),
        ratio(s.geometric_mean.value),
        between(s.geometric_mean.interval, 2) or "-",
        ratio(s.median.value),
        ratio(s.geometric_mean_all.value),
        f"{s.solved}/{s.problems}",
        str(s.samples),
    ]


def _funnel(s: Scores) -> Row:
    return [
        *map(str, (s.attempts, s.answered, s.extracted, s.built)),
        "" if s.tokens_per_correct.value is None else f"{s.tokens_per_correct.value:,.0f}",
        "" if s.cost_per_correct.value is None else f"{s.cost_per_correct.value:.4g}",
        ", ".join(f"{count} {status}" for status, count in s.statuses.items()),
    ]
