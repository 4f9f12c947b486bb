"""A backup is the whole database of one moment under its name, or there is no file of that name."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from kernelproof.db.maintenance import backup
from kernelproof.db.store import Store, open_store
from kernelproof.errors import StoreError, UsageError
from tests.db import samples
from tests.db.soundness import sound
from tests.db.test_processes import WRITE_FINISHED, writer

BACKUP = """
import sqlite3, sys, time
from pathlib import Path
from kernelproof.db import maintenance
copy = maintenance._sync
def slowly(path):  # the moment before the copy gets its name
    print("copied", flush=True)
    time.sleep(60)
maintenance._sync = slowly
maintenance.backup(Path(sys.argv[1]), Path(sys.argv[2]))
"""


def attempts(path: Path) -> int:
    """How many attempts a copy holds, which must have nothing wrong."""
    sound(path)
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("SELECT COUNT(*) FROM attempts").fetchone()[0])


def test_backups_while_a_process_writes(store: Store, tmp_path: Path) -> None:
    process = writer(store.path, 10_000, WRITE_FINISHED)
    assert process.stdout is not None
    process.stdout.readline()
    try:
        counts = []
        for number in range(4):
            size = backup(store.path, tmp_path / "copies" / f"{number}.sqlite")
            counts.append(attempts(tmp_path / "copies" / f"{number}.sqlite"))
            assert size > 0 and process.poll() is None
        assert counts == sorted(counts) and counts[0] >= 1
    finally:
        process.kill()
        process.communicate()
    copied = sorted(file.name for file in (tmp_path / "copies").iterdir())
    assert [name for name in copied if not name.endswith(("-wal", "-shm"))] == [
        f"{number}.sqlite" for number in range(4)
    ]
    with open_store(tmp_path / "copies" / "3.sqlite", create=False) as copy:  # it is a database to go on with
        samples.judge(copy, samples.problem(9), samples.settings(), speedup=2.0)
    assert attempts(tmp_path / "copies" / "3.sqlite") == counts[-1] + 1


def test_a_killed_backup_leaves_no_file_of_that_name_and_the_next_one_cleans_up(
    store: Store, tmp_path: Path
) -> None:
    target = tmp_path / "copies" / "copy.sqlite"
    command = [sys.executable, "-c", BACKUP, str(store.path), str(target)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "copied\n"
        process.send_signal(signal.SIGKILL)
    assert not target.exists()
    (left,) = target.parent.iterdir()
    assert left.name.startswith(".copy.sqlite.") and left.name.endswith(".partial")
    deadline = time.monotonic() + 10
    while backup(store.path, target) and left.exists() and time.monotonic() < deadline:
        target.unlink()
    assert list(target.parent.iterdir()) == [target]


def test_nothing_is_overwritten(store: Store, tmp_path: Path) -> None:
    target = tmp_path / "notes.txt"
    target.write_text("mine")
    with pytest.raises(UsageError, match="overwrites nothing"):
        backup(store.path, target)
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    with pytest.raises(UsageError, match="overwrites nothing"):
        backup(store.path, tmp_path / "dangling")
    with pytest.raises(UsageError, match="is a directory"):
        backup(store.path, tmp_path)
    assert target.read_text() == "mine"


def test_what_cannot_be_copied_is_told(store: Store, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no attempts are stored"):
        backup(tmp_path / "missing.sqlite", tmp_path / "copy.sqlite")
    (tmp_path / "other.sqlite").write_text("this is no database, but a longer text")
    with pytest.raises(StoreError, match="not a SQLite database"):
        backup(tmp_path / "other.sqlite", tmp_path / "copy.sqlite")
    with pytest.raises(StoreError, match="cannot be used"):
        backup(store.path, tmp_path / "other.sqlite" / "copy.sqlite")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["db", "other.sqlite"]
