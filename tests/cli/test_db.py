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


def test_check_names_a_trigger_that_is_gone(stored: Program) -> None:
    assert stored.run("db", "check").stdout == "nothing wrong\n"
    assert json.loads(stored.run("db", "check", "--json").stdout) == {"troubles": []}
    edit(stored.workspace / "db" / "attempts.sqlite", "DROP TRIGGER checks_no_update")
    what = "gone: rows of checks could be changed"
    done = stored.run("db", "check", code=1)
    assert done.stdout == f"trigger checks_no_update: {what}\n1 trouble\n"
    told = json.loads(stored.run("db", "check", "--json", code=1).stdout)
    assert told == {"troubles": [{"where": "trigger checks_no_update", "what": what}]}


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
