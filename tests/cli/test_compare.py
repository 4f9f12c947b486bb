"""`compare`: two kernels of one problem, one interval, and a gate against kernels that are surely slower."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli import material
from tests.cli.program import Program

TIMED = ("--backend", "cpp", "--trials", "1", "--rigor", "quick", "--seconds", "0.5")
SLOW = "for (int k = 0; k < 400; ++k) value = std::sin(value) * 0.0 + value; if (!(value > 0.0)) value = 0.0;"


@pytest.fixture
def relu(suite: Path, tmp_path: Path) -> tuple[object, ...]:
    """The options that name the problem, beside three kernels for it."""
    (tmp_path / "old.py").write_text(material.right())
    (tmp_path / "wrong.py").write_text(material.wrong())
    return ("--problem", "relu", "--suite", suite, *TIMED)


def test_it_times_both_of_one_problem(program: Program, relu: tuple[object, ...], tmp_path: Path) -> None:
    files = (tmp_path / "old.py", tmp_path / "old.py")
    assert "leave out --no-measure" in program.run("compare", *files, *relu, "--no-measure", code=2).stderr
    assert "give --problem" in program.run("compare", *files, *TIMED, code=2).stderr
    assert not program.workspace.joinpath("db").exists()


@pytest.mark.ci
def test_a_wrong_kernel_is_not_compared(program: Program, relu: tuple[object, ...], tmp_path: Path) -> None:
    done = program.run("compare", tmp_path / "old.py", tmp_path / "wrong.py", *relu, code=1)
    assert "wrong.py: wrong_output · " in done.stdout and "as fast as" not in done.stdout


@pytest.mark.ci
def test_names_and_words_of_a_candidate_do_not_steer_the_terminal(
    program: Program, relu: tuple[object, ...], tmp_path: Path
) -> None:
    loud = tmp_path / "loud\x1b[2J.py"
    loud.write_text(f"{material.right()}\n\nraise ValueError('\\x1b[2J gone')\n")
    done = program.run("compare", loud, tmp_path / "wrong.py", *relu, code=1)
    assert "gone" in done.stdout and "\x1b" not in done.stdout


@pytest.mark.ci
@pytest.mark.clock  # beside other programs a kernel may be three times slower than itself
def test_the_same_kernel_is_not_surely_slower(
    program: Program, relu: tuple[object, ...], tmp_path: Path
) -> None:
    file = tmp_path / "old.py"
    done = program.run("compare", file, file, *relu, "--fail-if-slower", "--json", code=0)
    found = json.loads(done.stdout)
    assert [each["status"] for each in found["candidates"]] == ["correct", "correct"]
    assert not found["slower"] and found["interval"][0] <= found["ratio"] <= found["interval"][1]


@pytest.mark.ci
def test_a_kernel_that_is_surely_slower_fails_the_gate(
    program: Program, relu: tuple[object, ...], tmp_path: Path
) -> None:
    slow = tmp_path / "new.py"
    slow.write_text(material.candidate("slow", SLOW))
    done = program.run("compare", tmp_path / "old.py", slow, *relu, "--fail-if-slower", code=1)
    assert done.stdout.endswith("as fast as old.py, surely slower\n")
    assert len(program.attempts()) == 2
