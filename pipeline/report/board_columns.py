"""The columns of exported scores: names that stay, each with its meaning, one flat row a result.

docs/reference/leaderboard.md is written from here: `python -m kernelproof.report.board_columns`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NamedTuple

from kernelproof.db.scores.comparing import ComparedProblem, Comparison
from kernelproof.db.scores.groups import FAST, KS
from kernelproof.db.scores.records import Leaderboard, ViewName
from kernelproof.types.verification import MEANINGS
from kernelproof.wording import counted

Cell = str | int | float | bool | None


@dataclass(frozen=True)
class Field:
    name: str
    kind: type
    """str, int, float or bool; any may be empty."""
    meaning: str
    cell: Callable[[Any], Cell]


@dataclass(frozen=True)
class Flat:
    fields: Sequence[Field]
    rows: list[tuple[Cell, ...]]


def flat(board: Leaderboard, view: ViewName) -> Flat:
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
    rows = [_Compared(comparison, problem) for comparison in comparisons for problem in comparison.problems]
    return Flat(COMPARED, [tuple(field.cell(row) for field in COMPARED) for row in rows])


def part(of: Callable[[Any], Any], meanings: Mapping[str, str] | None = None) -> Callable[..., Field]:
    """Makes columns of a part of the row; they are empty where the row has no such part.

    A column is an attribute of the part: the one of its name, or of the path or the function that is given.
    `meanings`: by name, for columns that are given none.
    """

    def column(name: str, kind: type, meaning: str = "", get: str | Callable[[Any], Any] = "") -> Field:
        value = get if callable(get) else attrgetter(get or name)

        def cell(row: Any) -> Any:
            found = of(row)
            return None if found is None else value(found)

        return Field(name, kind, meaning or (meanings or {})[name], cell)

    return column


_of = part(lambda row: row)


def _settings(of: str) -> list[Field]:
    setting = part(attrgetter(of))
    return [
        setting(name, bool if name == "own_kernel" else str, meaning.replace("NULL", "empty"))
        for name, meaning in MEANINGS.items()
    ]


def _interval(name: str, of: Callable[[Any], Any], how: str = "") -> list[Field]:
    """The ends of an interval that there may be. `how`: the way it was computed."""
    end, said = part(of), f" ({how})" if how else ""
    return [
        end(f"{name}_low", float, f"Lower end of its 95 % interval{said}.", "low"),
        end(f"{name}_high", float, "Upper end of the same interval.", "high"),
    ]


def _rate(name: str, meaning: str, of: str) -> list[Field]:
    return [
        _of(name, float, meaning, f"{of}.share"),
        *_interval(name, attrgetter(f"{of}.interval"), "Wilson"),
    ]


def _mean(
    name: str, meaning: str, how: str = "bootstrap over problems", get: Callable[[Any], Any] | None = None
) -> list[Field]:
    mean = get or attrgetter(name)
    return [part(mean)(name, float, meaning, "value"), *_interval(name, lambda row: mean(row).interval, how)]


def _fast(place: int, p: float) -> list[Field]:
    name = f"fast_{p:g}".replace(".", "_")
    meaning = (
        f"fast_p for p = {p:g}: judged samples that are correct with a speedup above {p:g}. A speedup whose "
        "pace is unresolved counts as 1 at most."
    )
    fast = part(lambda row: row.fast[place])
    return [
        fast(name, float, meaning, "rate.share"),
        *_interval(name, lambda row: row.fast[place].rate.interval, "Wilson"),
        fast(f"{name}_sure", int, f"Samples whose whole interval is above {p:g}.", "sure"),
    ]


def _pass_at(place: int, k: int) -> list[Field]:
    meaning = f"pass@{k}, unbiased, over the problems with at least {counted(k, 'judged sample')}."
    return [
        *_mean(f"pass_{k}", meaning, get=lambda row: row.pass_at[place].mean),
        _of(
            f"pass_{k}_problems", int, "Number of these problems.", lambda row: row.pass_at[place].mean.count
        ),
    ]


SOURCE = _of(
    "source",
    str,
    "`model`: answers of models, and programs that somebody published. `file`: candidates given as files. "
    "`tuner`: a tuner's trials.",
)
_JUDGED = [
    _of("samples", int, "Finished samples: `judged` and `errors` together."),
    _of(
        "errors", int, "Samples that ended by a failure which is no fault of the model. No rate counts them."
    ),
    _of("judged", int, "Samples that were judged, as correct or not.", "correct.whole"),
    _of("correct", int, "Correct samples.", "correct.part"),
    *_rate("rate", "correct / judged.", "correct"),
]
_SCORES = [
    *_settings("setting"),
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
    *_mean("geometric_mean", "Geometric mean of the best speedup of each solved problem."),
    *_mean("median", "Median of the best speedup of each solved problem.", "order statistics"),
    *_mean(
        "geometric_mean_all",
        "Geometric mean over all problems; one without a measured correct sample counts as 1.",
    ),
    *_mean(
        "median_all",
        "Median over all problems; one without a measured correct sample counts as 1.",
        "order statistics",
    ),
    _of("tokens", int, "Prompt and completion tokens of paid answers, as far as known."),
    _of("unknown_tokens", int, "Paid answers without token counts."),
    *_mean("tokens_per_correct", "tokens / correct; empty where some answers have no counts."),
    _of("cost_usd", float, "US dollars of paid answers, as far as known."),
    _of("unknown_cost", int, "Paid answers without a known cost."),
    *_mean("cost_per_correct", "cost_usd / correct; empty where some answers have no cost."),
    _of(
        "statuses",
        str,
        "Number of samples with each status, such as `correct=3 wrong_output=1`.",
        lambda row: " ".join(f"{status}={count}" for status, count in row.statuses.items()),
    ),
]
_Column = tuple[str, type, str]
_MODEL: _Column = ("model", str, "The model's name; `file` for candidates given as files.")
_RUN: tuple[_Column, ...] = (("run_id", int, "The run's number."), ("run", str, "The run's name."))
_TEMPLATE = _of("template", str, "Prompt template with its version.")
_STRATEGY: _Column = ("strategy", str, "The search strategy; empty where no model was asked.")


def _kernel(of: str) -> list[Field]:
    get = attrgetter(of)
    kernel = part(get)

    def ends(name: str, interval: str, how: str = "") -> list[Field]:
        return _interval(name, lambda row: None if get(row) is None else getattr(get(row), interval), how)

    return [
        kernel("speedup", float, "Baseline over candidate, as measured."),
        *ends("speedup", "interval", "kernels rank by it"),
        kernel("pace", str, "`faster`, `same`, `slower` or `unresolved`.", "pace.value"),
        kernel("candidate_ms", float, "Time of one call of the candidate."),
        kernel("baseline_ms", float, "Time of one call of the baseline."),
        kernel("baseline", str, "The baseline that it was measured against: `eager`."),
        kernel("compile_speedup", float, "Speedup against torch.compile; empty where it was not measured."),
        *ends("compile_speedup", "compile_interval"),
        kernel("roofline_fraction", float, "The fraction of the roofline that was reached."),
        kernel("headroom", float, "How many times faster the roofline is than the candidate."),
        kernel("rigor", str, "`quick`, `standard` or `publish`."),
        kernel("error_class", str, "The arithmetic that the results could come from."),
        kernel("flags", str, "The flags, with spaces between them.", lambda found: " ".join(found.flags)),
        *(kernel(*column) for column in (_MODEL, *_RUN, _STRATEGY)),
        kernel("attempt_id", int, "The attempt's number, for `kernelproof show` and `reproduce`."),
        kernel("verification_id", int, "The verification that counts."),
    ]


_PROBLEM = [
    SOURCE,
    _of("problem_id", str, "The problem's id, such as `level1/23`."),
    _of("problem_sha256", str, "SHA-256 of the reference's source: an edited problem is another one."),
]
_BY_MODEL, _BY_STRATEGY = _of(*_MODEL), _of(*_STRATEGY)
FIELDS: dict[ViewName, list[Field]] = {
    "model": [SOURCE, _BY_MODEL, *_SCORES],
    "run": [SOURCE, *(_of(*column) for column in _RUN), _BY_MODEL, _TEMPLATE, _BY_STRATEGY, *_SCORES],
    "template": [SOURCE, _TEMPLATE, _BY_MODEL, *_SCORES],
    "strategy": [SOURCE, _BY_STRATEGY, _BY_MODEL, *_SCORES],
    "problem": [
        *_PROBLEM,
        _of("problem", str, "The problem's name."),
        _of("suite", str, "The suite's name."),
        _of("level", int, "The level; empty where there is none."),
        *_settings("setting"),
        *_JUDGED,
        *_kernel("best"),
    ],
    "kernel": [*_PROBLEM, *_settings("setting"), *_kernel("kernel")],
}
"""By view. Columns are only ever added."""


def _side(letter: str) -> list[Field]:
    name, get = letter.upper(), attrgetter(f"problem.{letter}")
    side = part(get)
    return [
        side(f"{letter}_judged", int, f"{name}'s judged samples.", "judged"),
        side(f"{letter}_correct", int, f"{name}'s correct samples.", "correct"),
        side(
            f"{letter}_speedup",
            float,
            f"Speedup of {name}'s best kernel; 1 at most where its pace is unresolved.",
            "speedup",
        ),
        *_interval(f"{letter}_speedup", lambda row: get(row).interval),
        side(f"{letter}_attempt_id", int, f"The attempt of {name}'s best.", "attempt_id"),
    ]


class _Compared(NamedTuple):
    """A row of `leaderboard --compare`."""

    comparison: Comparison
    problem: ComparedProblem


_whole = part(attrgetter("comparison"))
_one = part(attrgetter("problem"))
COMPARED = [
    _whole("kind", str, "`model`, `run`, `template` or `strategy`."),
    _whole("a", str, "A's name."),
    _whole("b", str, "B's name."),
    _whole("source", str, SOURCE.meaning),
    *_settings("comparison.setting"),
    _one("problem_id", str, "The problem."),
    _one("problem_sha256", str, "SHA-256 of the reference's source."),
    *_side("a"),
    *_side("b"),
    _one(
        "more_correct",
        str,
        "The side with more correct samples, as a rate: `a`, `b`, `tie`, or `neither` where none is correct.",
    ),
    _one(
        "faster",
        str,
        "The side with the faster best kernel: `a` or `b` where the intervals do not overlap or only one "
        "side has a kernel, `neither` where no side has one, else `tie`.",
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
        "`kernelproof leaderboard --by VIEW` with `--csv`, `--parquet FILE` or `--markdown --wide` writes "
        "these columns, in this order. New columns may be added. The names and meanings of these stay. "
        "An empty cell (null in Parquet) stands for an unknown value. In CSV a text that a spreadsheet would "
        "compute, such as `=A1`, has a `'` before it. [The guide](../guide/leaderboard.md) "
        "says how the figures are computed, and [the views](schema.md#views) offer the same to SQL.\n"
    ]
    for view, title in _TITLES.items():
        parts.append(_section(f"--by {view}", title, FIELDS[view]))
    parts.append(_section("--compare A B", "One row for each setting and problem.", COMPARED))
    return "\n".join(parts)


def _section(name: str, title: str, fields: Sequence[Field]) -> str:
    return f"## `{name}`\n\n{title}\n\n{columns_table(fields)}"


def columns_table(fields: Sequence[Field]) -> str:
    words = {str: "text", int: "integer", float: "number", bool: "boolean", list: "messages"}
    rows = "".join(f"| `{field.name}` | {words[field.kind]} | {field.meaning} |\n" for field in fields)
    return f"| column | type | meaning |\n|---|---|---|\n{rows}"


if __name__ == "__main__":
    print(document(), end="")
