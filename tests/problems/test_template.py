"""`kernelproof problems new`: the file that it writes is a problem, and fit to judge candidates."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from kernelproof.cli.problems import problems_app
from kernelproof.errors import KernelproofError, MachineError, UsageError
from kernelproof.problems import open_suite


def run(*words: object) -> Result:
    return CliRunner().invoke(problems_app, list(map(str, words)))


def test_a_new_problem_is_one_and_is_fit(tmp_path: Path) -> None:
    path = tmp_path / "mine" / "level1" / "1_gated_unit.py"
    assert run("new", path).stdout == f"{path}: edit it, then: kernelproof problems check {path}\n"
    (problem,) = open_suite(tmp_path / "mine").problems()
    assert (problem.id, problem.name) == ("level1/1", "gated_unit")
    assert set(problem.sizes) == {"full", "small"} and "One line" in problem.summary
    checked = run("check", path)
    assert checked.exit_code == 0 and checked.stdout.startswith("fit ")


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("there.py", UsageError, "is there already; give another name"),
        ("problem", UsageError, "is no name of a problem"),
        ("_hidden.py", UsageError, "is no name of a problem"),
        ("there.py/1_x.py", MachineError, "cannot be written"),
    ],
)
def test_nothing_is_overwritten(name: str, kind: type[KernelproofError], words: str, tmp_path: Path) -> None:
    (tmp_path / "there.py").write_text("mine")
    error = run("new", tmp_path / name).exception
    assert type(error) is kind and words in str(error)
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("there.py", "mine")]


def test_a_class_is_no_source_of_an_import(tmp_path: Path) -> None:
    (tmp_path / "blocks.py").write_text("class Block: ...")
    error = run("import", f"{tmp_path}/blocks.py:Block", "--to", tmp_path / "mine").exception
    assert isinstance(error, UsageError) and "kernelproof problems new FILE" in str(error)
