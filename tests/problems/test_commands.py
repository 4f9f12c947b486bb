"""`kernelproof problems list | show | check`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from kernelproof.cli.problems import problems_app
from kernelproof.errors import UsageError
from tests.problems.bad_problems import bad_problem
from tests.problems.trees import checkout, write


def run(*arguments: str) -> Result:
    return CliRunner().invoke(problems_app, list(arguments))


def test_list_shows_ids_names_and_summaries() -> None:
    result = run("list", "--level", "1")
    assert result.exit_code == 0
    titles, *rows = (line.split("\t") for line in result.stdout.splitlines())
    assert titles == ["id", "name", "sizes", "summary"]
    assert rows[1][:3] == ["level1/2", "softmax", "full, small"]
    assert rows[1][3].startswith("Softmax over the rows")
    assert all(row[0].startswith("level1/") for row in rows)


def test_list_as_json_names_broken_files_too(tmp_path: Path) -> None:
    root = checkout(tmp_path)
    bad = write(root / "KernelBench" / "level1" / "2_bad.py", "x = 1\n")
    listed = json.loads(run("list", "--suite", str(root), "--json").stdout)
    assert (listed["suite"], len(listed["problems"])) == ("KernelBench", 7)
    assert [broken["path"] for broken in listed["broken"]] == [str(bad)]
    result = run("list", "--suite", str(root))
    assert result.exit_code == 0 and "2_bad.py:1: defines no `class Model" in result.stderr


def test_show_prints_signature_sizes_and_source() -> None:
    shown = run("show", "matmul").stdout
    assert "forward(a, b)" in shown
    assert "size full: M=4096, K=2048, N=4096" in shown
    assert "return torch.matmul(a, b)" in shown
    assert json.loads(run("show", "level1/4", "--json").stdout)["name"] == "matmul"


def test_an_unknown_problem_is_a_usage_error() -> None:
    assert isinstance(run("show", "sofmax").exception, UsageError)


@pytest.mark.parametrize("as_json", [False, pytest.param(True, marks=pytest.mark.ci)])
def test_check_ends_with_1_for_an_unfit_problem(tmp_path: Path, as_json: bool) -> None:
    result = run("check", str(bad_problem("dropout", tmp_path)), *(["--json"] if as_json else []))
    assert result.exit_code == 1
    if as_json:
        (record,) = json.loads(result.stdout)["problems"]
        assert (record["ok"], record["findings"][0]["reason"]) == (False, "nondeterministic")
    else:
        assert "UNFIT" in result.stdout and "nondeterministic: a second call" in result.stdout


@pytest.mark.ci
def test_check_refuses_a_size_that_no_problem_has(tmp_path: Path) -> None:
    error = run("check", "level1/7", "--size", "giant").exception
    assert isinstance(error, UsageError)
    assert str(error) == "no size 'giant'; there are full, small: choose with --size"
    without = write(tmp_path / "mine" / "own.py")
    assert " full " in run("check", str(without)).stdout  # asked for small, as it is by default


@pytest.mark.ci
def test_check_of_a_whole_suite_fails_for_a_broken_file(tmp_path: Path) -> None:
    write(tmp_path / "mine" / "bad.py", "x = 1\n")
    write(tmp_path / "mine" / "good.py")
    result = run("check", "--suite", str(tmp_path / "mine"))
    assert result.exit_code == 1
    assert "1 of 2 problems fit" in result.stdout


def test_reading_problems_imports_no_torch() -> None:
    code = (
        "import sys; from kernelproof.cli.problems import problems_app;"
        " from kernelproof.problems import open_suite; assert open_suite().problems();"
        " sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0
