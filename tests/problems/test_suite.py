"""Many files: which suites there are, and how problems in them are found and selected."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernelproof.errors import UsageError
from kernelproof.problems import open_suite
from tests.problems.trees import checkout, write

IDS = ["level1/1", "level1/19", "level1/23", "level1/100", "level2/3", "level2/24", "level3/1"]


def test_a_checkout_is_read_as_it_is(tmp_path: Path) -> None:
    suite = open_suite(checkout(tmp_path))
    assert [problem.id for problem in suite.problems()] == IDS
    assert [problem.id for problem in suite.problems(level=2)] == ["level2/3", "level2/24"]
    assert suite.name == "KernelBench"
    assert suite.find("level1/19").name == "ReLU"
    assert suite.broken == []


def test_a_pipe_in_a_folder_is_no_problem(tmp_path: Path) -> None:
    root = checkout(tmp_path)
    os.mkfifo(root / "KernelBench" / "level1" / "7_Pipe.py")
    assert [problem.id for problem in open_suite(root).problems()] == IDS


def test_a_folder_of_levels_a_single_level_and_a_single_file(tmp_path: Path) -> None:
    root = checkout(tmp_path) / "KernelBench"
    assert [p.id for p in open_suite(root).problems()] == IDS
    level = open_suite(root / "level1")
    assert [p.id for p in level.problems()] == IDS[:4]
    assert level.name == "KernelBench"
    alone = open_suite(root / "level2" / "24_Conv3d_Min_Softmax.py")
    assert [(p.id, p.suite) for p in alone.problems()] == [("level2/24", "file")]


def test_any_directory_of_files(tmp_path: Path) -> None:
    write(tmp_path / "mine" / "softmax.py")
    write(tmp_path / "mine" / "2_relu.py")
    write(tmp_path / "mine" / "__init__.py", "")
    suite = open_suite(tmp_path / "mine")
    assert [(p.id, p.suite, p.level) for p in suite.problems()] == [
        ("mine/2", "mine", None),
        ("softmax", "mine", None),
    ]


@pytest.mark.parametrize("name", ["nowhere", "empty"])
def test_where_there_are_no_problems(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=r"does not exist|holds no problems"):
        open_suite(tmp_path / name)


def test_a_broken_file_hides_no_other(tmp_path: Path) -> None:
    write(tmp_path / "level1" / "1_good.py")
    bad = write(tmp_path / "level1" / "2_bad.py", "def (:\n")
    twin = write(tmp_path / "level1" / "1_twin.py")
    suite = open_suite(tmp_path)
    assert [p.id for p in suite.problems()] == ["level1/1"]
    assert {path for path, _ in suite.broken} == {bad, twin}
    with pytest.raises(UsageError, match="does not parse"):
        suite.find("level1/2")
    with pytest.raises(UsageError, match="level1/1 is also 1_good"):
        suite.find("twin")
    with pytest.raises(UsageError, match="only files that are no problems"):
        suite.select(["*bad*"])


@pytest.mark.parametrize(
    "text",
    [
        "level1/23",
        "level1/023",
        "level1/23_Softmax",
        "level1/23_softmax.py",
        "level1/softmax",
        "23_Softmax",
        " level1/23/ ",
    ],
)
def test_ways_to_ask_for_one_problem(tmp_path: Path, text: str) -> None:
    assert open_suite(checkout(tmp_path)).find(text).id == "level1/23"


def test_a_path_is_found_inside_and_outside_the_suite(tmp_path: Path) -> None:
    root = checkout(tmp_path / "kb")
    suite = open_suite(root)
    inside = suite.find(str(root / "KernelBench" / "level1" / "19_ReLU.py"))
    assert (inside.id, inside.suite) == ("level1/19", "KernelBench")
    outside = suite.find(str(write(tmp_path / "mine" / "own.py")))
    assert (outside.id, outside.suite) == ("own", "file")


def test_an_unknown_name_gets_close_ones(tmp_path: Path) -> None:
    suite = open_suite(checkout(tmp_path))
    with pytest.raises(UsageError, match=r"did you mean hingeloss \(level1/100\)"):
        suite.find("HingeLos")
    with pytest.raises(UsageError, match="problems list"):
        suite.find("zzzzzz")
    with pytest.raises(UsageError, match="no such file"):
        suite.find("./zzzzzz.py")


def test_an_ambiguous_name_is_answered_with_all_of_them(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"level1/23 \(23_Softmax.py\), level2/3 \(3_Softmax.py\)"):
        open_suite(checkout(tmp_path)).find("softmax")


@pytest.mark.parametrize(
    ("patterns", "wanted"),
    [
        (["all"], IDS),
        (["level2"], ["level2/3", "level2/24"]),
        (["level1/*"], IDS[:4]),
        (["*softmax*"], ["level1/23", "level2/3", "level2/24"]),
        (["level3", "relu", "level1/19"], ["level3/1", "level1/19"]),
        (["level1/[12]*"], ["level1/1", "level1/19", "level1/23", "level1/100"]),
        ([], []),
    ],
)
def test_selection(tmp_path: Path, patterns: list[str], wanted: list[str]) -> None:
    assert [p.id for p in open_suite(checkout(tmp_path)).select(patterns)] == wanted


@pytest.mark.parametrize("pattern", ["level9", "level1/9*", "relus"])
def test_a_pattern_that_matches_nothing_is_an_error(tmp_path: Path, pattern: str) -> None:
    with pytest.raises(UsageError, match="no problem"):
        open_suite(checkout(tmp_path)).select([pattern])


@given(numbers=st.sets(st.integers(min_value=0, max_value=2000), min_size=1, max_size=12))
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_problems_are_in_order_and_each_found_by_its_id(
    tmp_path_factory: pytest.TempPathFactory, numbers: set[int]
) -> None:
    root = tmp_path_factory.mktemp("suite")
    for number in numbers:
        write(root / "level1" / f"{number}_op.py")
    suite = open_suite(root)
    problems = suite.problems()
    assert [problem.id for problem in problems] == [f"level1/{number}" for number in sorted(numbers)]
    assert all(suite.find(problem.id) == problem for problem in problems)
