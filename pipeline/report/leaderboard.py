"""The leaderboard on screen, as JSON and as CSV. docs/guide/leaderboard.md defines the figures."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from rich.text import Text

from db.views import Leaderboard, LeaderboardFilters, ModelResult, ProblemResult, Setting
from pipeline.report.plain import clean
from pipeline.types import Pace

PACE_STYLE = {Pace.FASTER: "green", Pace.SAME: "", Pace.SLOWER: "red", Pace.UNRESOLVED: "yellow"}

NAME_WIDTH = 20
"""Characters of a name for which a narrow screen gives up spare columns."""
_UNBOUNDED = 10_000

SETTING_COLUMNS = tuple(Setting.model_fields)
PROBLEM_COLUMNS = (
    *("problem_id", "problem_sha256", "level", *SETTING_COLUMNS, "judged", "correct"),
    *("speedup", "speedup_low", "speedup_high", "pace", "candidate_ms", "baseline_ms", "baseline"),
    *("error_class", "flags", "model", "attempt_id"),
)
MODEL_COLUMNS = (
    *("model", *SETTING_COLUMNS, "attempts", "samples", "judged", "correct", "rate", "pass_1"),
    *("fast_1", "fast_2", "geometric_mean", "solved", "problems", "statuses"),
)


def print_leaderboard(board: Leaderboard, console: Console, *, problems: bool = True) -> None:
    """Two tables for each setting; without `problems` only that of the models."""
    if not board.problems and not board.models:
        _print_empty(board, console)
        return
    for setting in _settings(board):
        console.print(Text(_setting_line(setting), style="bold"))
        if problems:
            _print_problems([p for p in board.problems if p.setting == setting], console)
        _print_models([m for m in board.models if m.setting == setting], console)
    if board.unfinished:
        console.print(
            f"{board.unfinished} attempts are unfinished; the same generate command continues them."
        )
    if board.refused:
        console.print(
            f"{board.refused} correct attempts do not count as correct here: {_asked(board.filters)}."
        )
    if board.retracted:
        console.print(f"{board.retracted} attempts are left out: their verifications were retracted.")


def _asked(filters: LeaderboardFilters) -> str:
    """What the filters ask of a correct attempt."""
    said = [f"without {flag}" for flag in filters.without]
    return ", ".join(said + ([f"{filters.error_class} or better"] if filters.error_class else []))


def problems_csv(board: Leaderboard) -> str:
    """One line a problem and setting, with the best measured correct attempt; empty cells: none."""
    return _csv(PROBLEM_COLUMNS, map(_problem_cells, board.problems))


def models_csv(board: Leaderboard) -> str:
    """One line a model and setting; `statuses` as `correct=3 wrong_output=1`."""
    return _csv(MODEL_COLUMNS, map(_model_cells, board.models))


def _print_empty(board: Leaderboard, console: Console) -> None:
    if board.filters != LeaderboardFilters():
        console.print("No finished attempt passes these filters; kernelproof leaderboard shows them all.")
    elif board.unfinished:
        console.print(
            f"{board.unfinished} attempts are stored, none is finished; run the same generate command again."
        )
    else:
        console.print(
            "No attempts yet. Make some: kernelproof generate, or kernelproof verify FILE --problem PROBLEM."
        )


def _settings(board: Leaderboard) -> list[Setting]:
    return list(dict.fromkeys([*(m.setting for m in board.models), *(p.setting for p in board.problems)]))


def _setting_line(setting: Setting) -> str:
    """The setting; rules are named where they are not the usual ones."""
    said = [setting.backend, f"{clean(setting.size)} size", clean(setting.device or "no device reached")]
    if setting.numerics != "fp32":
        said.append(f"{setting.numerics} numerics")
    if setting.purity != "any":
        said.append(f"{setting.purity} purity")
    if not setting.own_kernel:
        said.append("no own kernel required")
    return " · ".join(said)


@dataclass(frozen=True)
class _Column:
    title: str
    number: bool = True
    """Numbers stand on the right and are never broken; words stand on the left."""
    name: bool = False
    """A name that somebody else chose: of any length, folded over lines where it must be."""
    spare: int = 0
    """On a narrow screen 1 goes first, then 2 ...; 0 stays."""
    optional: bool = False
    """Left out where no row has anything in it."""


_PROBLEM_TABLE = (
    _Column("problem", number=False, name=True),
    _Column("speedup"),
    _Column("95 % interval", spare=5),
    _Column("pace", number=False),
    _Column("candidate ms", spare=3),
    _Column("baseline ms", spare=1),
    _Column("correct", spare=4),
    _Column("error class", number=False, spare=2, optional=True),
    _Column("flags", number=False, name=True, optional=True),
    _Column("model", number=False, name=True),
    _Column("attempt"),
)
_MODEL_TABLE = (
    _Column("model", number=False, name=True),
    _Column("correct"),
    _Column("rate"),
    _Column("pass@1", spare=3),
    _Column("fast_1"),
    _Column("fast_2", spare=2),
    _Column("geo. mean"),
    _Column("solved", spare=4),
    _Column("samples", spare=1),
)
_STATUSES = _Column("statuses", number=False, name=True)

_Rows = Sequence[Sequence[Text | str]]


def _fitting(columns: Sequence[_Column], rows: _Rows, console: Console) -> Table:
    """The table with as many of its columns as the screen holds whole.

    Spare columns go only for names of up to NAME_WIDTH characters; longer names fold instead.
    """
    kept = [i for i, column in enumerate(columns) if not column.optional or any(row[i] for row in rows)]
    table = _table([columns[i] for i in kept], [[row[i] for i in kept] for row in rows])
    if _width(table, console) <= console.width:
        return table
    spare = sorted((i for i in kept if columns[i].spare), key=lambda i: columns[i].spare)
    while True:
        chosen = [columns[i] for i in kept]
        cells = [[row[i] for i in kept] for row in rows]
        if not spare or _width(_table(chosen, cells, NAME_WIDTH), console) <= console.width:
            return _table(chosen, cells, console.width)
        kept.remove(spare.pop(0))


def _table(columns: Sequence[_Column], rows: _Rows, longest_name: int | None = None) -> Table:
    """With `longest_name`, in characters, for a narrow screen: columns closer together."""
    narrow = longest_name is not None
    table = Table(box=SIMPLE, pad_edge=False, show_edge=False, collapse_padding=narrow)
    for column in columns:
        table.add_column(
            Text(column.title),
            justify="right" if column.number else "left",
            no_wrap=not column.name,
            overflow="fold",
            max_width=longest_name if column.name else None,
        )
    for row in rows:
        table.add_row(*row)
    return table


def _width(table: Table, console: Console) -> int:
    """Characters that the table takes when nothing in it is broken."""
    return console.measure(table, options=console.options.update_width(_UNBOUNDED)).maximum


def _print_problems(results: list[ProblemResult], console: Console) -> None:
    versions = Counter(result.problem_id for result in results)
    # An edited problem is another problem.
    rows = [_problem_row(result, edited=versions[result.problem_id] > 1) for result in results]
    console.print(_fitting(_PROBLEM_TABLE, rows, console))


def _problem_row(result: ProblemResult, *, edited: bool) -> list[Text | str]:
    name = Text(clean(result.problem_id) + (f" @{result.problem_sha256[:8]}" if edited else ""))
    share = f"{result.correct}/{result.judged}"
    best = result.best
    if best is None:
        return [name, "-", "", "", "", "", share, "", "", "", ""]
    return [
        name,
        f"{best.speedup:.3f}",
        f"{best.interval.low:.3f} to {best.interval.high:.3f}",
        Text(best.pace, style=PACE_STYLE[best.pace]),
        f"{best.candidate_ms:.4g}",
        f"{best.baseline_ms:.4g}",
        share,
        best.error_class or "",
        Text(", ".join(best.flags)),
        Text(clean(best.model)),
        f"#{best.attempt_id}",
    ]


def _print_models(results: list[ModelResult], console: Console) -> None:
    """One table; the statuses get their own below where the screen cannot hold them beside the figures."""
    names = [Text(clean(m.model)) for m in results]
    rows = [[name, *_model_figures(m)] for name, m in zip(names, results, strict=True)]
    statuses = [", ".join(f"{count} {status}" for status, count in m.statuses.items()) for m in results]
    whole = _table(
        [*_MODEL_TABLE, _STATUSES], [[*row, words] for row, words in zip(rows, statuses, strict=True)]
    )
    if _width(whole, console) <= console.width:
        console.print(whole)
        return
    console.print(_fitting(_MODEL_TABLE, rows, console))
    beside = list(zip(names, statuses, strict=True))
    console.print(_fitting([_MODEL_TABLE[0], _STATUSES], beside, console))


def _model_figures(m: ModelResult) -> list[Text | str]:
    return [
        f"{m.correct}/{m.judged}",
        _percent(m.rate),
        _percent(m.pass_1),
        _percent(m.fast_1),
        _percent(m.fast_2),
        "-" if m.geometric_mean is None else f"{m.geometric_mean:.3f}",
        f"{m.solved}/{m.problems}",
        str(m.samples),
    ]


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f} %"


def _csv(columns: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([clean(cell) if isinstance(cell, str) else cell for cell in row] for row in rows)
    return out.getvalue()


def _problem_cells(p: ProblemResult) -> tuple[object, ...]:
    b = p.best
    setting = p.setting.model_dump().values()
    facts = (p.problem_id, p.problem_sha256, p.level, *setting, p.judged, p.correct)
    if b is None:
        return (*facts, *[None] * (len(PROBLEM_COLUMNS) - len(facts)))
    times = (b.speedup, b.interval.low, b.interval.high, str(b.pace), b.candidate_ms, b.baseline_ms)
    return (*facts, *times, b.baseline, b.error_class, " ".join(b.flags), b.model, b.attempt_id)


def _model_cells(m: ModelResult) -> tuple[object, ...]:
    return (
        *(m.model, *m.setting.model_dump().values()),
        *(m.attempts, m.samples, m.judged, m.correct, m.rate, m.pass_1),
        *(m.fast_1, m.fast_2, m.geometric_mean, m.solved, m.problems),
        " ".join(f"{status}={count}" for status, count in m.statuses.items()),
    )
