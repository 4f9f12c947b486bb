"""The walks of CONTRIBUTING.md, done: their provider, strategy and backend, as other packages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kernelproof.types import Status
from tests.cli import material
from tests.cli.material import answer, fenced
from tests.cli.program import ROOT, Program
from tests.plugins import install

QUICK = ("--backend", "cpp", "--no-measure", "--trials", "1")
PAGE = (ROOT / "CONTRIBUTING.md").read_text()


def block(holding: str) -> str:
    """The page's one block of Python that holds these words."""
    (found,) = [code for code in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if holding in code]
    return str(found)


@pytest.fixture
def extended(program: Program, tmp_path: Path) -> Program:
    """The program with three packages installed beside it."""
    folder = tmp_path / "packages"
    points = {"program": "walk_provider:ProgramProvider"}
    install(folder, "walk_provider", block('@provider("program")'), providers=points)
    install(folder, "walk_strategy", block('@strategy("fork")'), strategies={"fork": "walk_strategy:Fork"})
    install(folder, "walk_backend", block('name="serial"'), backends={"serial": "walk_backend:BACKEND"})
    program.extra = {"PYTHONPATH": f"{ROOT}/src:{folder}"}
    return program


@pytest.mark.ci
def test_the_provider_of_the_walk(extended: Program, suite: Path, tmp_path: Path) -> None:
    (tmp_path / "answer.md").write_text(fenced(material.right()))
    command = ("generate", "level1/1", "--suite", suite, *QUICK, "--record", tmp_path / "recorded.jsonl")
    model = f"program:cat {tmp_path / 'answer.md'}"
    extended.run(*command, "--model", model)
    (attempt,) = extended.attempts()
    assert attempt.status is Status.CORRECT and attempt.source == material.right()
    assert attempt.run.model == model
    extended.run(*command, "--model", "program:false", code=3)
    error = extended.attempts()[1].responses[0].error
    assert error is not None and error.startswith("program:false ended with exit code 1")
    done = extended.run(*command, "--model", "program:no-such-program", code=3)
    assert done.stderr.startswith("kernelproof: program:no-such-program cannot be started: ")
    done = extended.run(*command, "--model", "program:cat", "--temperature", 1, code=2)
    assert "have no effect on it" in done.stderr


@pytest.mark.ci
def test_the_strategy_of_the_walk_repairs_the_better_answer(
    extended: Program, suite: Path, tmp_path: Path
) -> None:
    answers: material.Answers = {
        ("level1/1", 0, 2): answer(fenced(material.uncompilable())),
        ("level1/1", 0, 3): answer(fenced(material.right())),
        ("level1/1", 0, 4): answer("never asked for"),
    }
    file = tmp_path / "fork.jsonl"
    material.recording(file, answers)
    command = ("generate", "level1/1", "--suite", suite, "--model", f"replay:{file}", *QUICK)
    command += ("--turns", 6, "--strategy", "fork")
    # The first question has no answer yet: the sample stops after the first round.
    extended.run(*command, code=3)
    assert extended.statuses() == {
        ("level1/1", 0, 1): Status.PROVIDER_ERROR,
        ("level1/1", 0, 2): Status.BUILD_ERROR,
    }
    material.recording(file, {**answers, ("level1/1", 0, 1): answer(fenced(material.wrong()))})
    extended.run(*command)
    attempts = {attempt.key.turn: attempt for attempt in extended.attempts()}
    assert {turn: attempt.status for turn, attempt in attempts.items()} == {
        1: Status.WRONG_OUTPUT,
        2: Status.BUILD_ERROR,
        3: Status.CORRECT,
    }
    assert [attempts[turn].parent_id for turn in (1, 2, 3)] == [None, None, attempts[1].id]
    assert attempts[1].prompt == attempts[2].prompt != attempts[3].prompt
    assert all(len(attempts[turn].verifications) == 1 for turn in attempts)
    assert "fork" in extended.run("show", attempts[3].id).stdout
    extended.run(*command)
    assert {attempt.key.turn: attempt for attempt in extended.attempts()} == attempts


ASTRAY = """
from kernelproof.runs.strategies import Proposal


class Astray:
    def __init__(self, task):
        pass

    def ask(self):
        return (Proposal(parent=5),)

    def tell(self, results):
        pass
"""


@pytest.mark.ci
def test_a_strategy_that_builds_on_nothing_ends_the_run(
    program: Program, suite: Path, tmp_path: Path
) -> None:
    folder = install(tmp_path / "packages", "astray", ASTRAY, strategies={"astray": "astray:Astray"})
    program.extra = {"PYTHONPATH": f"{ROOT}/src:{folder}"}
    command = ("generate", "level1/1", "--suite", suite, "--model", "replay:demo", *QUICK)
    done = program.run(*command, "--strategy", "astray", code=2)
    assert done.stderr == "kernelproof: the run's strategy builds on turn 5, of which it was not told\n"
    assert program.attempts() == []


@pytest.mark.ci
def test_the_backend_of_the_walk(extended: Program, suite: Path, tmp_path: Path) -> None:
    (tmp_path / "right.py").write_text(material.right())
    command = ("verify", tmp_path / "right.py", "--problem", "level1/1", "--suite", suite)
    extended.run(*command, "--backend", "serial", *QUICK[2:])
    (attempt,) = extended.attempts()
    assert attempt.status is Status.CORRECT and attempt.run.verify.backend == "serial"
