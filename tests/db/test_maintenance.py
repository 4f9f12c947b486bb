"""Check, backup, upgrade and vacuum of a database file."""

from __future__ import annotations

import signal
import sqlite3
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from kernelproof.db.connection import HEAD
from kernelproof.db.leases import new_owner
from kernelproof.db.maintenance import (
    Trouble,
    backup,
    check,
    plan_upgrade,
    text_columns,
    upgrade_database,
    vacuum,
)
from kernelproof.db.store import Store, open_store
from kernelproof.errors import StoreError, UsageError
from kernelproof.hashing import sha256_text
from kernelproof.types import Status
from tests.db import samples
from tests.db.soundness import sound
from tests.db.test_processes import WRITE_FINISHED, writer
from tests.postgres import PostgresServer


@pytest.fixture(scope="module")
def filled_file(tmp_path_factory: pytest.TempPathFactory, empty_database: Path) -> Path:
    """The database of `filled`, made once."""
    with samples.new_store(tmp_path_factory.mktemp("filled"), empty_database) as store:
        fill(store)
        return store.path


@pytest.fixture
def filled(tmp_path: Path, filled_file: Path) -> Iterator[Store]:
    """A store of one's own with what `fill` writes."""
    with samples.new_store(tmp_path, filled_file) as opened:
        yield opened


def fill(store: Store) -> None:
    """Attempts 1 to 3 with verifications 1 to 4, one of them retracted; an import; a tag; an audit."""
    run = samples.settings()
    for number, speedup in ((1, 2.0), (2, 1.5)):
        samples.judge(store, samples.problem(number), run, speedup=speedup)
    samples.judge(store, samples.problem(3), run, Status.WRONG_OUTPUT)
    store.record_verification(1, samples.verification(samples.problem(1), speedup=1.9), "again")
    store.retract(4, "the fan was off")
    store.add_imported(
        samples.settings("import:x"), [samples.imported(text="class ModelNew: a", speedup=9.0)]
    )
    store.tags.add([1], ["paper"])
    store.audits.record("2026-01-01T00:00:00.000+00:00", None, 1, samples.reproduction(1))


def checked(path: Path) -> dict[str, str]:
    """The troubles: where, and what."""
    found: dict[str, str] = {}
    assert check(path, lambda trouble: found.update({trouble.where: trouble.what})) == len(found)
    return found


def edit(path: Path, *statements: str) -> None:
    """Changes the file as somebody would who knows SQL: without its triggers, which are put back."""
    with closing(sqlite3.connect(path)) as connection:
        triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            connection.execute(statement)
        for _, sql in triggers:
            connection.execute(sql)
        connection.commit()


def test_nothing_is_wrong_with_what_the_program_wrote(filled: Store) -> None:
    filled.finish_attempt(3, Status.BUILD_ERROR)  # an attempt may end anew
    filled.retract(4, "it was on", counts=True)
    filled.tags.remove([1], ["paper"])
    filled.scores.leaderboard()
    assert checked(filled.path) == {}


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        # The speedup of verification 1 is among the packed figures, eight bytes somewhere.
        ("UPDATE score_cells SET packed = {better} WHERE run_id = 1 AND problem = 1", "score_cells of run 1"),
        ("DELETE FROM score_cells WHERE run_id = 1 AND problem = 1", "score_cells of run 1"),
        ("UPDATE score_cells SET packed = 'x' WHERE run_id = 1 AND problem = 1", "score_cells of run 1"),
        ("UPDATE score_facts SET facts = replace(facts, 'wrong_output', 'correct')", "score_cells of run 1"),
        ("UPDATE score_facts SET facts = 'x'", "score_facts"),
    ],
)
def test_an_edit_of_the_leaderboards_copy_is_named(filled: Store, statement: str, named: str) -> None:
    filled.scores.leaderboard()
    with closing(sqlite3.connect(filled.path)) as connection:
        packed = connection.execute("SELECT packed FROM score_cells WHERE problem = 1").fetchone()[0]
    better = packed.replace(struct.pack("<d", 2.0), struct.pack("<d", 20.0))
    assert checked(filled.path) == {} and better != packed
    edit(filled.path, statement.format(better=f"x'{better.hex()}'"))
    (where,) = checked(filled.path)
    assert where.startswith(named)


def test_a_deleted_verification_is_named_by_what_refers_to_it(filled: Store) -> None:
    edit(filled.path, "DELETE FROM verifications WHERE id = 4")
    found = checked(filled.path)
    assert "retractions row 1" in found


@pytest.mark.parametrize("text", [samples.SOURCE, samples.response().text or "", "warning: unused"])
def test_an_edited_text_is_named_with_those_who_use_it(filled: Store, text: str) -> None:
    edit(filled.path, f"UPDATE texts SET body = body || ' ' WHERE sha256 = '{sha256_text(text)}'")
    ((where, what),) = checked(filled.path).items()
    assert where.startswith(f"text {sha256_text(text)} (") and " row 1" in where
    assert what == "edited after it was stored"


def test_a_missing_text_is_named(filled: Store) -> None:
    edit(filled.path, f"DELETE FROM texts WHERE sha256 = '{sha256_text(samples.SOURCE)}'")
    found = checked(filled.path)
    assert found["candidates row 1"] == "its source_sha256 refers to a row of texts that is gone"


def test_every_reference_to_a_text_is_one_that_sqlite_checks(store: Store) -> None:
    with closing(sqlite3.connect(store.path)) as connection:
        for table, column in text_columns():
            keys = connection.execute(f"PRAGMA foreign_key_list({table.name})").fetchall()
            assert ("texts", column) in {(key[2], key[3]) for key in keys}


def test_a_missing_trigger_is_named(filled: Store) -> None:
    with closing(sqlite3.connect(filled.path)) as connection:
        connection.execute("DROP TRIGGER checks_no_update")
    assert checked(filled.path).keys() == {"trigger checks_no_update"}


@pytest.mark.parametrize(
    "weaker",
    [
        "CREATE TRIGGER {name} BEFORE UPDATE ON checks WHEN 0 BEGIN SELECT RAISE(ABORT, 'no'); END",
        "CREATE TRIGGER {name} BEFORE UPDATE OF id ON checks BEGIN SELECT RAISE(ABORT, 'no'); END",
        "CREATE TRIGGER {name} BEFORE UPDATE ON audits BEGIN SELECT RAISE(ABORT, 'no'); END",
        "CREATE TRIGGER {name} BEFORE UPDATE ON checks BEGIN SELECT 1; END",
    ],
)
def test_a_trigger_that_refuses_less_is_named(filled: Store, weaker: str) -> None:
    name = "checks_no_update"
    with closing(sqlite3.connect(filled.path)) as connection:
        connection.execute(f"DROP TRIGGER {name}")
        connection.execute(weaker.format(name=name))
    assert checked(filled.path) == {f"trigger {name}": "altered: rows of checks could be changed"}


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("ALTER TABLE checks DISABLE TRIGGER checks_no_update", "gone"),
        ("ALTER TABLE checks ENABLE REPLICA TRIGGER checks_no_update", "gone"),
        (
            "CREATE OR REPLACE FUNCTION checks_no_update() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RETURN NEW; END $$",
            "altered",
        ),
        (
            "CREATE OR REPLACE TRIGGER checks_no_update BEFORE UPDATE OF outcome ON checks "
            "FOR EACH STATEMENT EXECUTE FUNCTION checks_no_update()",
            "altered",
        ),
    ],
)
def test_a_trigger_on_a_server_that_refuses_less_is_named(
    postgres: PostgresServer, statement: str, what: str
) -> None:
    name = postgres.made()
    place, found = postgres.address(name), list[Trouble]()
    check(place, found.append)
    assert found == []
    postgres.sql(statement, name)
    check(place, found.append)
    assert [(each.where, each.what) for each in found] == [
        ("trigger checks_no_update", f"{what}: rows of checks could be changed")
    ]


def test_a_damaged_file_is_named(filled: Store) -> None:
    filled.close()
    with closing(sqlite3.connect(filled.path)) as connection:
        query = "SELECT rootpage FROM sqlite_master WHERE name = 'measurements'"
        page = connection.execute(query).fetchone()[0]
        size = connection.execute("PRAGMA page_size").fetchone()[0]
    with filled.path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * 300)
    found = checked(filled.path)
    assert found and all(what.startswith("damaged: ") for what in found.values())


def test_an_older_schema_has_to_be_upgraded_first(old: Path) -> None:
    with pytest.raises(UsageError, match="db upgrade"):
        checked(old)


def test_an_empty_database_is_right(store: Store) -> None:
    assert checked(store.path) == {}


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
