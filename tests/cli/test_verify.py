"""`verify`: exit codes, every check as JSON, one clear line for what the user got wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernelproof.types import Rigor, Status, VerifySettings
from tests.cli import material
from tests.cli.material import QUICK
from tests.cli.program import Program


@pytest.fixture
def relu(suite: Path) -> tuple[object, ...]:
    """The options that name the problem."""
    return ("--problem", "relu", "--suite", suite)


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_a_correct_candidate(program: Program, relu: tuple[object, ...], tmp_path: Path) -> None:
    file = written(tmp_path / "right.py", material.right())
    done = program.run("verify", file, *relu, *QUICK, code=0)
    assert done.stdout.startswith("correct · not timed · attempt 1\n")
    assert "kernelproof show 1 --checks" in done.stdout and "values: drawn" not in done.stdout
    (attempt,) = program.attempts()
    assert (attempt.status, attempt.source) == (Status.CORRECT, material.right())
    assert program.left_after() == {} and program.scratch() == []


def test_nothing_is_imported_from_where_the_user_stands(
    program: Program, relu: tuple[object, ...], tmp_path: Path
) -> None:
    """torch looks for a package `cuda`: a candidate of this name would run in the referee's process."""
    ran, file = tmp_path / "ran", written(tmp_path / "right.py", material.right())
    for name in ("cuda", "torch", "numpy", "triton", "pydantic", "typer"):
        written(program.workspace / f"{name}.py", f"open({str(ran)!r}, 'a').write({name!r})\n")
    program.run("verify", file, *relu, *QUICK, code=0)
    program.run("problems", "check", *relu[1:], code=0)
    module = [sys.executable, "-m", "kernelproof", "leaderboard"]
    subprocess.run(module, cwd=program.workspace, env=program.environment, check=True, capture_output=True)
    assert not ran.exists()


@pytest.mark.ci
def test_what_a_sanitizer_saw_is_a_flag_wherever_a_result_is_shown(
    program: Program, relu: tuple[object, ...], tmp_path: Path
) -> None:
    beyond = "value = std::max(value, 0.0f); volatile float seen = x[count]; (void)seen;"
    file = written(tmp_path / "beyond.py", material.candidate("beyond", beyond))
    done = program.run("verify", file, *relu, *QUICK, "--sanitize", "--html", tmp_path / "page.html", code=0)
    assert done.stdout.startswith("correct · not timed · attempt 1\n")
    said = "out_of_bounds_read, at the declared size: heap-buffer-overflow READ of size 4 in apply("
    for shown in (done.stdout, program.run("show", 1).stdout, (tmp_path / "page.html").read_text()):
        assert "out_of_bounds_read: reads memory" in " ".join(shown.split())
        assert said in " ".join(shown.split())
    assert "--sanitize is for one file" in program.run("verify", tmp_path, "--sanitize", code=2).stderr
    for options, correct in (((), 1), (("--without", "out_of_bounds_read"), 0)):
        (row,) = json.loads(program.run("leaderboard", "--json", *options).stdout)["models"]
        assert row["correct"]["part"] == correct


@pytest.mark.ci
def test_a_wrong_candidate_as_json(program: Program, relu: tuple[object, ...], tmp_path: Path) -> None:
    file = written(tmp_path / "wrong.py", material.wrong())
    found = json.loads(program.run("verify", file, *relu, *QUICK, "--json", code=1).stdout)
    assert (found["attempt"], found["status"]) == (1, "wrong_output")
    checks = {check["name"]: check["outcome"] for check in found["verification"]["checks"]}
    assert checks["values: drawn"] == "fail"
    threads = found["verification"]["settings"]["threads"]  # what this machine decided
    assert threads == max(1, len(os.sched_getaffinity(0)) - 1)
    error = found["verification"]["errors"][0]
    assert error["wrong"] > 0 and error["count"] == 64 * 257 and error["got"] == 1.0
    (attempt,) = program.attempts()
    stored = attempt.verifications[0].verification
    assert [check.name for check in stored.checks] == list(checks)


@pytest.mark.ci
def test_what_a_problem_prints_is_no_word_of_the_command(program: Program, tmp_path: Path) -> None:
    loud = f"{material.RELU}\nimport warnings\nwarnings.warn('loud')\nprint('\\x1b[2J loud')\n"
    problem, file = written(tmp_path / "loud_relu.py", loud), written(tmp_path / "a.py", material.right())
    done = program.run("verify", file, "--problem", problem, *QUICK, "--json", code=0)
    assert json.loads(done.stdout)["status"] == "correct"
    assert done.stderr == ""


@pytest.mark.ci
def test_every_check_of_a_measured_candidate_is_in_the_json(
    program: Program, relu: tuple[object, ...], tmp_path: Path
) -> None:
    file = written(tmp_path / "right.py", material.right())
    options = ("--backend", "cpp", "--trials", "2", "--seconds", "0.2", "--json", "--no-store")
    # Calls of microseconds on a busy machine may be taken for a timer that lies: any code.
    found = json.loads(program.run("verify", file, *relu, *options, code=None).stdout)
    outcomes = {check["name"]: check["outcome"] for check in found["verification"]["checks"]}
    timed = {"timed_outputs", "host_clock"}
    always = {"values: drawn", "values: drawn 2", "output_form", "inputs_unchanged", "own_kernel"}
    assert timed | always <= outcomes.keys()
    assert all(outcomes[name] == "pass" for name in always)
    assert found["verification"]["measurement"]["candidate_ms"] > 0
    assert found["attempt"] is None
    assert list(program.workspace.iterdir()) == []


@pytest.mark.ci
def test_the_page_of_one_file(program: Program, relu: tuple[object, ...], tmp_path: Path) -> None:
    file, page = tmp_path / "candidate.py", tmp_path / "candidate.html"
    file.write_text(material.wrong())
    done = program.run("verify", file, *relu, *QUICK, "--html", page, "--json", code=1)
    assert json.loads(done.stdout)["attempt"] == 1 and f"{page}: " in done.stderr
    text = page.read_text()
    assert '<p class="lead">wrong_output · ' in text
    assert "kernelproof reproduce attempt-1.bundle" in text


def test_a_page_is_of_one_file_that_is_kept(
    program: Program, relu: tuple[object, ...], tmp_path: Path
) -> None:
    for more in ([tmp_path, *relu], [tmp_path / "candidate.py", *relu, "--no-store"]):
        done = program.run("verify", *more, "--html", tmp_path / "candidate.html", code=2)
        assert "--html writes the page of one candidate that is kept" in done.stderr


def test_a_file_without_code(program: Program, relu: tuple[object, ...], tmp_path: Path) -> None:
    file = written(tmp_path / "prose.md", "Kernels are nice.\n")
    done = program.run("verify", file, *relu, *QUICK, code=1)
    assert done.stdout.startswith("no_code · ") and "kernelproof show 1 --response" in done.stdout
    (attempt,) = program.attempts()
    assert attempt.response is not None and attempt.response.text == file.read_text()
    assert json.loads(program.run("verify", file, *relu, "--json", code=1).stdout)["verification"] is None


def test_an_empty_file_is_called_empty(program: Program, relu: tuple[object, ...], tmp_path: Path) -> None:
    done = program.run("verify", written(tmp_path / "empty.py", ""), *relu, *QUICK, "--no-store", code=1)
    assert done.stdout == "empty · the file is empty\n"


@pytest.mark.ci
def test_a_failed_check_is_shown_and_all_of_them_with_an_option(
    program: Program, relu: tuple[object, ...], tmp_path: Path
) -> None:
    file = written(tmp_path / "wrong.py", material.wrong())
    said = program.run("verify", file, *relu, *QUICK, code=1).stdout
    assert said.startswith("wrong_output · values: drawn: output 0: ") and "FAIL  values: drawn" in said
    whole = program.run("verify", file, *relu, *QUICK, "--no-store", "--checks", code=1).stdout
    assert "rules  numerics fp32" in whole and "n/a   weights" in whole and "n/a   weights" not in said


def test_the_options_are_the_settings_that_are_stored(
    program: Program, relu: tuple[object, ...], tmp_path: Path
) -> None:
    file = written(tmp_path / "prose.md", "Kernels are nice.\n")
    options = ("--rigor", "publish", "--numerics", "tf32", "--purity", "own-compute", "--backend", "cpp")
    baselines = ("--baseline", "max-autotune", "--baseline", "compile", "--baseline", "max-autotune")
    program.run("verify", file, *relu, *options, *baselines, code=1)
    program.run("verify", file, *relu, "--backend", "cpp", "--no-own-kernel", code=1)
    first, second = (attempt.run.verify for attempt in program.attempts())
    assert (first.rigor, first.numerics, first.purity) == (Rigor.PUBLISH, "tf32", "own-compute")
    assert (first.baselines, first.own_kernel) == (("compile", "max-autotune"), True)
    assert second == VerifySettings(backend="cpp", size="full", own_kernel=False)


@pytest.mark.ci
def test_two_at_once_are_both_kept(program: Program, relu: tuple[object, ...], tmp_path: Path) -> None:
    files = [
        written(tmp_path / "right.py", material.right()),
        written(tmp_path / "wrong.py", material.wrong()),
    ]
    processes = [program.start("verify", file, *relu, *QUICK) for file in files]
    for process in processes:
        process.communicate(timeout=240)
    assert [process.returncode for process in processes] == [0, 1]
    attempts = program.attempts()
    assert {a.status for a in attempts} == {Status.CORRECT, Status.WRONG_OUTPUT}
    assert sorted(a.key.sample for a in attempts) == [0, 1]
    assert len({a.run_id for a in attempts}) == 1
