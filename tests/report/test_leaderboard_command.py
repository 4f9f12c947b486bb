"""`kernelproof leaderboard`: tables, JSON, CSV, filters, and what it says when there is nothing."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from pathlib import Path

import pytest
from pyarrow import parquet
from rich.console import Console

from kernelproof.db.scores.records import Leaderboard
from kernelproof.db.store import Store
from kernelproof.errors import MachineError, UsageError, install_command
from kernelproof.report.board_columns import FIELDS
from kernelproof.report.leaderboard import print_leaderboard
from kernelproof.types import ErrorClass, Flag, Pace, Status, VerifySettings
from tests.db import samples
from tests.report.conftest import Command

MODEL = "replay:[bold]odd\x1b[31m model[/bold]"


@pytest.fixture
def filled(store: Store) -> Store:
    run = samples.settings(MODEL)
    samples.judge(store, samples.problem(1), run, speedup=2.0)
    samples.judge(store, samples.problem(1), run, Status.BUILD_ERROR, sample=1)
    samples.judge(store, samples.problem(2), run, Status.WRONG_OUTPUT)
    return store


def test_tables_show_the_best_of_each_problem_and_each_models_rates(
    filled: Store, command: Command, workspace: Path
) -> None:
    lines = command("leaderboard").splitlines()
    assert lines[0] == "cpp · small size · Test CPU · against PyTorch"
    first = next(line.split() for line in lines if line.startswith("level1/1"))
    assert first[1:5] == ["softmax", "2.00×", "[1.98,", "2.02]"]
    assert " ".join(first[5:]).endswith("faster 0.500 ms against 1.00 ms 1/2 replay:[bold]odd model[/bold] 1")
    second = next(line.split() for line in lines if line.startswith("level1/2"))
    assert second == ["level1/2", "softmax", "-", "not", "solved", "0/1"]
    model, funnel = (line for line in lines if line.startswith("replay"))
    for figure in ("1/3", "33.3 %", "25.0 %", "2.00×", "1/2"):
        assert figure in model
    assert lines[-2] == "2 problems against PyTorch: 1 faster · 1 not solved"
    number = f"1 --workspace {workspace}"
    assert (
        lines[-1]
        == f"the best: kernelproof show {number}; to measure it again: kernelproof reproduce {number}"
    )
    assert " ".join(funnel.split()[2:]) == "3 3 3 2 90 1 build_error, 1 correct, 1 wrong_output"


def test_json_is_the_stores_answer(filled: Store, command: Command) -> None:
    printed = command("leaderboard", "--json")
    assert Leaderboard.model_validate(json.loads(printed)) == filled.scores.leaderboard(top=20)


def test_filters_reach_the_query(filled: Store, command: Command) -> None:
    narrow = ("--problem", "level1/1", "--level", "1", "--model", "odd", "--gpu", "cpu", "--backend", "cpp")
    printed = command("leaderboard", *narrow, "--size", "small", "--kind", "generate")
    assert "level1/1" in printed
    assert "level1/2" not in printed
    assert "no finished attempt passes these filters" in command("leaderboard", "--run", "other")


def test_other_rules_have_tables_of_their_own_that_say_so(filled: Store, command: Command) -> None:
    other = samples.settings(
        MODEL,
        VerifySettings(backend="cpp", size="small", numerics="tf32", purity="own-compute", own_kernel=False),
    )
    samples.judge(filled, samples.problem(1), other, speedup=4.0)
    heads = [line for line in command("leaderboard").splitlines() if line.startswith("cpp · ")]
    assert heads == [
        "cpp · small size · Test CPU · against PyTorch",
        "cpp · small size · Test CPU · tf32 numerics · own-compute purity · no own kernel required"
        " · against PyTorch",
    ]
    for narrow in (("--numerics", "tf32"), ("--purity", "own-compute")):
        printed = command("leaderboard", *narrow)
        assert heads[1] in printed and heads[0] + "\n" not in printed
    (row,) = csv.DictReader(
        io.StringIO(command("leaderboard", "--csv", "--by", "model", "--numerics", "tf32"))
    )
    assert (row["numerics"], row["purity"], row["own_kernel"]) == ("tf32", "own-compute", "False")


def test_error_class_and_flags_have_columns_where_there_are_any(filled: Store, command: Command) -> None:
    heads = command("leaderboard").splitlines()[1]
    assert "flags" not in heads and "error class" not in heads
    run = samples.settings(MODEL)
    flags, found = (Flag.SHAPE_SPECIALISED, Flag.LAYOUT_SPECIALISED), ErrorClass.TF32_CLASS
    samples.judge(filled, samples.problem(1), run, speedup=4.0, sample=5, flags=flags, error_class=found)
    printed = command("leaderboard")
    first = next(line for line in printed.splitlines() if line.startswith("level1/1"))
    assert "tf32-class" in first and "shape_specialised, layout_specialised" in first
    row, _ = csv.DictReader(io.StringIO(command("leaderboard", "--csv")))
    assert row["error_class"] == "tf32-class"
    assert row["flags"] == "shape_specialised layout_specialised"
    best = json.loads(command("leaderboard", "--json"))["problems"][0]["best"]
    assert (best["error_class"], best["flags"]) == (found, [*flags])


def test_what_is_refused_is_mentioned(filled: Store, command: Command) -> None:
    run = samples.settings(MODEL)
    flags, found = (Flag.SHAPE_SPECIALISED,), ErrorClass.TF32_CLASS
    samples.judge(filled, samples.problem(1), run, speedup=4.0, sample=5, flags=flags, error_class=found)
    refuse = ("--without", "shape_specialised", "--without", "layout_specialised")
    printed = command("leaderboard", *refuse, "--error-class", "fp32-equivalent")
    first = next(line.split() for line in printed.splitlines() if line.startswith("level1/1"))
    assert first[2] == "2.00×"
    assert (
        "1 correct attempt not counted as correct here: without shape_specialised, "
        "without layout_specialised, fp32-equivalent or better." in printed
    )


def test_flags_stay_on_a_narrow_screen(store: Store) -> None:
    samples.judge(store, samples.problem(1), samples.settings(), speedup=4.0, flags=(Flag.SHAPE_SPECIALISED,))
    assert "flags" in heads(printed_at(60, store))[0]


def test_edited_problems_are_told_apart(filled: Store, command: Command) -> None:
    edited = samples.problem(1, source="class Model: pass")
    samples.judge(filled, edited, samples.settings(MODEL), speedup=4.0)
    printed = command("leaderboard")
    for problem in (samples.problem(1), edited):
        assert f"level1/1 @{problem.sha256[:8]}" in printed


def test_unfinished_and_retracted_attempts_are_mentioned(filled: Store, command: Command) -> None:
    samples.begin(filled, samples.problem(1), samples.settings(MODEL), sample=5)
    filled.retract(2, "the machine was busy")
    printed = command("leaderboard")
    assert "1 attempt not finished" in printed
    assert "1 attempt left out" in printed


def test_where_nothing_is_solved_no_column_stays_empty(store: Store, command: Command) -> None:
    for number in (1, 2):
        samples.judge(store, samples.problem(number), samples.settings(), Status.WRONG_OUTPUT)
    printed = command("leaderboard")
    assert "all by" not in printed and "time against" not in printed and "interval" not in printed
    assert printed.count("not solved") == 3, "two rows, and the closing line"


def test_an_empty_store_says_what_to_do(store: Store, command: Command) -> None:
    assert "kernelproof generate" in command("leaderboard")
    samples.begin(store, samples.problem(), samples.settings())
    assert "1 attempt not finished" in command("leaderboard")


def printed_at(width: int, store: Store) -> list[str]:
    console = Console(
        file=io.StringIO(), width=width, force_terminal=True, color_system=None, markup=False, highlight=False
    )
    print_leaderboard(store.scores.leaderboard(), console)
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert max(map(len, lines)) <= width
    return lines


def heads(lines: list[str]) -> list[list[str]]:
    """The titles of each table, found by the rule under them."""
    return [lines[i - 1].split() for i, line in enumerate(lines) if set(line) == {"─"}]


def test_80_columns_hold_what_matters_unbroken(store: Store) -> None:
    run = samples.settings("replay:demo")
    samples.judge(store, samples.problem(1), run, speedup=2.0)
    failures = (Status.WRONG_OUTPUT, Status.BUILD_ERROR, Status.NO_CUSTOM_KERNEL, Status.CONTRACT_ERROR)
    for sample, status in enumerate(failures, start=1):
        samples.judge(store, samples.problem(1), run, status, sample=sample)
    lines = printed_at(80, store)
    problems, models, statuses = heads(lines)
    assert " ".join(problems) == "problem speedup 95 % interval 1 2 pace model #"
    assert " ".join(models) == "model solved correct pass@1 fast_1 fast_2 mean speedup [95 %]"
    assert statuses[0] == "model" and statuses[-3:] == ["how", "samples", "ended"]
    first = next(line for line in lines if line.startswith("level1/1"))
    assert " ".join(first.split()) == "level1/1 softmax 2.00× [1.98, 2.02] │ ● faster replay:demo 1"
    for status in (Status.CORRECT, *failures):
        assert any(f"1 {status}" in line for line in lines), "a count stands beside its status"
    heads_at = [place - 1 for place, line in enumerate(lines) if set(line) == {"─"}]
    assert [lines[place - 1] for place in heads_at[1:]] == ["", ""], "tables stand apart"
    assert "correct: of samples · fast_p: p times as fast · mean: geometric, of the solved" in lines


def test_unresolved_results_say_what_to_do_whatever_is_asked_for(store: Store, command: Command) -> None:
    because = "half of its interval is 34 % wide, 25 % is allowed"
    unresolved = samples.measurement(1.5).model_copy(
        update={"pace": Pace.UNRESOLVED, "unresolved_because": because}
    )
    judged = samples.verification(samples.problem(1), speedup=1.5)
    attempt = samples.begin(store, samples.problem(1), samples.settings())
    store.record_response(attempt, samples.response())
    store.record_extraction(attempt, samples.extraction())
    store.record_verification(attempt, judged.model_copy(update={"measurement": unresolved}))
    store.finish_attempt(attempt, Status.CORRECT)
    for view in ("model", "run"):
        printed = command("leaderboard", "--by", view)
        assert "1 correct sample of unresolved pace" in printed and "rejudge RUN --again" in printed
        assert "the speedup counts as 1 at most" in printed
    for view in ("kernel", "problem"):
        printed = command("leaderboard", "--by", view)
        assert (
            "too wide: ±34 %" in printed
            and "1.50×→1" in printed
            and f"1 {view} against PyTorch: 1 unresolved" in printed
        )
        assert "kernelproof runs rejudge 1 --again" in printed
    samples.judge(store, samples.problem(1), samples.settings(), speedup=2.0, sample=1)
    assert "1 unresolved" not in command("leaderboard", "--by", "problem"), "the best is resolved"


@pytest.mark.parametrize("width", [60, 80, 100])
def test_a_long_name_is_shortened_and_squeezes_nothing_out(store: Store, width: int) -> None:
    model = "openai:an-organisation/a-model-with-a-rather-long-name-70b-instruct"
    samples.judge(store, samples.problem(1), samples.settings(model), speedup=2.0)
    lines = printed_at(width, store)
    titles, _, first, *more = lines[1:]
    for title in ("problem", "speedup", "pace", "model", "#"):
        assert title in titles.split()
    row = first.split()
    assert row[:3] == ["level1/1", "softmax", "2.00×"] and "faster" in row and row[-1] == "1"
    begin, end = row[-2].split("…")
    assert begin and model.startswith(begin) and end and model.endswith(end)
    assert more[0].startswith("pace:"), "one line a kernel"
    whole = lines[lines.index("", 1) + 3 :]
    assert model in "".join(line.split()[0] for line in whole[: whole.index("")] if line), "of the models"


def test_a_wide_screen_shows_every_column(filled: Store) -> None:
    problems, models, funnel = (" ".join(head) for head in heads(printed_at(240, filled)))
    assert "time against PyTorch" in problems and "interval" in problems
    assert "fast_0.5 fast_0.8 fast_1 fast_1.5 fast_2 mean speedup" in models
    assert models.endswith("mean over all")
    assert funnel == "model attempts answered with code built tokens/correct how samples ended"


@pytest.mark.parametrize("view", ["model", "problem", "kernel", "run", "template", "strategy"])
def test_every_view_is_a_table_and_csv_with_its_columns(filled: Store, command: Command, view: str) -> None:
    assert "2.00×" in command("leaderboard", "--by", view)
    rows = list(csv.DictReader(io.StringIO(command("leaderboard", "--by", view, "--csv"))))
    assert rows and list(rows[0]) == [field.name for field in FIELDS[view]]  # type: ignore[index]


def test_a_funnel_and_intervals_stand_in_the_csv_of_models(filled: Store, command: Command) -> None:
    (row,) = csv.DictReader(io.StringIO(command("leaderboard", "--csv", "--by", "model")))
    funnel = [row[name] for name in ("attempts", "answered", "extracted", "built", "right")]
    assert funnel == ["3", "3", "3", "2", "1"]
    assert float(row["rate_low"]) < 1 / 3 < float(row["rate_high"])
    assert (row["tokens"], row["tokens_per_correct"], row["cost_per_correct"]) == ("90", "90.0", "")
    assert (row["fast_1_sure"], row["fast_2_sure"], row["unresolved"]) == ("1", "0", "0")


def test_markdown_is_a_table_in_which_a_name_is_text(filled: Store, command: Command) -> None:
    for arguments, columns in ((), 6), (("--wide",), 40):
        printed = command("leaderboard", "--by", "model", "--markdown", *arguments)
        head, rule, row = (line for line in printed.splitlines() if line.startswith("|"))
        assert head.count("|") == rule.count("|") == row.count("|")
        assert (row.count("|") == columns + 1) if columns == 6 else (row.count("|") > columns)
        assert "replay:&#91;bold&#93;odd model&#91;/bold&#93;" in row


def test_wide_and_forms_without_a_choice_of_columns_exclude_each_other(
    filled: Store, command: Command
) -> None:
    for form in ("--csv", "--json", "--claims"):
        with pytest.raises(UsageError, match=f"--wide and {form} exclude"):
            command("leaderboard", "--wide", form)


def test_parquet_has_the_columns_with_their_meanings(filled: Store, command: Command, tmp_path: Path) -> None:
    file = tmp_path / "board.parquet"
    assert command("leaderboard", "--by", "problem", "--parquet", str(file)) == ""
    table = parquet.read_table(file)
    assert table.column_names == [field.name for field in FIELDS["problem"]]
    assert table["speedup"].to_pylist() == [2.0, None]
    assert table["level"].to_pylist() == [1, 1]
    meant = next(field.meaning for field in FIELDS["problem"] if field.name == "headroom")
    assert table.schema.field("headroom").metadata[b"meaning"] == meant.encode()


def test_without_pyarrow_the_remedy_is_named(
    filled: Store, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MachineError, match=re.escape(install_command("parquet"))):
        command("leaderboard", "--parquet", str(tmp_path / "board.parquet"))


def test_a_comparison_says_who_wins_where(filled: Store, command: Command) -> None:
    samples.judge(filled, samples.problem(1), samples.settings("openai:b"), speedup=1.5)
    samples.judge(filled, samples.problem(2), samples.settings("openai:b"), speedup=1.2)
    printed = command("leaderboard", "--compare", MODEL, "openai:b")
    first, second = (line.split() for line in printed.splitlines() if line.startswith("level1/"))
    assert (first[1:4], first[-3:]) == (["1/2", "1/1", "B"], ["A", "#1", "#4"])
    assert second[1:4] == ["0/1", "1/1", "B"]
    assert "A is right more often on 0, B on 2: p = 0.5 (exact sign test)" in printed
    assert "A's best is 1.33× as fast as B's" in printed
    rows = csv.DictReader(io.StringIO(command("leaderboard", "--compare", MODEL, "openai:b", "--csv")))
    assert [(row["more_correct"], row["faster"]) for row in rows] == [("b", "a"), ("b", "b")]
    (found,) = json.loads(command("leaderboard", "--compare", MODEL, "openai:b", "--json"))
    assert found["correct_p"] == 0.5


def test_stale_results_are_named_with_what_judges_them_again(filled: Store, command: Command) -> None:
    old = samples.verification(samples.problem(3), speedup=5.0)
    attempt = samples.begin(filled, samples.problem(3), samples.settings(MODEL))
    filled.record_verification(attempt, old.model_copy(update={"verifier": "0.1.0"}))
    printed = command("leaderboard")
    assert "level1/3" not in printed
    assert "1 attempt stale, judged under another policy: 1 sample left out" in printed
    assert "kernelproof runs rejudge --stale" in printed
    assert "level1/3" in command("leaderboard", "--policy", "any")


def test_an_empty_answer_lists_what_the_filters_could_be(filled: Store, command: Command) -> None:
    printed = command("leaderboard", "--model", "gpt", "--since", "2999-01-01")
    assert "--model gpt matches nothing; there are: replay:[bold]odd model[/bold]" in printed
    assert "\x1b" not in printed


def test_json_has_the_days_that_were_asked_for(filled: Store, command: Command) -> None:
    found = json.loads(command("leaderboard", "--since", "2026-01-02", "--until", "2999-01-01", "--json"))
    assert (found["filters"]["since"], found["filters"]["until"]) == ("2026-01-02", "2999-01-01")


def test_what_excludes_each_other_is_said(filled: Store, command: Command) -> None:
    for arguments, words in (
        (("--csv", "--markdown"), "--csv and --markdown exclude"),
        (("--json", "--csv"), "--json and --csv exclude"),
        (("--claims", "--compare", "a", "b"), "--claims and --compare exclude"),
        (("--claims", "--markdown"), "--claims and --markdown exclude"),
        (("--claims", "--by", "model"), "--claims and --by exclude"),
        (("--compare", "a", "b", "--by", "kernel"), "--compare pairs by problem"),
    ):
        with pytest.raises(UsageError, match=words):
            command("leaderboard", *arguments)
