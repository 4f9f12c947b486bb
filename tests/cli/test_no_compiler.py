"""Without a compiler a command that needs one ends with exit code 3, and nothing is said of a candidate."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kernelproof.types import Status
from tests.cli import material
from tests.cli.material import QUICK
from tests.cli.program import Program

NONE = {"CXX": "/nowhere/g++"}
SAID = (
    "kernelproof: CXX names no program here (/nowhere/g++): "
    "install one (Debian and Ubuntu: apt install g++) or set CXX.\n"
)


@pytest.fixture
def relu(suite: Path) -> tuple[object, ...]:
    return ("--problem", "relu", "--suite", suite, *QUICK)


def late(source: str) -> str:
    """The same program, whose extension is built by its first call."""
    head, build = source.split("module = load_inline(")
    arguments, rest = build.split("\n", 1)
    call = f"module = load_inline({arguments}\n        y = "
    return head + rest.replace("y = ", call, 1)


def caught(source: str) -> str:
    """The same program, which goes on where its extension cannot be built."""
    tried = source.replace("module = load_inline(", "try:\n    module = load_inline(")
    return tried.replace("\n\n\nclass ModelNew", "\nexcept Exception:\n    module = None\n\n\nclass ModelNew")


@pytest.mark.ci
@pytest.mark.parametrize("change", [pytest.param(late, marks=pytest.mark.slow), caught])
def test_verify_says_what_to_install_and_keeps_nothing(
    program: Program, relu: tuple[object, ...], tmp_path: Path, change: Callable[[str], str]
) -> None:
    file = tmp_path / "right.py"
    file.write_text(change(material.right()))
    program.extra = NONE
    done = program.run("verify", file, *relu, code=3)
    assert (done.stdout, done.stderr) == ("", SAID)
    assert program.attempts() == []
    assert program.left_after() == {} and program.scratch() == []


@pytest.mark.ci
def test_many_keep_what_needed_none(program: Program, relu: tuple[object, ...]) -> None:
    folder = program.workspace / "folder"
    folder.mkdir()
    (folder / "prose.md").write_text("no code")
    program.extra = NONE
    program.run("verify", folder, *relu, code=1)
    (folder / "right.py").write_text(material.right())
    assert program.run("verify", folder, *relu, code=3).stderr.endswith(SAID)
    assert [attempt.status for attempt in program.attempts()] == [Status.NO_CODE]


@pytest.mark.slow
def test_generate_keeps_the_answer_and_the_same_command_goes_on(
    program: Program, suite: Path, tmp_path: Path
) -> None:
    answers = {("level1/1", 0, 1): material.answer(material.fenced(material.right()))}
    recorded = material.recording(tmp_path / "answers.jsonl", answers)
    command = ("generate", "relu", "--model", f"replay:{recorded}", "--suite", suite, *QUICK)
    program.extra = NONE
    assert program.run(*command, code=3).stderr.endswith(SAID)
    (before,) = program.attempts()
    assert before.response is not None
    assert (before.status, before.verifications) == (None, ())
    program.extra = {}
    program.run(*command)
    (after,) = program.attempts()
    assert (after.status, len(after.verifications)) == (Status.CORRECT, 1)
    program.extra = NONE
    assert program.run("reproduce", "1", code=3).stderr == SAID
    assert len(program.attempts()[0].verifications) == 1


@pytest.mark.ci
def test_what_only_one_candidate_wants_does_not_stop_the_others(
    program: Program, relu: tuple[object, ...], tmp_path: Path
) -> None:
    """A C++ candidate that asks for nvcc, where there is none, or none for this GPU."""
    call = 'load_inline("cu", cpp_sources="int f();", cuda_sources="int f() { return 1; }")'
    file = tmp_path / "cuda.py"
    file.write_text(material.right().replace("module = load_inline", f"{call}\nmodule = load_inline"))
    program.extra = {"KERNELPROOF_CUDA_ARCH": "2.0"}
    done = program.run("verify", file, *relu, code=1)
    assert done.stdout.startswith("infrastructure_error · ") and "CUDA toolkit" in done.stdout
    assert [attempt.status for attempt in program.attempts()] == [Status.INFRASTRUCTURE_ERROR]


def test_nvcc_of_cuda_home_is_enough_without_a_gpu(program: Program, suite: Path, tmp_path: Path) -> None:
    nvcc = tmp_path / "toolkit" / "bin" / "nvcc"
    nvcc.parent.mkdir(parents=True)
    nvcc.touch(0o755)
    file = tmp_path / "prose.md"
    file.write_text("no code")
    program.extra = {"CUDA_HOME": str(nvcc.parents[1]), "PATH": "/usr/bin:/bin"}
    done = program.run("verify", file, "--problem", "relu", "--suite", suite, "--backend", "cuda", code=1)
    assert done.stdout.startswith("no_code · ")
