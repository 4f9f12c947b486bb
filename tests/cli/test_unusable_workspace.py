"""A workspace that cannot be used ends a command with exit code 3 and what to do, before any work."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from kernelproof.db.connection import HEAD
from tests.cli import material
from tests.cli.program import PROGRAM, READ_ONLY, Program, mounted


@pytest.fixture
def command(program: Program, suite: Path, tmp_path: Path) -> tuple[object, ...]:
    file = tmp_path / "prose.md"
    file.write_text("no code")
    return ("verify", file, "--problem", "relu", "--suite", suite, "--backend", "cpp")


def database(program: Program) -> Path:
    (program.workspace / "db").mkdir()
    return program.workspace / "db" / "attempts.sqlite"


def test_not_a_database(program: Program, command: tuple[object, ...]) -> None:
    database(program).write_text("this is no database\n" * 500)
    for arguments in (command, ("leaderboard",), ("show", "1"), ("reproduce", "1")):
        done = program.run(*arguments, code=3)
        assert "is not a SQLite database; move it away, or choose another --workspace" in done.stderr


def test_a_newer_schema(program: Program, command: tuple[object, ...]) -> None:
    program.run(*command, code=1)
    path = program.workspace / "db" / "attempts.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999_from_the_future'")
    done = program.run(*command, code=3)
    assert "has schema 9999_from_the_future" in done.stderr and "upgrade kernelproof" in done.stderr


def read_only(program: Program, *arguments: object) -> subprocess.CompletedProcess[str]:
    """A command in a workspace that cannot be written.

    Root is stopped by no permission bit: it gets a read-only mount in a mount namespace of its own.
    """
    root = os.geteuid() == 0
    prefix = mounted(READ_ONLY, program.workspace) if root else []
    places = () if root else (program.workspace / "db", program.workspace)
    folders = [path for path in places if path.is_dir()]
    for folder in folders:
        folder.chmod(0o555)
    done = subprocess.run(
        [*prefix, *PROGRAM, *map(str, arguments)],
        env=program.environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    for folder in reversed(folders):
        folder.chmod(0o755)
    assert "Traceback" not in done.stderr, done.stderr
    return done


def test_a_read_only_workspace(program: Program, command: tuple[object, ...]) -> None:
    done = read_only(program, *command)
    assert done.returncode == 3, done.stderr
    assert done.stderr.startswith("kernelproof: database ") and done.stderr.count("\n") == 1
    assert "Read-only file system" in done.stderr or "Permission denied" in done.stderr


@pytest.mark.slow
def test_what_only_reads_reads_a_read_only_workspace(program: Program, command: tuple[object, ...]) -> None:
    # Names that mean something in a URI.
    program.workspace = program.workspace / "100% of ?mine #1"
    program.workspace.mkdir()
    program.run(*command, code=1)
    for arguments in (("show", "1"), ("show", "--json"), ("leaderboard", "--by", "model")):
        there = read_only(program, *arguments)
        assert (there.returncode, there.stdout) == (0, program.run(*arguments).stdout), there.stderr
    done = read_only(program, "reproduce", "1")
    assert done.returncode == 3
    assert "copy" in done.stderr and "to a writable --workspace" in done.stderr


@pytest.mark.ci
def test_a_read_only_workspace_with_a_log_of_somebody_killed(
    program: Program, command: tuple[object, ...]
) -> None:
    """What is in the log counts, and is not left out for the database's file alone."""
    program.run(*command, code=1)
    path = program.workspace / "db" / "attempts.sqlite"
    code = f"""import os, sqlite3
connection = sqlite3.connect({str(path)!r}, isolation_level=None)
connection.execute("UPDATE attempts SET status = 'truncated'")
os._exit(0)"""
    subprocess.run([sys.executable, "-c", code], check=True)
    log = path.with_name("attempts.sqlite-wal")
    assert log.stat().st_size > 0
    assert '"status": "truncated"' in read_only(program, "show", "1", "--json").stdout
    path.with_name("attempts.sqlite-shm").unlink()
    done = read_only(program, "show", "1")
    assert done.returncode == 3 and "copy that directory to a writable --workspace" in done.stderr
    assert log.stat().st_size > 0


@pytest.mark.ci
def test_a_read_only_workspace_of_another_version(program: Program, command: tuple[object, ...]) -> None:
    program.run(*command, code=1)
    path = program.workspace / "db" / "attempts.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '0001_first_tables'")
    connection.close()
    done = read_only(program, "leaderboard")
    assert done.returncode == 3
    assert f"has schema 0001_first_tables and this kernelproof reads {HEAD}" in done.stderr
    assert "copy it to a writable --workspace" in done.stderr


def test_a_cache_that_cannot_be_written(program: Program, suite: Path, tmp_path: Path) -> None:
    program.cache = tmp_path / "file"
    program.cache.touch()
    file = tmp_path / "right.py"
    file.write_text(material.right())
    done = program.run("verify", file, "--problem", "relu", "--suite", suite, "--backend", "cpp", code=3)
    assert str(program.cache) in done.stderr and "KERNELPROOF_CACHE" in done.stderr
