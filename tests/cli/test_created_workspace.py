"""A command that writes creates its workspace and says so; one that only reads says what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli import material
from tests.cli.program import Program


@pytest.fixture
def prose(tmp_path: Path, suite: Path) -> tuple[object, ...]:
    folder = tmp_path / "programs" / "level1"
    folder.mkdir(parents=True)
    (folder / "relu.md").write_text("no code")
    return ("--suite", suite, "--backend", "cpp")


def test_a_command_that_writes_creates_it_and_says_so_once(
    program: Program, prose: tuple[object, ...], tmp_path: Path
) -> None:
    file, new = tmp_path / "programs" / "level1" / "relu.md", tmp_path / "a" / "new" / "workspace"
    command = ("verify", file, "--problem", "relu", *prose, "--workspace", new)
    assert f"created workspace {new}\n" in program.run(*command, code=1).stderr
    assert (new / "db" / "attempts.sqlite").is_file()
    assert "created" not in program.run(*command, code=1).stderr
    assert "level1/1, sample 0" in program.run("show", "1", "--workspace", new).stdout


def test_commands_that_a_batch_names_find_the_workspace(
    program: Program, suite: Path, tmp_path: Path
) -> None:
    file = material.recording(tmp_path / "a.jsonl", {("level1/1", 0, 1): material.answer("no code")})
    command = ("generate", "level1/1", "--suite", suite, "--model", f"replay:{file}", *material.QUICK)
    done = program.run(*command, "--workspace", tmp_path / "a new one", code=0)
    where = f"--workspace '{tmp_path / 'a new one'}'"
    assert f"kernelproof leaderboard {where} · kernelproof show 1 {where}\n" in done.stdout


@pytest.mark.parametrize(
    "command",
    [
        ("generate", "relu", "--model", "replay:none.jsonl"),
        ("import", "programs", "--problem", "relu", "--no-verify"),
        ("service", "callers", "add", "trainer"),
    ],
    ids=lambda command: command[0],
)
def test_others_that_write(
    program: Program, prose: tuple[object, ...], tmp_path: Path, command: tuple[str, ...]
) -> None:
    (tmp_path / "none.jsonl").write_text("")
    new, options = tmp_path / "new", () if command[0] == "service" else prose
    environment = program.environment | {"KERNELPROOF_WORKSPACE": str(new)}
    program.extra = environment
    done = program.start(*command, *options, directory=tmp_path)
    errors = done.communicate(timeout=120)[1]
    assert f"created workspace {new}\n" in errors, errors
    assert new.is_dir()


@pytest.mark.parametrize("command", ["leaderboard", "show 1", "doctor", "runs status", "tune --attempt 1"])
def test_a_command_that_reads_says_what_creates_it(program: Program, tmp_path: Path, command: str) -> None:
    done = program.run(*command.split(), "--workspace", tmp_path / "typo", code=2)
    assert f"workspace {tmp_path / 'typo'} does not exist; generate, verify, import and tune" in done.stderr
    assert not (tmp_path / "typo").exists()


def test_what_stores_nothing_creates_nothing(
    program: Program, prose: tuple[object, ...], tmp_path: Path
) -> None:
    new, file = tmp_path / "new", tmp_path / "programs" / "level1" / "relu.md"
    program.run("verify", file, "--problem", "relu", *prose, "--no-store", "--workspace", new, code=1)
    program.run("generate", "relu", "--model", "replay:demo", *prose, "--dry-run", "--workspace", new, code=0)
    program.run("verify", tmp_path / "none.py", "--problem", "relu", *prose, "--workspace", new, code=2)
    assert not new.exists()


def test_a_file_is_no_workspace(program: Program, prose: tuple[object, ...], tmp_path: Path) -> None:
    file = tmp_path / "programs" / "level1" / "relu.md"
    done = program.run("verify", file, "--problem", "relu", *prose, "--workspace", file, code=2)
    assert f"workspace {file} is not a directory" in done.stderr
    done = program.run("verify", file, "--problem", "relu", *prose, "--workspace", file / "new", code=3)
    assert "cannot be written: Not a directory" in done.stderr
