"""The leaderboard on screen. docs/guide/leaderboard.md defines the figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from rich.console import Console
from rich.text import Text

from kernelproof.db.scores.filters import CURRENT, Filters
from kernelproof.db.scores.groups import FAST, KS
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
