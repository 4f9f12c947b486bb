"""The leaderboard on screen, as JSON and as CSV. docs/leaderboard.md defines the figures."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from rich.text import Text

from db.views import Leaderboard, LeaderboardFilters, ModelResult, ProblemResult, Setting
from pipeline.nouns import Pace
from pipeline.report.plain import clean

PACE_STYLE = {Pace.FASTER: "green", Pace.SAME: "", Pace.SLOWER: "red", Pace.UNRESOLVED: "yellow"}

PROBLEM_COLUMNS = (
    *("problem_id", "problem_sha256", "level", "backend", "size", "device", "judged", "correct"),
    *("speedup", "speedup_low", "speedup_high", "pace", "candidate_ms", "baseline_ms", "baseline"),
    *("model", "attempt_id"),
)
MODEL_COLUMNS = (
    *("model", "backend", "size", "device", "attempts", "samples", "judged", "correct", "rate", "pass_1"),
    *("fast_1", "fast_2", "geometric_mean", "solved", "problems", "statuses"),
)


def print_leaderboard(board: Leaderboard, console: Console, *, problems: bool = True) -> None:
    """Two tables for each setting (backend, size, device); without `problems` only that of the models."""
    if not board.problems and not board.models:
        _print_empty(board, console)
        return
    for setting in _settings(board):
        console.print(Text(_setting_line(setting), style="bold"))
        if problems:
            console.print(_problem_table([p for p in board.problems if p.setting == setting]))
        console.print(_model_table([m for m in board.models if m.setting == setting]))
    if board.unfinished:
        console.print(
            f"{board.unfinished} attempts are unfinished; the same generate command continues them."
        )
    if board.retracted:
        console.print(f"{board.retracted} attempts are left out: their verifications were retracted.")


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
    return f"{setting.backend} · {clean(setting.size)} size · {clean(setting.device or 'no device reached')}"


def _table(*columns: tuple[str, bool]) -> Table:
    table = Table(box=SIMPLE, pad_edge=False, show_edge=False)
    for title, number in columns:
        table.add_column(Text(title), justify="right" if number else "left", no_wrap=number)
    return table


def _problem_table(results: list[ProblemResult]) -> Table:
    table = _table(
        *(("problem", False), ("speedup", True), ("95 % interval", True), ("pace", False)),
        *(("candidate ms", True), ("baseline ms", True), ("correct", True), ("model", False)),
        ("attempt", True),
    )
    versions = Counter(result.problem_id for result in results)
    for result in results:
        name = clean(result.problem_id)
        if versions[result.problem_id] > 1:  # an edited problem is another problem
            name += f" @{result.problem_sha256[:8]}"
        share = f"{result.correct}/{result.judged}"
        best = result.best
        if best is None:
            table.add_row(Text(name), "-", "", "", "", "", share, "", "")
            continue
        table.add_row(
            Text(name),
            f"{best.speedup:.3f}",
            f"{best.interval.low:.3f} to {best.interval.high:.3f}",
            Text(best.pace, style=PACE_STYLE[best.pace]),
            f"{best.candidate_ms:.4g}",
            f"{best.baseline_ms:.4g}",
            share,
            Text(clean(best.model)),
            f"#{best.attempt_id}",
        )
    return table


def _model_table(results: list[ModelResult]) -> Table:
    table = _table(
        *(("model", False), ("correct", True), ("rate", True), ("pass@1", True), ("fast_1", True)),
        *(("fast_2", True), ("geo. mean", True), ("solved", True), ("samples", True), ("statuses", False)),
    )
    for m in results:
        table.add_row(
            Text(clean(m.model)),
            f"{m.correct}/{m.judged}",
            _percent(m.rate),
            _percent(m.pass_1),
            _percent(m.fast_1),
            _percent(m.fast_2),
            "-" if m.geometric_mean is None else f"{m.geometric_mean:.3f}",
            f"{m.solved}/{m.problems}",
            str(m.samples),
            ", ".join(f"{count} {status}" for status, count in m.statuses.items()),
        )
    return table


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f} %"


def _csv(columns: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([clean(cell) if isinstance(cell, str) else cell for cell in row] for row in rows)
    return out.getvalue()


def _problem_cells(p: ProblemResult) -> tuple[object, ...]:
    s, b = p.setting, p.best
    facts = (p.problem_id, p.problem_sha256, p.level, s.backend, s.size, s.device, p.judged, p.correct)
    if b is None:
        return (*facts, *[None] * (len(PROBLEM_COLUMNS) - len(facts)))
    times = (b.speedup, b.interval.low, b.interval.high, str(b.pace), b.candidate_ms, b.baseline_ms)
    return (*facts, *times, b.baseline, b.model, b.attempt_id)


def _model_cells(m: ModelResult) -> tuple[object, ...]:
    s = m.setting
    return (
        *(m.model, s.backend, s.size, s.device, m.attempts, m.samples, m.judged, m.correct, m.rate, m.pass_1),
        *(m.fast_1, m.fast_2, m.geometric_mean, m.solved, m.problems),
        " ".join(f"{status}={count}" for status, count in m.statuses.items()),
    )
