"""Completion in a shell: what is offered, from where, and that nothing heavy is imported for it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from kernelproof.db.attempts import Finished
from kernelproof.db.store import open_store
from kernelproof.problems import open_suite
from kernelproof.runs.candidates import candidate_from_text
from kernelproof.types import RunSettings, Status
from tests.cli import material
from tests.cli.program import Program

HEAVY = {"torch", "sqlalchemy", "alembic", "openai", "pydantic", "anyio", "numpy", "rich"}


def offered(program: Program, *words: str) -> list[str]:
    """What bash would offer after these words, the last of which is not complete."""
    line = {"COMP_WORDS": " ".join(("kernelproof", *words)), "COMP_CWORD": str(len(words))}
    asked = {**program.extra, **line, "_KERNELPROOF_COMPLETE": "complete_bash"}
    done = replace(program, extra=asked).run()
    assert done.stderr == ""
    return done.stdout.split()


def filled(program: Program, *runs: RunSettings) -> None:
    """A store with an attempt in each run."""
    file = program.workspace / "relu.py"
    file.write_text(material.RELU)
    problem = open_suite(file).problems()[0]
    given = candidate_from_text("right.py", material.right(), problem)
    with open_store(program.workspace / "db" / "attempts.sqlite") as store:
        for run in runs:
            store.add_finished(Finished(run, problem, given.response, given.extraction, None, Status.NO_CODE))


def test_commands_options_and_words(program: Program) -> None:
    assert offered(program, "ver") == ["verify"]
    assert offered(program, "problems", "s") == ["show"]
    assert offered(program, "verify", "x.py", "--ba") == ["--backend", "--baseline"]
    assert offered(program, "verify", "x.py", "--rigor", "") == ["quick", "standard", "publish"]
    assert offered(program, "verify", "x.py", "--backend", "c") == ["cuda", "cpp"]


@pytest.mark.ci
def test_packaged_problems(program: Program) -> None:
    suite = open_suite()
    for words in (
        ("generate",),
        ("problems", "prompt"),
        ("problems", "show"),
        ("verify", "x.py", "--problem"),
    ):
        found = offered(program, *words, "")
        assert found[: len(suite.ids)] == suite.ids
        assert {"level1", "softmax"} <= set(found)


@pytest.mark.ci
def test_problems_of_a_suite(program: Program, tmp_path: Path) -> None:
    levels = material.problems(tmp_path / "KernelBench").parent
    (tmp_path / "KernelBench" / "level1" / "10_last.py").write_text(material.RELU)
    alone = tmp_path / "alone"
    alone.mkdir()
    for name in ("3_three.py", "mine.py", "_hidden.py"):
        (alone / name).write_text(material.RELU)
    for place in (levels, alone):
        found = offered(program, "problems", "show", "--suite", str(place), "")
        assert found[: len(open_suite(place).ids)] == open_suite(place).ids
    assert offered(program, "problems", "prompt", "--suite", "gone", "") == []


@pytest.mark.ci
def test_runs_models_and_attempts_of_the_store(program: Program, tmp_path: Path) -> None:
    hostile = "x$(touch here)\x1b"
    filled(
        program,
        RunSettings(name="night", model="openai:old"),
        RunSettings(name="day", model="openai:new"),
        RunSettings(name=hostile, model=hostile),
    )
    for words in (
        ("runs", "rejudge"),
        ("runs", "status"),
        ("generate", "all", "--like"),
        ("leaderboard", "--run"),
    ):
        assert offered(program, *words, "") == ["day", "night"]
        assert offered(program, *words, "n") == ["night"]
    assert offered(program, "generate", "all", "--model", "openai:o") == ["openai:old"]
    for command in (("show",), ("reproduce",), ("runs", "retract")):
        assert offered(program, *command, "") == ["last", "3", "2", "1"]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert offered(program, "show", "--workspace", str(elsewhere), "") == ["last"]
    assert list(elsewhere.iterdir()) == []


def test_a_database_that_cannot_be_read_offers_nothing(program: Program) -> None:
    (program.workspace / "db").mkdir()
    (program.workspace / "db" / "attempts.sqlite").write_bytes(b"no database at all" * 100)
    assert offered(program, "runs", "status", "") == []


@pytest.mark.few(1)
@pytest.mark.parametrize("words", [("generate", ""), ("runs", "status", ""), ("ver",)])
def test_completion_imports_nothing_heavy(program: Program, words: tuple[str, ...]) -> None:
    filled(program, RunSettings(name="night", model="openai:m"))
    code = (
        "import sys\nfrom kernelproof.cli.app import main\n"
        "try: main()\nfinally: print(*{name.partition('.')[0] for name in sys.modules}, file=sys.stderr)"
    )
    line = {"COMP_WORDS": " ".join(("kernelproof", *words)), "COMP_CWORD": str(len(words))}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**program.environment, **line, "_KERNELPROOF_COMPLETE": "complete_bash"},
        cwd=program.workspace,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout and HEAVY & set(done.stderr.split()) == set()


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes(program: Program, tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    command = folder / "kernelproof"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m kernelproof "$@"\n')
    command.chmod(0o755)
    script = (
        'eval "$(kernelproof --show-completion)"; COMP_WORDS=(kernelproof problems sh); COMP_CWORD=2; '
        '_kernelproof_completion kernelproof; echo "${COMPREPLY[@]}"'
    )
    environment = {**program.environment, "PATH": f"{folder}:{program.environment['PATH']}"}
    done = subprocess.run(
        ["bash", "--norc", "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("show\n", "")
