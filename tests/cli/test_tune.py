"""`tune` finds the parameter that makes a kernel fast; what fails is data; nothing is verified twice."""

from __future__ import annotations

import json
import signal
import time
from collections import Counter
from pathlib import Path
from subprocess import Popen
from typing import Any

import pytest

from kernelproof.types import Status
from tests.cli import material
from tests.cli.conftest import working_in
from tests.cli.program import Program, kill, kill_tree

SHORT = ("--backend", "cpp", "--rigor", "quick", "--seconds", "0.2")
WORK = """
        for (int k = 0; k < 40; ++k) value = std::sin(value);
        volatile float waste = value;
        for (int k = 0; k < 40 * (REPEAT - 1); ++k) waste = std::sin(waste);
"""
"""REPEAT times the work that SINES needs."""
MODES = """
// tune: REPEAT = 1 | 32
// tune: MODE = 1 | 2 | 4 | 8
// tune where: REPEAT * MODE <= 32
constexpr int REPEAT = 32;
#define MODE 1
static_assert(MODE != 2, "this one does not build");
static float odd(float value) {
    for (volatile int going = MODE; going == 4;) {}
    return MODE == 8 ? value + 1.0f : value;
}
"""
"""Mode 2 does not build, 4 hangs, 8 is wrong; each only with REPEAT 1."""


def kernel(before: str, more: str = "") -> str:
    return material.candidate("tuned", WORK + more, before)


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """SINES of a smaller matrix."""
    file = tmp_path_factory.mktemp("suite") / "level1" / "2_sines.py"
    file.parent.mkdir()
    file.write_text(material.SINES.replace("torch.randn(64, 257)", "torch.randn(8, 257)"))
    return file.parents[1]


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory, suite: Path, cache: Path) -> tuple[Program, Path, str]:
    """A workspace in which a kernel was tuned; the file that was written; the output."""
    folder = tmp_path_factory.mktemp("tuned")
    (folder / "kernel.py").write_text(kernel(MODES, "value = odd(value);"))
    best = folder / "best.py"
    command = ("tune", folder / "kernel.py", "--problem", "sines", "--suite", suite, "--output", best)
    with working_in(folder / "workspace", cache) as program:
        done = program.run(*command, *SHORT, "--call-seconds", 2)
        return program, best, done.stdout


@pytest.mark.ci
@pytest.mark.clock
def test_the_parameter_that_wastes_work_is_found(tuned: tuple[Program, Path, str]) -> None:
    _, best, said = tuned
    assert best.read_text() == kernel(MODES, "value = odd(value);").replace("REPEAT = 32;", "REPEAT = 1;")
    assert "as fast as the original · REPEAT 1, MODE 1\n" in said and "is kept" not in said
    assert "kernelproof show 7 --source" in said


@pytest.mark.ci
@pytest.mark.clock
def test_what_fails_is_stored_as_well(tuned: tuple[Program, Path, str]) -> None:
    program, _, said = tuned
    assert "2 parameters declared" in said and "5 combinations; chosen by: all combinations" in said
    trials = [attempt for attempt in program.attempts() if attempt.run.kind == "tune"]
    found = [(t.response.raw["tune"], t.status) for t in trials if t.response is not None]
    expected = {
        (32, 1): Status.CORRECT,
        (1, 1): Status.CORRECT,
        (1, 2): Status.BUILD_ERROR,
        (1, 4): Status.TIMEOUT,
        (1, 8): Status.WRONG_OUTPUT,
    }
    assert {(values["REPEAT"], values["MODE"]): status for values, status in found} == expected
    assert len(found) == len(expected)


@pytest.mark.ci
@pytest.mark.clock
def test_only_the_confirmation_counts(tuned: tuple[Program, Path, str]) -> None:
    program, _, _ = tuned
    assert "parameters  REPEAT 32, MODE 1" in program.run("show", 1).stdout
    confirmed = [attempt for attempt in program.attempts() if attempt.run.kind == "verify"]
    assert [attempt.status for attempt in confirmed] == [Status.CORRECT] * 2
    assert [a.response.raw["tune"]["REPEAT"] for a in confirmed if a.response] == [32, 1]
    with program.store() as store:
        board = store.scores.leaderboard()
    assert [(model.model, model.attempts) for model in board.models] == [("file", 2)]


def everything(process: Popen[str] | None, program: Program, least: int) -> None:
    """Waits until so many attempts are stored."""
    deadline = time.monotonic() + 60
    while True:
        database = program.workspace / "db" / "attempts.sqlite"
        if database.exists() and len(program.attempts()) >= least:
            return
        assert time.monotonic() < deadline and (process is None or process.poll() is None)
        time.sleep(0.05)


def sources(program: Program) -> Counter[tuple[str, str | None]]:
    return Counter((attempt.run.kind, attempt.source) for attempt in program.attempts())


@pytest.mark.ci
def test_killed_it_goes_on_and_verifies_nothing_twice(program: Program, suite: Path, tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text(kernel("// tune: REPEAT = 1 | 32\nconstexpr int REPEAT = 32;"))
    command = ("tune", tmp_path / "kernel.py", "--problem", "sines", "--suite", suite, *SHORT, "--json")
    process = program.start(*command)
    everything(process, program, 1)
    kill(process)
    assert program.left_after() == {}
    before = sources(program)
    *trials, whole = map(json.loads, program.run(*command).stdout.splitlines())
    assert sum(trial["kept"] for trial in trials) == sum(kind == "tune" for kind, _ in before) >= 1
    assert whole["best"]["parameters"] == {"REPEAT": 1}
    once = sources(program)
    assert len(once) == 4 and set(once.values()) == {1} and before <= once
    again = program.run(*command).stdout.splitlines()
    assert json.loads(again[-1]) == {**whole, **kept(whole)} and sources(program) == once


@pytest.mark.slow
def test_two_at_once_verify_nothing_twice(program: Program, suite: Path, tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text(kernel("// tune: REPEAT = 1 | 2\nconstexpr int REPEAT = 2;"))
    command = ("tune", tmp_path / "kernel.py", "--problem", "sines", "--suite", suite, *SHORT, "--json")
    both = [program.start(*command) for _ in range(2)]
    said = [process.communicate(timeout=240) for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    first, second = sorted(said, key=lambda one: one[1])
    assert first[1] == "" and "another command tunes the same" in second[1]
    found = [[json.loads(line)["attempt"] for line in out.splitlines()[:-1]] for out, _ in said]
    assert found[0] == found[1] and set(sources(program).values()) == {1}


@pytest.mark.ci
def test_interrupted_it_says_how_to_go_on(program: Program, suite: Path, tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text(kernel("// tune: REPEAT = 1 | 2\nconstexpr int REPEAT = 2;"))
    command = ("tune", tmp_path / "kernel.py", "--problem", "sines", "--suite", suite, *SHORT)
    process = program.start(*command)
    everything(process, program, 1)
    process.send_signal(signal.SIGINT)
    said, errors = process.communicate(timeout=60)
    assert process.returncode == 130 and "run the same command again to continue" in said
    assert errors == "" and program.left_after() == {}
    assert "tune of run 1" in (told := program.run("runs", "status").stdout) and "interrupted" in told
    (batch,) = json.loads(program.run("runs", "status", "--json").stdout)["batches"]
    assert batch["config"]["tune"]["seed"] == 0 and batch["progress"]["trials"] >= 1


def kept(whole: dict[str, Any]) -> dict[str, Any]:
    return {name: {**whole[name], "kept": True} for name in ("original", "best")}


@pytest.mark.slow
def test_killed_at_ten_moments_it_chooses_as_if_it_had_not_been(
    program: Program, suite: Path, tmp_path: Path
) -> None:
    """With Optuna: 12 of 60 combinations. The stored results and the seed lead to the same choices."""
    declared = (
        "// tune: REPEAT = 1 | 2 | 3 | 4 | 5 | 6\n// tune: SPARE = 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10\n"
    )
    before = f"{declared}constexpr int REPEAT = 6;\nconstexpr int SPARE = 1;"
    (tmp_path / "kernel.py").write_text(kernel(before))
    command = ("tune", tmp_path / "kernel.py", "--problem", "sines", "--suite", suite, *SHORT)
    command = (*command, "--trials", "12", "--seed", "3", "--json")
    for number in range(10):
        process = program.start(*command)
        everything(process, program, number + 1)
        (kill if number % 2 else kill_tree)(process)
        assert program.left_after() == {}
    *trials, _ = map(json.loads, program.run(*command).stdout.splitlines())
    assert len(trials) == 12 and set(sources(program).values()) == {1}
    *again, _ = map(json.loads, program.run(*command).stdout.splitlines())
    assert [t["parameters"] for t in again] == [t["parameters"] for t in trials]
    assert [t["attempt"] for t in again] == [t["attempt"] for t in trials]
    tried = [a for a in program.attempts() if a.run.kind == "tune"]
    assert len(tried) == 12, "a killed tuning chose otherwise than the one that went on"


@pytest.mark.ci
def test_a_stored_attempt_is_where_it_starts_from(program: Program, suite: Path, tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text(kernel("constexpr int REPEAT = 2;"))
    quick = ("--no-measure", "--trials", "1", "--backend", "cpp")
    program.run("verify", tmp_path / "kernel.py", "--problem", "sines", "--suite", suite, *quick)
    budget = ("--trials", 3, "--seconds-budget", 0.001)
    said = program.run("tune", "--attempt", 1, *budget, *SHORT[2:]).stdout
    assert "1 parameter found" in said and "Optuna" in said and "1 trial;" in said
    assert "the original is kept: no trial was faster" in said
    assert [attempt.parent_id for attempt in program.attempts()] == [None, 1, 1]


@pytest.mark.ci
def test_a_kernel_that_is_not_correct_is_refused(program: Program, suite: Path, tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text(material.candidate("off", "value += REPEAT;", "#define REPEAT 2"))
    command = ("tune", tmp_path / "wrong.py", "--problem", "sines", "--suite", suite, *SHORT)
    done = program.run(*command, code=1)
    assert "ended as wrong_output" in done.stderr and "starts from a correct kernel" in done.stderr
    assert [attempt.status for attempt in program.attempts()] == [Status.WRONG_OUTPUT]


def test_what_cannot_be_tuned_is_said_before_anything_runs(
    program: Program, suite: Path, tmp_path: Path
) -> None:
    (tmp_path / "plain.py").write_text(material.right())
    (tmp_path / "prose.md").write_text("no code")
    many = "".join(f"// tune: A{i} = 1 | 2 | 3\n#define A{i} 1\n" for i in range(4))
    (tmp_path / "many.py").write_text(kernel(many))
    given = ("--problem", "sines", "--suite", suite, "--backend", "cpp")

    def said(*arguments: object) -> str:
        return program.run("tune", *arguments, code=2).stderr

    assert "no parameter was found" in said(tmp_path / "plain.py", *given)
    assert "holds no program" in said(tmp_path / "prose.md", *given)
    assert "give --problem" in said(tmp_path / "plain.py")
    assert "give a file and --problem, or --attempt" in said()
    assert "no directory" in said(tmp_path / "many.py", *given, "--output", tmp_path / "none" / "best.py")
    (tmp_path / "optuna.py").write_text("raise ImportError\n")
    program.extra = {"PYTHONPATH": f"{tmp_path}:{program.environment['PYTHONPATH']}"}
    missing = said(tmp_path / "many.py", *given)
    assert "pip install" in missing and "[tune]" in missing
    assert program.attempts() == []
