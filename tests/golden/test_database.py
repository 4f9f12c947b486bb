"""The database of another day: it opens, answers as it did, and its unfinished run goes on."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kernelproof.db.store import Store, open_store
from kernelproof.runs.prompts import question_key
from kernelproof.types import Environment, RunSettings, Status, VerifySettings
from tests.cli.program import Program
from tests.golden import answers, names
from tests.golden.keys import canonical
from tests.golden.loading import load, scripted_provider, workspace

PROSE = "I cannot write that kernel."
MISSING = ["level1/1 1 2", "level1/1 2 1", "level1/1 2 2", "level1/1 3 1", "level1/1 3 2"]
"""Problem, sample and turn of the questions that have no answer yet."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A copy, upgraded and opened to be read."""
    path = workspace(tmp_path_factory.mktemp("golden") / "workspace") / "db" / "attempts.sqlite"
    open_store(path, create=False).close()
    with open_store(path, only_read=True) as store:
        yield store


def rows(place: Path, query: str) -> list[Any]:
    with closing(sqlite3.connect(place)) as connection:
        return connection.execute(query).fetchall()


def test_every_table_holds_something(store: Store) -> None:
    """Else nothing of that table would be held here."""
    empty = [
        name for name in names.columns(store.path, "table") if not rows(store.path, f'SELECT 1 FROM "{name}"')
    ]
    assert empty == ["score_changes"]  # all is packed
    (kinds, statuses) = rows(
        store.path, "SELECT count(DISTINCT kind), count(DISTINCT status) FROM verifications"
    )[0]
    assert kinds == 3 and statuses >= 4


def test_it_is_upgraded_and_sound(program: Program) -> None:
    program.run("db", "upgrade")
    assert "nothing wrong" in program.run("db", "check").stdout
    done = program.run("db", "upgrade", "--dry-run")
    assert "newest" in done.stdout


def schema(path: Path) -> list[tuple[str, str, list[str]]]:
    """Every statement in lines. A table that a migration rebuilds has its foreign keys in any order."""
    every = "SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY type, name"
    made = []
    for kind, name, sql in rows(path, every):
        lines = [line.strip(" \t,") for line in (sql or "").splitlines()]
        keys = iter(sorted(line for line in lines if "FOREIGN KEY" in line))
        made.append((kind, name, [next(keys) if "FOREIGN KEY" in line else line for line in lines]))
    return made


def test_the_migrations_make_the_schema_that_it_has(store: Store, empty_database: Path) -> None:
    """A released migration that makes something else would leave two schemas under one name."""
    assert schema(store.path) == schema(empty_database)


def test_every_attempt_is_read_and_none_looks_altered(store: Store) -> None:
    attempts = [store.load_attempt(number) for number in range(1, (store.latest_attempt_id() or 0) + 1)]
    assert len(attempts) > 30
    assert [attempt.id for attempt in attempts if attempt.alterations] == []
    kinds = {attempt.run.kind for attempt in attempts}
    assert kinds == {"generate", "verify", "import", "tune"}


def test_hashed_settings_are_read_and_written_byte_for_byte(store: Store) -> None:
    for key, stored in rows(store.path, "SELECT key, settings FROM runs"):
        settings = RunSettings.model_validate_json(stored)
        assert json.loads(canonical(settings)) == json.loads(stored)
        assert settings.key == key
    for key, stored in rows(store.path, "SELECT fingerprint, facts FROM environments"):
        assert Environment.model_validate_json(stored).fingerprint == key
    for (stored,) in rows(store.path, "SELECT settings FROM verifications"):
        written = VerifySettings.model_validate_json(stored).model_dump(mode="json")
        assert written == json.loads(stored)


def test_questions_have_the_keys_that_they_had(store: Store) -> None:
    found = rows(store.path, "SELECT id, question_key FROM attempts WHERE question_key IS NOT NULL")
    assert len(found) > 20
    for number, key in found:
        attempt = store.load_attempt(number)
        assert attempt.prompt is not None
        assert question_key(attempt.run, attempt.key, attempt.prompt) == key


def test_checks_and_statuses_in_it_are_known(store: Store) -> None:
    known = load("names.json")
    stored = {name for (name,) in rows(store.path, "SELECT DISTINCT name FROM checks")}
    assert len(stored) > 20
    assert {name for name in stored if not any(_is(name, each) for each in known["check names"])} == set()
    words = "SELECT status FROM attempts WHERE status IS NOT NULL UNION SELECT status FROM verifications"
    assert {word for (word,) in rows(store.path, words)} <= set(known["statuses"])


def _is(name: str, known: str) -> bool:
    """Whether a stored name is a known one, or begins with it and goes on with what was filled in."""
    return name == known or (name.startswith(known) and " " in (known[-1], name[len(known)]))


@pytest.mark.parametrize("part", sorted(answers.PARTS))
def test_commands_answer_as_they_did(part: str, program: Program) -> None:
    assert answers.PARTS[part](program) == load("answers.json")[part]


def test_the_unfinished_run_goes_on_and_asks_no_stored_question_again(
    program: Program, store: Store, tmp_path: Path
) -> None:
    scripted_provider(program, tmp_path / "packages")
    every = {f"level1/1 {sample} {turn}": PROSE for sample in range(4) for turn in (1, 2)}
    (program.workspace / "answers.json").write_text(json.dumps(every))
    before = rows(store.path, UNFINISHED)
    answered = [(sample, turn) for sample, turn, _, text in before if text]
    assert answered == [(0, 1), (0, 2), (1, 1)]
    assert [status for *_, status, _ in before][:2] == [Status.BUILD_ERROR, Status.CORRECT]
    assert {status for *_, status, _ in before[2:]} == {None}
    program.run("generate", "--config", "batch.toml")
    assert sorted((program.workspace / "asked.txt").read_text().splitlines()) == MISSING
    database = program.workspace / "db" / "attempts.sqlite"
    after = rows(database, UNFINISHED)
    assert [row for row in after if row[:2] in answered and row[:2] != (1, 1)] == before[:2]
    assert [status for *_, status, _ in after[2:]] == [Status.BUILD_ERROR, *[Status.NO_CODE] * 5]
    assert after[2][3] == before[2][3]  # the stored answer was judged
    for counted in ("runs", "problems"):
        assert rows(database, f"SELECT count(*) FROM {counted}") == rows(
            store.path, f"SELECT count(*) FROM {counted}"
        )
    assert "nothing wrong" in program.run("db", "check").stdout


UNFINISHED = """SELECT sample, turn, attempts.status, max(text_sha256) FROM attempts
JOIN runs ON runs.id = run_id LEFT JOIN responses ON attempt_id = attempts.id
WHERE runs.name = 'unfinished' GROUP BY attempts.id ORDER BY sample, turn"""
