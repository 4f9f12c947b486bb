"""Upgrade makes a backup first; vacuum gives space back, and does not disturb others."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from kernelproof.db.connection import HEAD
from kernelproof.db.leases import new_owner
from kernelproof.db.maintenance import plan_upgrade, upgrade_database, vacuum
from kernelproof.db.store import Store, open_store
from kernelproof.errors import StoreError, UsageError
from tests.db.soundness import sound


def dump(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return list(connection.iterdump())


def test_an_old_database_is_upgraded_after_a_backup(old: Path) -> None:
    before = dump(old)
    planned = plan_upgrade(old)
    assert planned.found == "0001_first_tables" and planned.newest == HEAD
    assert planned.steps[-1].startswith(f"{HEAD}: ") and len(planned.steps) == int(HEAD[:4]) - 1
    assert dump(old) == before and not planned.backup.exists()  # planning did nothing
    upgrade_database(old, planned)
    assert planned.backup.name == f"old-{planned.found}.sqlite" and dump(planned.backup) == before
    assert plan_upgrade(old).steps == ()
    sound(old)


def test_no_upgrade_without_the_backup(old: Path, tmp_path: Path) -> None:
    before = dump(old)
    taken = tmp_path / "taken"
    taken.touch()
    with pytest.raises(UsageError, match="overwrites nothing"):
        upgrade_database(old, plan_upgrade(old, taken))
    assert dump(old) == before


def test_the_newest_schema_needs_nothing(store: Store) -> None:
    planned = plan_upgrade(store.path)
    assert planned.steps == ()
    upgrade_database(store.path, planned)
    assert not planned.backup.exists()


@pytest.fixture
def wasteful(store: Store) -> Path:
    """A database with a megabyte of free space."""
    with closing(sqlite3.connect(store.path)) as connection, connection:
        connection.execute("CREATE TABLE waste AS SELECT randomblob(1000000) AS x")
        connection.execute("DROP TABLE waste")
    return store.path


def test_vacuum_gives_space_back_and_nothing_else_changes(wasteful: Path) -> None:
    before = sorted(dump(wasteful))  # the indices are made in another order
    done = vacuum(wasteful)
    assert done.before > 1_000_000 > done.after == wasteful.stat().st_size
    assert sorted(dump(wasteful)) == before


def test_vacuum_refuses_while_another_process_writes(wasteful: Path) -> None:
    hold = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None);"
        "c.execute('BEGIN IMMEDIATE'); print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", hold, str(wasteful)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        with pytest.raises(StoreError, match="another process is writing"):
            vacuum(wasteful)
        holder.communicate("")
    vacuum(wasteful)


def test_vacuum_refuses_while_a_batch_is_at_work(wasteful: Path) -> None:
    with open_store(wasteful, create=False) as store:
        owner = new_owner()
        assert store.leases.take(owner, "attempt:1")
        with pytest.raises(StoreError, match="another process is writing"):
            vacuum(wasteful)
        with closing(sqlite3.connect(wasteful)) as connection, connection:
            connection.execute("UPDATE leases SET renewed = ?", (time.time() - 600,))
    vacuum(wasteful)


def test_a_workspace_without_a_database(tmp_path: Path) -> None:
    for deed in (plan_upgrade, vacuum):
        with pytest.raises(UsageError, match="no attempts are stored"):
            deed(tmp_path / "attempts.sqlite")
    assert list(tmp_path.iterdir()) == []
