"""The columns of exported scores: names that stay, each with its meaning, one flat row a result.

docs/reference/leaderboard.md is written from here: `python -m kernelproof.report.board_columns`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from kernelproof.db.scores.comparing import ComparedProblem, Comparison, Side
from kernelproof.db.scores.groups import FAST, KS
from kernelproof.db.scores.records import (
    Kernel,
    Leaderboard,
    Mean,
    Rate,
    ViewName,
)
from kernelproof.types import Interval, Setting
from kernelproof.types.setting import MEANINGS
from kernelproof.wording import counted

Cell = str | int | float | bool | None


@dataclass(frozen=True)
class Field:
    """A column of an export."""

    name: str
    kind: type
    """str, int, float or bool; any may be empty."""
    meaning: str
    cell: Callable[[Any], Cell]


@dataclass(frozen=True)
class Flat:
    """The rows of an export."""

    fields: Sequence[Field]
    rows: list[tuple[Cell, ...]]


def flat(board: Leaderboard, view: ViewName) -> Flat:
    """A view of a leaderboard."""
    found: Sequence[Any] = {
        "model": board.models,
        "run": board.runs,
        "template": board.templates,
        "strategy": board.strategies,
        "problem": board.problems,
        "kernel": board.kernels,
    }[view]
    fields = FIELDS[view]
    return Flat(fields, [tuple(field.cell(row) for field in fields) for row in found])


def flat_comparisons(comparisons: Iterable[Comparison]) -> Flat:
    """Comparisons, a row for each problem."""
    rows = [(comparison, problem) for comparison in comparisons for problem in comparison.problems]
    return Flat(COMPARED, [tuple(field.cell(row) for field in COMPARED) for row in rows])


def _of(name: str, kind: type, meaning: str, get: Callable[[Any], Any] | None = None) -> Field:
    return Field(name, kind, meaning, get or (lambda row: getattr(row, name)))


def _setting(get: Callable[[Any], Setting]) -> list[Field]:
    return [
        Field(
            name,
            bool if name == "own_kernel" else str,
            meaning.replace("NULL", "empty"),
            partial(_attribute, name, get),
        )
        for name, meaning in MEANINGS.items()
    ]


def _attribute(name: str, get: Callable[[Any], Any], row: Any) -> Any:
    return getattr(get(row), name)


SOURCE = _of(
    "source",
    str,
    "`model`: answers of models, and programs that somebody published. `file`: candidates given as files. "
    "`tuner`: a tuner's trials.",
)


def _rate(name: str, get: Callable[[Any], Rate], meaning: str) -> list[Field]:
    return [
        Field(name, float, meaning, lambda row: get(row).share),
        *_interval(name, lambda row: get(row).interval, "Wilson"),
    ]


def _mean(
    name: str, get: Callable[[Any], Mean], meaning: str, how: str = "bootstrap over problems"
) -> list[Field]:
    return [
        Field(name, float, meaning, lambda row: get(row).value),
        *_interval(name, lambda row: get(row).interval, how),
    ]


def _interval(name: str, get: Callable[[Any], Interval | None], how: str = "") -> list[Field]:
    of = f" ({how})" if how else ""
    return [
        Field(
            f"{name}_low", float, f"Lower end of its 95 % interval{of}.", lambda row: _end(get(row), "low")
        ),
        Field(f"{name}_high", float, "Upper end of the same interval.", lambda row: _end(get(row), "high")),
    ]


def _end(interval: Interval | None, end: str) -> float | None:
    return None if interval is None else float(getattr(interval, end))


def _fast(place: int, p: float) -> list[Field]:
    name = f"fast_{p:g}".replace(".", "_")
    meaning = (
        f"fast_p for p = {p:g}: judged samples that are correct with a speedup above {p:g}. A speedup whose "
        "pace is unresolved counts as 1 at most."
    )
    sure = f"Samples whose whole interval is above {p:g}."
    return [
        *_rate(name, lambda row: row.fast[place].rate, meaning),
        Field(f"{name}_sure", int, sure, lambda row: row.fast[place].sure),
    ]


def _pass_at(place: int, k: int) -> list[Field]:
    meaning = f"pass@{k}, unbiased, over the problems with at least {counted(k, 'judged sample')}."
    count = "Number of these problems."
    return [
        *_mean(f"pass_{k}", lambda row: row.pass_at[place].mean, meaning),
        Field(f"pass_{k}_problems", int, count, lambda row: row.pass_at[place].mean.count),
    ]


_JUDGED = [
    _of("samples", int, "Finished samples: `judged` and `errors` together."),
    _of(
        "errors", int, "Samples that ended by a failure which is no fault of the model. No rate counts them."
    ),
    _of(
        "judged",
        int,
        "Samples that were judged, as correct or not.",
        lambda row: row.correct.whole,
    ),
    _of("correct", int, "Correct samples.", lambda row: row.correct.part),
    *_rate("rate", lambda row: row.correct, "correct / judged."),
]
_SCORES = [
    *_setting(lambda row: row.setting),
    _of("attempts", int, "Finished attempts, all turns."),
    _of("answered", int, "Attempts with an answer."),
    _of("extracted", int, "Attempts in whose answer a program was found."),
    _of("built", int, "Attempts whose program was built, or needed no build."),
    _of("right", int, "Correct attempts."),
    *_JUDGED,
    *(field for place, k in enumerate(KS) for field in _pass_at(place, k)),
    *(field for place, p in enumerate(FAST) for field in _fast(place, p)),
    _of("unresolved", int, "Correct samples whose pace is unresolved."),
    _of("unmeasured", int, "Correct samples without a measurement. They count as not fast."),
    _of("problems", int, "Problems with a judged sample."),
    _of("solved", int, "Problems with a correct sample."),
    *_mean(
        "geometric_mean",
        lambda row: row.geometric_mean,
        "Geometric mean of the best speedup of each solved problem.",
    ),
    *_mean(
        "median",
        lambda row: row.median,
        "Median of the best speedup of each solved problem.",
        "order statistics",
    ),
    *_mean(
        "geometric_mean_all",
        lambda row: row.geometric_mean_all,
        "Geometric mean over all problems; one without a measured correct sample counts as 1.",
    ),
    *_mean(
        "median_all",
        lambda row: row.median_all,
        "Median over all problems; one without a measured correct sample counts as 1.",
        "order statistics",
    ),
    _of("tokens", int, "Prompt and completion tokens of paid answers, as far as known."),
    _of("unknown_tokens", int, "Paid answers without token counts."),
    *_mean(
        "tokens_per_correct",
        lambda row: row.tokens_per_correct,
        "tokens / correct; empty where some answers have no counts.",
    ),
    _of("cost_usd", float, "US dollars of paid answers, as far as known."),
    _of("unknown_cost", int, "Paid answers without a known cost."),
    *_mean(
        "cost_per_correct",
        lambda row: row.cost_per_correct,
        "cost_usd / correct; empty where some answers have no cost.",
    ),
    Field(
        "statuses",
        str,
        "Number of samples with each status, such as `correct=3 wrong_output=1`.",
        lambda row: " ".join(f"{status}={count}" for status, count in row.statuses.items()),
    ),
]
_MODEL = _of("model", str, "The model's name; `file` for candidates given as files.")
_RUN = [_of("run_id", int, "The run's number."), _of("run", str, "The run's name.")]
_TEMPLATE = _of("template", str, "Prompt template with its version.")
_STRATEGY = _of("strategy", str, "The search strategy; empty where no model was asked.")


def _kernel(get: Callable[[Any], Kernel | None]) -> list[Field]:
    """The columns of a kernel that there may be."""

    def part(name: str, kind: type, meaning: str, of: Callable[[Kernel], Cell] | None = None) -> Field:
        def cell(row: Any) -> Cell:
            kernel = get(row)
            return None if kernel is None else of(kernel) if of else getattr(kernel, name)

        return Field(name, kind, meaning, cell)

    def interval(row: Any) -> Interval | None:
        kernel = get(row)
        return kernel.interval if kernel else None

    def compiled(row: Any) -> Interval | None:
        kernel = get(row)
        return kernel.compile_interval if kernel else None

    return [
        part("speedup", float, "Baseline over candidate, as measured."),
        *_interval("speedup", interval, "kernels rank by it"),
        part("pace", str, "`faster`, `same`, `slower` or `unresolved`.", lambda k: str(k.pace)),
        part("candidate_ms", float, "Time of one call of the candidate."),
        part("baseline_ms", float, "Time of one call of the baseline."),
        part("baseline", str, "The baseline that it was measured against: `eager`."),
        part("compile_speedup", float, "Speedup against torch.compile; empty where it was not measured."),
        *_interval("compile_speedup", compiled),
        part("roofline_fraction", float, "The fraction of the roofline that was reached."),
        part("headroom", float, "How many times faster the roofline is than the candidate."),
        part("rigor", str, "`quick`, `standard` or `publish`."),
        part("error_class", str, "The arithmetic that the results could come from.", lambda k: k.error_class),
        part("flags", str, "The flags, with spaces between them.", lambda k: " ".join(k.flags)),
        *(part(field.name, field.kind, field.meaning) for field in (_MODEL, *_RUN, _STRATEGY)),
        part("attempt_id", int, "The attempt's number, for `kernelproof show` and `kernelproof reproduce`."),
        part("verification_id", int, "The verification that counts."),
    ]


_PROBLEM = [
    SOURCE,
    _of("problem_id", str, "The problem's id, such as `level1/23`."),
    _of("problem_sha256", str, "SHA-256 of the reference's source: an edited problem is another one."),
]

FIELDS: dict[ViewName, list[Field]] = {
    "model": [SOURCE, _MODEL, *_SCORES],
    "run": [SOURCE, *_RUN, _MODEL, _TEMPLATE, _STRATEGY, *_SCORES],
    "template": [SOURCE, _TEMPLATE, _MODEL, *_SCORES],
    "strategy": [SOURCE, _STRATEGY, _MODEL, *_SCORES],
    "problem": [
        *_PROBLEM,
        _of("problem", str, "The problem's name."),
        _of("suite", str, "The suite's name."),
        _of("level", int, "The level; empty where there is none."),
        *_setting(lambda row: row.setting),
        *_JUDGED,
        *_kernel(lambda row: row.best),
    ],
    "kernel": [*_PROBLEM, *_setting(lambda row: row.setting), *_kernel(lambda row: row.kernel)],
}
"""By view. Columns are only ever added."""


def _side(letter: str) -> list[Field]:
    def side(row: tuple[Comparison, ComparedProblem]) -> Side:
        return row[1].a if letter == "a" else row[1].b

    name = letter.upper()
    return [
        Field(f"{letter}_judged", int, f"{name}'s judged samples.", lambda row: side(row).judged),
        Field(f"{letter}_correct", int, f"{name}'s correct samples.", lambda row: side(row).correct),
        Field(
            f"{letter}_speedup",
            float,
            f"Speedup of {name}'s best kernel; 1 at most where its pace is unresolved.",
            lambda row: side(row).speedup,
        ),
        *_interval(f"{letter}_speedup", lambda row: side(row).interval),
        Field(
            f"{letter}_attempt_id", int, f"The attempt of {name}'s best.", lambda row: side(row).attempt_id
        ),
    ]


COMPARED = [
    Field("kind", str, "`model`, `run`, `template` or `strategy`.", lambda row: row[0].kind),
    Field("a", str, "A's name.", lambda row: row[0].a),
    Field("b", str, "B's name.", lambda row: row[0].b),
    Field("source", str, SOURCE.meaning, lambda row: row[0].source),
    *_setting(lambda row: row[0].setting),
    Field("problem_id", str, "The problem.", lambda row: row[1].problem_id),
    Field("problem_sha256", str, "SHA-256 of the reference's source.", lambda row: row[1].problem_sha256),
    *_side("a"),
    *_side("b"),
    Field(
        "more_correct",
        str,
        "The side with more correct samples, as a rate: `a`, `b`, `tie`, or `neither` where none is correct.",
        lambda row: row[1].more_correct,
    ),
    Field(
        "faster",
        str,
        "The side with the faster best kernel: `a` or `b` where the intervals do not overlap or only one "
        "side has a kernel, `neither` where no side has one, else `tie`.",
        lambda row: row[1].faster,
    ),
]
"""Of `leaderboard --compare`."""

_TITLES: dict[ViewName, str] = {
    "model": "One row for each model, source and setting.",
    "run": "One row for each run and setting.",
    "template": "One row for each prompt template, model and setting.",
    "strategy": "One row for each search strategy, model and setting.",
    "problem": "One row for each problem, source and setting, with its best kernel.",
    "kernel": "One row for each correct measured sample, or the first `--top` of each setting.",
}


def document() -> str:
    """The page docs/reference/leaderboard.md."""
    parts = [
        "# Columns of the leaderboard\n\n"
        "`kernelproof leaderboard --by VIEW` with `--csv`, `--markdown` or `--parquet FILE` writes these "
        "columns, in this order. New columns may be added. The names and meanings of these stay. "
        "An empty cell (null in Parquet) stands for an unknown value. In CSV a text that a spreadsheet would "
        "compute, such as `=A1`, has a `'` before it. [The guide](../guide/leaderboard.md) "
        "says how the figures are computed, and [the views](schema.md#views) offer the same to SQL.\n\n"
        "This page is written by `python -m kernelproof.report.board_columns`; a test keeps it equal to the "
        "program.\n"
    ]
    for view, title in _TITLES.items():
        parts.append(_section(f"--by {view}", title, FIELDS[view]))
    parts.append(_section("--compare A B", "One row for each setting and problem.", COMPARED))
    return "\n".join(parts)


def _section(name: str, title: str, fields: Sequence[Field]) -> str:
    return f"## `{name}`\n\n{title}\n\n{columns_table(fields)}"


def columns_table(fields: Sequence[Field]) -> str:
    """The columns as a table of Markdown: name, type and meaning."""
    words = {str: "text", int: "integer", float: "number", bool: "boolean", list: "messages"}
    rows = "".join(f"| `{field.name}` | {words[field.kind]} | {field.meaning} |\n" for field in fields)
    return f"| column | type | meaning |\n|---|---|---|\n{rows}"


if __name__ == "__main__":
    print(document(), end="")
