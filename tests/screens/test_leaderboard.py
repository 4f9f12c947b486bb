"""`kernelproof leaderboard` on terminals and in pipes, and its tables to paste."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelproof.db.attempts import Finished
from kernelproof.db.scores.records import ViewName
from kernelproof.db.store import Store
from kernelproof.report.export.files import as_latex, as_markdown, latex_text
from kernelproof.report.leaderboard import (
    pasted,
    pasted_comparisons,
    print_comparisons,
    print_leaderboard,
)
from kernelproof.report.plain import screen
from kernelproof.types import ErrorClass, Interval, Pace, Problem, RunSettings, Status
from tests.db import samples
from tests.hostile_texts import TEXTS
from tests.screens import WIDTHS, assert_screen

DEMO, OTHER = samples.settings("replay:demo"), samples.settings("openai:another-model")
FILES = RunSettings(kind="verify", model="file", verify=samples.CPP_SMALL)


def measured(
    store: Store,
    of: Problem,
    run: RunSettings,
    speedup: tuple[float, float, float],
    pace: Pace,
    because: str | None = None,
    raw: dict[str, str] | None = None,
) -> None:
    """A correct attempt; `speedup`: the lower end of its interval, the speedup, the upper end."""
    low, middle, high = speedup
    judged = samples.verification(of, speedup=middle)
    changed = {"speedup_interval": Interval(low=low, high=high), "pace": pace, "unresolved_because": because}
    assert judged.measurement is not None
    times = judged.measurement.model_copy(update=changed)
    response = samples.response().model_copy(update={"raw": raw or {}})
    update = {"measurement": times, "error_class": ErrorClass.FP32_EQUIVALENT}
    store.add_finished(
        Finished(*(run, of, response, samples.extraction(), judged.model_copy(update=update), Status.CORRECT))
    )


@pytest.fixture
def store(tmp_path: Path, empty_database: Path) -> Iterator[Store]:
    names = ("relu", "softmax", "argmin", "gelu", "scaled_dot_product_attention", "lstm", "cross_entropy")
    problems = [
        samples.problem(number, level=2).model_copy(update={"name": name})
        for number, name in enumerate(names, start=1)
    ]
    wide, ends = "half of its interval is 34 % wide, 25 % is allowed", "its interval holds 1"
    with samples.new_store(tmp_path, empty_database) as opened:
        measured(opened, problems[0], DEMO, (0.98, 0.99, 1.01), Pace.SAME)
        measured(opened, problems[1], DEMO, (1.52, 1.52, 1.66), Pace.FASTER)
        measured(opened, problems[2], DEMO, (9.2, 9.68, 10.9), Pace.FASTER)
        measured(opened, problems[3], DEMO, (0.06, 0.071, 0.095), Pace.SLOWER)
        measured(opened, problems[4], DEMO, (0.83, 1.31, 1.9), Pace.UNRESOLVED, f"{ends}; {wide}")
        measured(opened, problems[5], DEMO, (0.92, 0.97, 1.04), Pace.UNRESOLVED, ends)
        samples.judge(opened, problems[6], DEMO, Status.WRONG_OUTPUT)
        measured(opened, problems[1], OTHER, (2.1, 2.2, 2.3), Pace.FASTER)
        samples.judge(opened, problems[3], OTHER, Status.BUILD_ERROR)
        for number, name in ((0, "relu_v2.py"), (2, "mine/argmin.py")):
            raw = {"file": name}
            measured(opened, problems[number], FILES, (1.1, 1.2, 1.3), Pace.FASTER, raw=raw)
        yield opened


VIEWS: dict[str, tuple[ViewName, ...]] = {
    "leaderboard": ("model", "problem"),
    "leaderboard_by_model": ("model",),
    "leaderboard_by_kernel": ("kernel",),
    "leaderboard_by_run": ("run",),
}


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", VIEWS)
def test_leaderboard(store: Store, name: str, width: int | None) -> None:
    board = store.scores.leaderboard(views=VIEWS[name])
    details = store.scores.details(board)
    printed = assert_screen(name, lambda: print_leaderboard(board, screen(), details), width)
    assert max(map(len, printed.splitlines())) <= (width or 1000)


@pytest.mark.parametrize("width", WIDTHS)
def test_compare(store: Store, width: int | None) -> None:
    found = store.scores.comparison("replay:demo", "openai:another-model")
    assert_screen("leaderboard_compare", lambda: print_comparisons(found, screen()), width)


@pytest.mark.parametrize("view", ["problem", "model", "run"])
def test_tables_to_paste_have_six_columns(store: Store, view: ViewName) -> None:
    board = store.scores.leaderboard(views=(view,))
    tables = pasted(board, view, store.scores.details(board))
    tables += pasted_comparisons(store.scores.comparison("replay:demo", "openai:another-model"))
    assert {len(table.titles) for table in tables} == {6}
    assert_screen(f"markdown_{view}", lambda: print(as_markdown(tables), end=""), None)
    assert_screen(f"latex_{view}", lambda: print(as_latex(tables), end=""), None)


@pytest.mark.parametrize("text", [*TEXTS, "\\input{x}", "[1]", "*", "a & b % c $ d # e_f ^ ~ { } -- | < >"])
def test_latex_is_escaped(text: str) -> None:
    safe = latex_text(text)
    known = r"\\(text[a-z]+|[{}$&#%_]|ldots)"
    bare = re.sub(r"\$\\(times|pm|dagger|to)\$", "", safe)
    bare = re.sub(known, "", bare)
    assert not set(bare) & set("\\$&#%_^~<>|`\n\r") and "--" not in bare
    assert bare.replace("{}", "").count("{") == bare.replace("{}", "").count("}") == 0
    assert not safe.startswith(("[", "*"))
