"""The check names each change that was made behind the program's back in a real file, and nothing else."""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from kernelproof.db.maintenance import Trouble, check, text_columns
from kernelproof.db.store import Store
from kernelproof.errors import UsageError
from kernelproof.hashing import sha256_text
from kernelproof.types import Status
from tests.db import samples
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
