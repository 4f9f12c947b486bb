"""A workspace that fails while a command works: one line says what to do, and what was answered is stored."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from uuid import uuid4

import pytest

from kernelproof.providers.recording import read_recording
from tests.cli import material
from tests.cli.material import QUICK
from tests.cli.program import PROGRAM, READ_ONLY, Program, mounted
from tests.faultserver import FaultServer, start

SMALL = 'mount -t tmpfs -o size=3m none "$0" && exec "$@"'


@pytest.fixture
def server(program: Program, tmp_path: Path) -> Iterator[FaultServer]:
    """Answers without code of 60 kB, one after the other."""
    program.extra = {"OPENAI_API_KEY": "none"}
    answer = tmp_path / "answer.md"
    answer.write_text("no code " * 8_000)
    with start(delay_s=0.5, answer=answer) as server:
        yield server


@pytest.fixture
def given(tmp_path: Path) -> Path:
    """Programs of 90 kB whose compilation takes some seconds, each."""
    folder = tmp_path / "given" / "relu"
    folder.mkdir(parents=True)
    for number in range(40):
        source = material.slow_to_compile(f"slow{number}_{uuid4().hex}", 1_500_000)  # built by no other test
        (folder / f"{number}.py").write_text(f"{source}# {'y' * 90_000}\n")
    return folder.parent


def command(
    name: str, program: Program, server: FaultServer, suite: Path, given: Path, *, first: bool = True
) -> tuple[object, ...]:
    """A command that works for a while; `runs rejudge` gets something to judge before."""
    taken = (given, "--suite", suite, *QUICK)
    if name == "generate":
        asked = ("--model", "openai:any", "--base-url", server.url, "--samples", 200, "--concurrency", 2)
        return ("generate", "level1/1", "--suite", suite, *QUICK, *asked)
    if name == "import":
        return ("import", *taken)
    if first:
        program.run("import", *taken, "--no-verify")
    return ("runs", "rejudge", "1")


def at_work(name: str, process: subprocess.Popen[str], program: Program, server: FaultServer) -> None:
    """Waits until the command is in the middle of its work."""
    if name == "generate":
        while sum(server.counts()["answered"].values()) < 4:
            assert process.poll() is None, process.communicate()
            time.sleep(0.1)
    else:
        program.wait_for_process("cc1plus", process)


def one_line(process: subprocess.Popen[str]) -> str:
    """What an end with exit code 3 said."""
    _, said = process.communicate(timeout=90)
    assert process.returncode == 3, said
    assert said.startswith("kernelproof: ") and said.count("\n") == 1, said
    return said


@pytest.mark.ci
@pytest.mark.parametrize("name", ["generate", "import"])
def test_a_workspace_that_vanishes(
    program: Program, server: FaultServer, suite: Path, given: Path, tmp_path: Path, name: str
) -> None:
    arguments = command(name, program, server, suite, given)
    process = program.start(*arguments, directory=tmp_path)
    at_work(name, process, program, server)
    shutil.rmtree(program.workspace)
    said = one_line(process)
    assert "was removed, moved or replaced" in said and "run the same command again" in said
    assert not program.workspace.exists(), "it is not made anew, with half of what was in it"
    assert program.left_after() == {}


@pytest.mark.ci
def test_a_workspace_that_is_moved_keeps_what_was_answered(
    program: Program, server: FaultServer, suite: Path, given: Path, tmp_path: Path
) -> None:
    arguments = command("generate", program, server, suite, given)
    process = program.start(*arguments)
    at_work("generate", process, program, server)
    program.workspace.rename(tmp_path / "elsewhere")
    one_line(process)
    (tmp_path / "elsewhere").rename(program.workspace)
    answered = {attempt.key.sample for attempt in program.attempts() if attempt.responses}
    before = server.counts()
    assert len(answered) >= sum(before["answered"].values()) - 1, "all but one that came after the end"
    program.run(*arguments[:-4], "--samples", 6, "--concurrency", 2)
    again = server.counts()["requests"] - before["requests"]
    assert again == len(set(range(6)) - answered), "what is stored is not asked again"


@contextmanager
def locked(program: Program) -> Iterator[None]:
    """Another process is writing."""
    path = program.workspace / "db" / "attempts.sqlite"
    with closing(sqlite3.connect(path, isolation_level=None, timeout=30)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        yield
        connection.execute("ROLLBACK")


@pytest.mark.ci
@pytest.mark.parametrize("name", ["generate", "rejudge"])
def test_a_locked_database_is_waited_for_with_one_line(
    program: Program, server: FaultServer, suite: Path, given: Path, name: str
) -> None:
    for file in list((given / "relu").iterdir())[3:]:
        file.unlink()
    arguments = command(name, program, server, suite, given)
    if name == "generate":
        arguments = (*arguments[:-4], "--samples", 12, "--concurrency", 2)
    process = program.start(*arguments)
    at_work(name, process, program, server)
    with locked(program):
        assert process.stderr is not None
        said = process.stderr.readline()
        assert process.poll() is None
    assert "is locked by another process; waiting for it, 120 s at most" in said
    _, more = process.communicate(timeout=120)
    assert (process.returncode, more) == (0, "")
    assert all(attempt.status is not None for attempt in program.attempts())


@pytest.mark.ci
@pytest.mark.parametrize("name", ["generate", "import"])
def test_a_disk_that_gets_full(
    program: Program, server: FaultServer, suite: Path, given: Path, tmp_path: Path, name: str
) -> None:
    """The copy of the small disk, made after the end, has all that was answered."""
    kept = tmp_path / "kept"
    line = 'code=0; "$@" || code=$?; cp -r "$0" "$KEPT"; exit $code'
    script = SMALL.replace('exec "$@"', f"{{ {line}; }}")
    prefix = mounted(SMALL, program.workspace)[:4]
    done = subprocess.run(
        [
            *prefix,
            script,
            str(program.workspace),
            *PROGRAM,
            *map(str, command(name, program, server, suite, given)),
        ],
        env={**program.environment, "KEPT": str(kept)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 3 and done.stderr.count("\n") == 1, done.stderr
    assert "the disk is full" in done.stderr and "run the same command again" in done.stderr
    assert program.left_after() == {}
    program.workspace = kept
    if name == "generate":
        answered = sum(server.counts()["answered"].values())
        stored = sum(bool(attempt.responses) for attempt in program.attempts())
        rescued = sum(
            len(read_recording(place))
            for place in program.temporary.glob("answers-of-kernelproof-*/answers.jsonl")
        )
        assert stored > 4
        assert answered - 1 <= stored + rescued <= answered, "all but one that was still coming"


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["generate", "import", "rejudge"])
def test_a_read_only_workspace(
    program: Program, server: FaultServer, suite: Path, given: Path, name: str
) -> None:
    arguments = command(name, program, server, suite, given)
    done = subprocess.run(
        [*mounted(READ_ONLY, program.workspace), *PROGRAM, *map(str, arguments)],
        env=program.environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 3 and done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith("kernelproof: database ")
    assert server.counts()["requests"] == 0
