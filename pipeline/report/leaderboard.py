"""The leaderboard on screen, as JSON and as CSV. docs/guide/leaderboard.md defines the figures."""

from __future__ import annotations

from collections import Counter

from rich.console import Console
from rich.text import Text

from kernelproof.db.views import Leaderboard, LeaderboardFilters, ModelResult, ProblemResult, Setting
from kernelproof.report.plain import clean
from kernelproof.report.tables import Column, csv_text, fitting, setting_line, table_of, width_of
from kernelproof.types import Pace
from kernelproof.wording import counted

PACE_STYLE = {Pace.FASTER: "green", Pace.SAME: "", Pace.SLOWER: "red", Pace.UNRESOLVED: "yellow"}

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
        console.print(Text(setting_line(setting), style="bold"))
        if problems:
            _print_problems([p for p in board.problems if p.setting == setting], console)
        _print_models([m for m in board.models if m.setting == setting], console)
    if board.unfinished:
        console.print(
            f"{counted(board.unfinished, 'attempt')} not finished; the same generate command continues."
        )
    if board.refused:
        refused = counted(board.refused, "correct attempt")
        console.print(f"{refused} not counted as correct here: {_asked(board.filters)}.")
    if board.retracted:
        console.print(f"{counted(board.retracted, 'attempt')} left out: retracted.")


def _asked(filters: LeaderboardFilters) -> str:
    """What the filters ask of a correct attempt."""
    said = [f"without {flag}" for flag in filters.without]
    return ", ".join(said + ([f"{filters.error_class} or better"] if filters.error_class else []))


def problems_csv(board: Leaderboard) -> str:
    """One line a problem and setting, with the best measured correct attempt; empty cells: none."""
    return csv_text(PROBLEM_COLUMNS, map(_problem_cells, board.problems))


def models_csv(board: Leaderboard) -> str:
    """One line a model and setting; `statuses` as `correct=3 wrong_output=1`."""
    return csv_text(MODEL_COLUMNS, map(_model_cells, board.models))


def _print_empty(board: Leaderboard, console: Console) -> None:
    if board.filters != LeaderboardFilters():
        console.print("No finished attempt passes these filters; kernelproof leaderboard shows them all.")
    elif board.unfinished:
        stored = counted(board.unfinished, "attempt")
        console.print(f"{stored} stored, none finished; the same generate command continues.")
    else:
        console.print(
            "No attempts yet. Make some: kernelproof generate, or kernelproof verify FILE --problem PROBLEM."
        )


def _settings(board: Leaderboard) -> list[Setting]:
    return list(dict.fromkeys([*(m.setting for m in board.models), *(p.setting for p in board.problems)]))


_PROBLEM_TABLE = (
    Column("problem", number=False, name=True),
    Column("speedup"),
    Column("95 % interval", spare=5),
    Column("pace", number=False),
    Column("candidate ms", spare=3),
    Column("baseline ms", spare=1),
    Column("correct", spare=4),
    Column("error class", number=False, spare=2, optional=True),
    Column("flags", number=False, name=True, optional=True),
    Column("model", number=False, name=True),
    Column("attempt"),
)
_MODEL_TABLE = (
    Column("model", number=False, name=True),
    Column("correct"),
    Column("rate"),
    Column("pass@1", spare=3),
    Column("fast_1"),
    Column("fast_2", spare=2),
    Column("geo. mean"),
    Column("solved", spare=4),
    Column("samples", spare=1),
)
_STATUSES = Column("statuses", number=False, name=True)


def _print_problems(results: list[ProblemResult], console: Console) -> None:
    versions = Counter(result.problem_id for result in results)
    # An edited problem is another problem.
    rows = [_problem_row(result, edited=versions[result.problem_id] > 1) for result in results]
    console.print(fitting(_PROBLEM_TABLE, rows, console))


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
    whole = table_of(
        [*_MODEL_TABLE, _STATUSES], [[*row, words] for row, words in zip(rows, statuses, strict=True)]
    )
    if width_of(whole, console) <= console.width:
        console.print(whole)
        return
    console.print(fitting(_MODEL_TABLE, rows, console))
    beside = list(zip(names, statuses, strict=True))
    console.print(fitting([_MODEL_TABLE[0], _STATUSES], beside, console))


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
