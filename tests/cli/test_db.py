"""`kernelproof db` as a person runs it: what it says, and its exit codes."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from tests.cli.program import Program


def edit(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)


def test_check_names_an_edit_and_knows_an_anchor(stored: Program) -> None:
    lines = stored.run("db", "check").stdout.splitlines()
    assert lines[0].startswith("nothing wrong; ")
    anchor = next(line for line in lines if line.startswith("anchor: ")).removeprefix("anchor: ")
    assert "the anchor is link" in stored.run("db", "check", "--anchor", anchor).stdout
    database = stored.workspace / "db" / "attempts.sqlite"
    edit(database, "UPDATE attempts SET status = 'correct'")
    done = stored.run("db", "check", code=1)
    assert done.stdout.startswith("attempt 1: it was edited after it was stored (link ")
    told = json.loads(stored.run("db", "check", "--json", code=1).stdout)
    assert told["troubles"][0]["where"] == "attempt 1" and told["anchor"] == anchor
    assert "no link has this hash" in stored.run("db", "check", "--anchor", "0" * 64, code=1).stdout
    assert "64 hex digits" in stored.run("db", "check", "--anchor", "0x1", code=2).stderr


def test_backup_vacuum_and_upgrade(stored: Program) -> None:
    copy = stored.workspace / "copy" / "db" / "attempts.sqlite"
    assert stored.run("db", "backup", copy).stdout.startswith(f"{copy}: ")
    assert "overwrites nothing" in stored.run("db", "backup", copy, code=2).stderr
    assert "bytes before" in stored.run("db", "vacuum").stdout
    assert "nothing to do" in stored.run("db", "upgrade").stdout
    both = [
        stored.run("show", "1", "--json", "--workspace", w).stdout for w in (".", stored.workspace / "copy")
    ]
    assert both[0] == both[1]


def test_a_workspace_without_a_database(program: Program) -> None:
    for command in (("check",), ("backup", "copy.sqlite"), ("vacuum",), ("upgrade",)):
        assert "no attempts are stored" in program.run("db", *command, code=2).stderr
    assert list(program.workspace.iterdir()) == []
