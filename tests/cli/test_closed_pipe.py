"""A reader that goes away, as `head -1` does, ends every command soon, and what came is stored."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest
from typer.main import get_command

from kernelproof.cli.app import command_line
from tests.cli import material
from tests.cli.material import QUICK, fenced
from tests.cli.program import Program
from tests.faultserver import start

CLOSED = 141
SHORT: list[tuple[str, ...]] = [
    ("--help",),
    ("--version",),
    ("generate", "relu", "--model", "replay:demo", "--dry-run"),
    ("leaderboard",),
    ("show", "1"),
    ("runs", "status"),
    ("runs", "rejudge", "1"),
    ("runs", "rejudge", "1", "--json"),
    ("runs", "retract", "1", "--reason", "none"),
    ("runs", "tag", "1", "mine"),
    ("problems", "list"),
    ("problems", "show", "relu"),
    ("problems", "check", "relu"),
    ("problems", "prompt", "relu"),
    ("cache", "info"),
    ("service", "gpus"),
    ("service", "callers", "list"),
    ("cache", "prune", "--artefacts", ".", "--older-than", "30"),
    ("doctor", "--no-noise"),
    ("doctor", "--no-noise", "--json"),
]
"""Commands that end by themselves, in a workspace with an attempt."""
WITH_SUITE = ("generate", "problems")


def check_unread(program: Program, *arguments: object) -> None:
    """A command whose output nobody reads from the beginning ends as such, in one line at most."""
    reading, writing = os.pipe()
    os.close(reading)
    code, said = program.into(writing, *arguments)
    assert code == CLOSED, said
    assert "Traceback" not in said and "Exception" not in said and said.count("\n") <= 1
    assert program.left_after() == {}


@pytest.mark.few(10)
@pytest.mark.parametrize("command", SHORT, ids=" ".join)
def test_nobody_reads(stored: Program, suite: Path, command: tuple[str, ...]) -> None:
    check_unread(stored, *command, *(("--suite", suite) if command[0] in WITH_SUITE else ()))


@pytest.mark.ci
@pytest.mark.parametrize("form", [(), ("--json",)], ids=["plain", "json"])
def test_nobody_reads_what_becomes_of_files(
    program: Program, suite: Path, tmp_path: Path, form: tuple[str, ...]
) -> None:
    folder = tmp_path / "given" / "relu"
    folder.mkdir(parents=True)
    (folder / "prose.md").write_text("no code")
    (folder / "wrong.py").write_text(material.candidate("off", "value += REPEAT;", "#define REPEAT 2"))
    one = ("verify", folder / "prose.md", "--problem", "relu")
    for command in (("verify", folder.parent), one, ("import", folder.parent)):
        check_unread(program, *command, "--suite", suite, *QUICK, *form)
    assert program.attempts()
    tuned = ("tune", folder / "wrong.py", "--problem", "relu", "--suite", suite, "--backend", "cpp")
    check_unread(program, *tuned, *form)
    both = ("compare", folder / "prose.md", folder / "wrong.py", "--problem", "relu", "--suite", suite)
    check_unread(program, *both, "--backend", "cpp", *form)


def test_every_command_is_tried() -> None:
    tried = {" ".join(command) for command in SHORT}
    untried = {"reproduce", "report", "bundle", "export", "runs audit"}  # they print once, when all is done
    untried |= {"serve", "service api", "service workers"}  # they work until they are stopped
    untried |= {"verify", "compare", "import", "tune"}  # above
    commands = get_command(command_line()).commands  # type: ignore[attr-defined]
    groups = {name: inner.commands for name, inner in commands.items() if hasattr(inner, "commands")}
    every = set(commands) - set(groups)
    every |= {f"{name} {word}" for name in ("runs", "service") for word in groups[name]}
    assert {name for name in every if not any(line.startswith(name) for line in tried)} == untried


def check_closing_ends(process: subprocess.Popen[str], program: Program) -> None:
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    assert process.wait(timeout=25) == CLOSED
    said = process.stderr.read()
    assert said.startswith("kernelproof: nobody reads the output any more") and said.count("\n") == 1
    assert program.left_after() == {}


@pytest.mark.ci
@pytest.mark.parametrize("form", [(), ("--json",)], ids=["plain", "json"])
def test_a_reader_of_a_long_command_goes_away(
    program: Program, suite: Path, tmp_path: Path, form: tuple[str, ...]
) -> None:
    """Answers that come are stored, and those in flight are not waited for, nor compilers."""
    program.extra = {"OPENAI_API_KEY": "none"}
    source = tmp_path / "answer.md"
    source.write_text(fenced(material.slow_to_compile("slow", 30_000_000)))
    with start(delay_s=30.0, pieces=200, answer=source) as server:
        usual = ("generate", "level1/1", "--suite", suite, "--model", "openai:any", "--base-url", server.url)
        process = program.start(*usual, *QUICK, "--samples", 300, "--concurrency", 100, *form)
        assert process.stdout is not None
        if form:
            process.stdout.readline()
        else:
            while server.counts()["in_flight"] < 50:
                time.sleep(0.1)
        check_closing_ends(process, program)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["runs rejudge", "import", "verify"])
def test_a_reader_of_a_compilation_goes_away(
    program: Program, suite: Path, tmp_path: Path, command: str
) -> None:
    """Nothing is printed while compilers work, and still it is noticed that nobody reads."""
    folder = tmp_path / "given"
    (folder / "relu").mkdir(parents=True)
    for number in range(3):
        (folder / "relu" / f"{number}.py").write_text(
            material.slow_to_compile(f"s{number}_{command}", 60_000_000)
        )
    given = (folder, "--suite", suite, *QUICK)
    judged_before = command == "runs rejudge"
    if judged_before:
        program.run("import", *given, "--no-verify")
    process = program.start(*command.split(), *(("1",) if judged_before else given))
    program.wait_for_process("cc1plus", process)
    check_closing_ends(process, program)
