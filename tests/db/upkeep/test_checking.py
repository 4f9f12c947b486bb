"""The check names each change that was made behind the program's back in a real file, and nothing else."""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernelproof.db.chain.linking import chain_all
from kernelproof.db.connection import open_database
from kernelproof.db.models import APPEND_ONLY
from kernelproof.db.store import Store, open_store
from kernelproof.db.upkeep.checking import Checked, Trouble, check, text_columns
from kernelproof.errors import StoreError, UsageError
from kernelproof.hashing import sha256_text
from kernelproof.types import Status
from tests.db import samples
from tests.postgres import PostgresServer

WRONG = "it, or a row of it in builds, findings, checks, measurements, was edited after it was stored"


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


def checked(path: Path, anchor: str | None = None) -> tuple[Checked, dict[str, str]]:
    found: dict[str, str] = {}
    done = check(path, lambda trouble: found.update({trouble.where: trouble.what}), anchor)
    assert done.troubles == len(found)
    return done, found


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
    done, found = checked(filled.path)
    assert found == {}
    # A run, a prompt; of each attempt its problem, answer, program, verification and end ...
    assert done.links > 20 and done.from_migration == 0 and len(done.anchor) == 64


EDITS = {
    "UPDATE measurements SET speedup = 20.0 WHERE verification_id = 1": {
        "verification 1 of attempt 1": WRONG
    },
    "UPDATE verifications SET status = 'correct' WHERE id = 3": {"verification 3 of attempt 3": WRONG},
    "UPDATE checks SET outcome = 'fail' WHERE verification_id = 2": {"verification 2 of attempt 2": WRONG},
    "DELETE FROM builds WHERE verification_id = 2": {"verification 2 of attempt 2": WRONG},
    "UPDATE attempts SET status = 'correct' WHERE id = 3": {"attempt 3": "it was edited after it was stored"},
    "UPDATE attempts SET run_id = 2, sample = 7 WHERE id = 1": {"attempt 1": "it was edited"},
    "UPDATE runs SET model = 'vendor:better' WHERE id = 1": {"run 1": "it was edited after it was stored"},
    "UPDATE environments SET device_name = 'B200'": {"environment 1": "it was edited after it was stored"},
    "UPDATE responses SET cost_usd = 0.01 WHERE id = 1": {"response 1 of attempt 1": "it was edited"},
    "UPDATE candidates SET source_sha256 = (SELECT sha256 FROM problems) WHERE id = 2": {
        "candidate 2 of attempt 2": "it was edited after it was stored"
    },
    "DELETE FROM retractions": {"retraction 1": "deleted: link"},
    "UPDATE reported_results SET speedup = 99": {"reported result 1 of attempt 4": "it was edited"},
    "INSERT INTO retractions VALUES (2, 1, 0, 'I do not like it', '2026-01-01')": {
        "retraction 2 of verification 1": "inserted: no link of the chain is about it"
    },
    "INSERT INTO responses (id, attempt_id, ordinal, error, created) VALUES (99, 1, 7, 'x', '2026')": {
        "response 99 of attempt 1": "inserted: no link of the chain is about it"
    },
    "INSERT INTO attempts (id, run_id, problem, sample, turn, status, created) "
    "VALUES (99, 1, 1, 50, 1, 'correct', '2026-01-01T00:00:00+00:00')": {"attempt 99": "inserted"},
    "DELETE FROM hash_chain WHERE id IN (4, 5)": {"links 4 to 5": "deleted: the chain has a gap there"},
    "UPDATE hash_chain SET sha256 = zeroblob(32) WHERE id = 4": {
        "link 4": "its hash does not follow",
        "link 5": "its hash does not follow",
    },
    "UPDATE hash_chain SET record = 'sqlite_master; --' WHERE id = 6": {"link 6": "it is no link of ours"},
    "UPDATE verifications SET reason = CAST(x'ff00fe' AS TEXT) WHERE id = 1": {
        "verification 1 of attempt 1": WRONG
    },
}


@pytest.mark.parametrize("statement", EDITS)
def test_an_edit_is_named(filled: Store, statement: str) -> None:
    edit(filled.path, statement)
    _, found = checked(filled.path)
    # A gap or a link that is gone leaves rows without a link, and they are named, too.
    for where, what in EDITS[statement].items():
        assert found[where].startswith(what), found
    if "hash_chain" not in statement:
        assert found.keys() == EDITS[statement].keys()


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
    assert checked(filled.path)[1] == {} and better != packed
    edit(filled.path, statement.format(better=f"x'{better.hex()}'"))
    (where,) = checked(filled.path)[1]
    assert where.startswith(named)


def test_swapped_rows_are_named(filled: Store) -> None:
    edit(
        filled.path,
        *(
            f"UPDATE measurements SET verification_id = {b} WHERE verification_id = {a}"
            for a, b in ((1, 99), (2, 1), (99, 2))
        ),
    )
    assert checked(filled.path)[1].keys() == {"verification 1 of attempt 1", "verification 2 of attempt 2"}


def test_swapped_links_are_named(filled: Store) -> None:
    edit(
        filled.path,
        *(f"UPDATE hash_chain SET id = {b} WHERE id = {a}" for a, b in ((3, 99), (4, 3), (99, 4))),
    )
    assert {"link 3", "link 4"} <= checked(filled.path)[1].keys()


def test_a_deleted_verification_is_named_and_so_is_what_refers_to_it(filled: Store) -> None:
    edit(filled.path, "DELETE FROM verifications WHERE id = 4")
    found = checked(filled.path)[1]
    assert found["verification 4"].startswith("deleted: link ")
    assert "retractions row 1" in found


@pytest.mark.parametrize("text", [samples.SOURCE, samples.response().text or "", "warning: unused"])
def test_an_edited_text_is_named_with_those_who_use_it(filled: Store, text: str) -> None:
    edit(filled.path, f"UPDATE texts SET body = body || ' ' WHERE sha256 = '{sha256_text(text)}'")
    ((where, what),) = checked(filled.path)[1].items()
    assert where.startswith(f"text {sha256_text(text)} (") and " row 1" in where
    assert what == "edited after it was stored"


def test_a_missing_text_is_named(filled: Store) -> None:
    edit(filled.path, f"DELETE FROM texts WHERE sha256 = '{sha256_text(samples.SOURCE)}'")
    found = checked(filled.path)[1]
    assert found["candidates row 1"] == "its source_sha256 refers to a row of texts that is gone"


def test_every_reference_to_a_text_is_one_that_sqlite_checks(store: Store) -> None:
    with closing(sqlite3.connect(store.path)) as connection:
        for table, column in text_columns():
            keys = connection.execute(f"PRAGMA foreign_key_list({table.name})").fetchall()
            assert ("texts", column) in {(key[2], key[3]) for key in keys}


def test_a_missing_trigger_is_named(filled: Store) -> None:
    with closing(sqlite3.connect(filled.path)) as connection:
        connection.execute("DROP TRIGGER checks_no_update")
    assert checked(filled.path)[1].keys() == {"trigger checks_no_update"}


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
    assert checked(filled.path)[1] == {f"trigger {name}": "altered: rows of checks could be changed"}


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


def test_a_newer_schema_needs_a_newer_program(store: Store) -> None:
    with closing(sqlite3.connect(store.path)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999_from_the_future'")
    for work in (lambda: checked(store.path), lambda: open_store(store.path, only_read=True)):
        with pytest.raises(StoreError, match=r"newer than this kernelproof .*upgrade kernelproof \(pip"):
            work()


def test_a_damaged_file_is_named(filled: Store) -> None:
    filled.close()
    with closing(sqlite3.connect(filled.path)) as connection:
        query = "SELECT rootpage FROM sqlite_master WHERE name = 'measurements'"
        page = connection.execute(query).fetchone()[0]
        size = connection.execute("PRAGMA page_size").fetchone()[0]
    with filled.path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * 300)
    done, found = checked(filled.path)
    assert done.troubles and all(what.startswith("damaged: ") for what in found.values())


def test_a_chain_that_was_computed_anew_is_found_by_an_anchor(filled: Store) -> None:
    anchor = checked(filled.path)[0].anchor
    samples.judge(filled, samples.problem(7), samples.settings(), speedup=3.0)
    done, found = checked(filled.path, anchor)
    assert found == {} and done.anchor_at is not None and done.anchor_at < done.links
    _forge(filled.path)
    assert checked(filled.path)[1] == {}
    assert checked(filled.path, anchor)[1].keys() == {f"anchor {anchor}"}


def _forge(path: Path) -> None:
    """Edits a number, and computes the whole chain anew."""
    edit(path, "UPDATE measurements SET speedup = 20.0 WHERE verification_id = 1", "DELETE FROM hash_chain")
    database = open_database(path, create=False)
    database.write(lambda session: chain_all(session.connection()))
    database.close()


def test_rows_from_before_the_chain_are_said_to_be_from_then(old: Path) -> None:
    with pytest.raises(UsageError, match="db upgrade"):
        checked(old)
    with open_store(old, create=False) as store:
        samples.judge(store, samples.problem(9), samples.settings(), speedup=2.0)
    done, found = checked(old)
    assert found == {}
    assert done.migrated is not None and 0 < done.from_migration < done.links
    edit(old, "UPDATE measurements SET speedup = 20.0 WHERE verification_id = 1")
    assert checked(old)[1].keys() == {"verification 1 of attempt 1"}


def test_an_empty_database_is_right(store: Store) -> None:
    done, found = checked(store.path)
    assert (done.links, done.anchor, found) == (0, "", {})


@given(st.data())
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_number_that_is_edited_is_found(filled: Store, data: st.DataObject) -> None:
    """For each column of each row of evidence."""
    tables = sorted(set(APPEND_ONLY) - {"hash_chain", "findings"})
    with closing(sqlite3.connect(filled.path, isolation_level=None)) as connection:
        table = data.draw(st.sampled_from(tables))
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})") if not row[5]]
        column = data.draw(st.sampled_from(columns))
        row = data.draw(st.sampled_from(connection.execute(f"SELECT rowid FROM {table}").fetchall()))[0]
        before = connection.execute(f'SELECT "{column}" FROM {table} WHERE rowid = {row}').fetchone()[0]
        new = data.draw(st.sampled_from([None, 0, 1, 0.5, "", "x", b"x"]).filter(lambda v: v != before))
        sql = connection.execute(
            f"SELECT sql FROM sqlite_master WHERE name = '{table}_no_update'"
        ).fetchone()[0]
        connection.execute(f"DROP TRIGGER {table}_no_update")
        try:
            connection.execute(f'UPDATE {table} SET "{column}" = ? WHERE rowid = {row}', (new,))
            changed = connection.execute(f'SELECT "{column}" FROM {table} WHERE rowid = {row}').fetchone()[0]
        except sqlite3.IntegrityError:
            changed = before  # the schema refuses that value
        connection.execute(sql)
        found = checked(filled.path)[1]
        assert bool(found) == (changed != before or type(changed) is not type(before))
        connection.execute(f"DROP TRIGGER {table}_no_update")
        connection.execute(f'UPDATE {table} SET "{column}" = ? WHERE rowid = {row}', (before,))
        connection.execute(sql)
        assert checked(filled.path)[1] == {}
