"""Evidence is only added; what was altered behind the program's back is named."""

from __future__ import annotations

import pytest
from sqlalchemy.exc import IntegrityError

from kernelproof.db.models import APPEND_ONLY
from kernelproof.db.store import Store
from kernelproof.db.views import StoredVerification
from kernelproof.errors import StoreError, UsageError
from kernelproof.hashing import sha256_text
from kernelproof.types import Finding, Severity
from tests.db import samples, sql
from tests.db.conftest import BOTH

STORES = BOTH


@pytest.fixture
def attempt(store: Store) -> int:
    """An attempt with a row in every table."""
    number, verification = samples.judge(store, samples.problem(), samples.settings(), speedup=2.0)
    finding = Finding(rule="r", severity=Severity.NOTE, message="m")
    full = samples.verification(samples.problem(), speedup=1.5).model_copy(update={"findings": (finding,)})
    store.record_verification(number, full, "again")
    store.retract(verification, "the fan was off")
    store.add_imported(samples.settings(), [samples.imported()])
    store.audits.record("2026-01-01T00:00:00.000+00:00", None, verification, samples.reproduction(number))
    # An earlier version's row: this one adds none.
    link = "INSERT INTO hash_chain (record, number, content, sha256) VALUES ('texts', 1, :some, :some)"
    sql.run(store, f"{link} RETURNING 1", some=b"hash")
    return number


def change(store: Store, statement: str, **values: object) -> None:
    assert sql.run(store, f"{statement} RETURNING 1", **values)


@pytest.mark.few(10)
@pytest.mark.parametrize("table", APPEND_ONLY)
def test_rows_of_evidence_can_neither_be_changed_nor_deleted(store: Store, attempt: int, table: str) -> None:
    column = sql.columns(store, table)[0]
    for statement in (f"UPDATE {table} SET {column} = {column}", f"DELETE FROM {table}"):
        with pytest.raises(IntegrityError, match="append-only"):
            change(store, statement)


def test_a_retracted_verification_stays_readable(store: Store, attempt: int) -> None:
    first, second = store.load_attempt(attempt).verifications
    assert (first.retracted, second.retracted) == ("the fan was off", None)
    assert first.verification.measurement is not None
    assert store.load_attempt(attempt).verdict == second


def test_a_second_retraction_changes_nothing(store: Store, attempt: int) -> None:
    store.retract(1, "another reason")
    assert store.load_attempt(attempt).verifications[0].retracted == "the fan was off"


def test_retracting_what_is_not_there_is_the_users_mistake(store: Store) -> None:
    with pytest.raises(UsageError, match="no verification 5"):
        store.retract(5, "why not")


@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("text", "named"),
    [
        (samples.SOURCE, "candidate source"),
        (samples.problem().source, "problem source"),
        (samples.prompt().user, "prompt's user text"),
        (samples.response().text or "", "response text"),
        ("hm", "response reasoning"),
        ("warning: unused", "build log"),
    ],
)
def test_an_altered_text_is_named(store: Store, attempt: int, text: str, named: str) -> None:
    assert store.load_attempt(attempt).alterations == ()
    change(store, "UPDATE texts SET body = body || ' ' WHERE sha256 = :key", key=sha256_text(text))
    (line,) = store.load_attempt(attempt).alterations
    assert line.startswith(f"{named}: the stored text was altered")
    assert sha256_text(text) in line


def test_an_altered_source_is_shown_as_it_is_now(store: Store, attempt: int) -> None:
    change(store, "UPDATE texts SET body = 'new' WHERE sha256 = :key", key=sha256_text(samples.SOURCE))
    assert store.load_attempt(attempt).source == "new"


def test_a_raw_response_that_is_no_json_any_more_is_named(store: Store, attempt: int) -> None:
    raw = "(SELECT raw_sha256 FROM responses ORDER BY id LIMIT 1)"
    change(store, f"UPDATE texts SET body = '{{' WHERE sha256 = {raw}")
    lines = store.load_attempt(attempt).alterations
    assert [line.split(":")[0] for line in lines] == ["raw response", "raw response"]


def test_altered_settings_and_environments_are_named(store: Store, attempt: int) -> None:
    change(store, "UPDATE runs SET settings = replace(settings, '\"turns\":1', '\"turns\":2')")
    change(store, "UPDATE environments SET facts = replace(facts, 'Test CPU', 'Faster CPU')")
    lines = store.load_attempt(attempt).alterations
    assert [line.split(":")[0] for line in lines] == ["run settings", "environment"]


def test_rows_that_make_no_sense_are_a_store_error(store: Store, attempt: int) -> None:
    change(store, "UPDATE runs SET settings = '{\"turns\": -1}'")
    with pytest.raises(StoreError, match=f"attempt {attempt} cannot be read"):
        store.load_attempt(attempt)


def test_a_repeated_verification_is_retracted_with_the_one_that_was_made(store: Store) -> None:
    problem, run = samples.problem(), samples.settings()
    first, made = samples.judge(store, problem, run, speedup=2.0)
    verdict = samples.verification(problem, speedup=2.0)
    copies = []
    for turn, of in ((2, first), (3, first + 1)):
        attempt = samples.begin(store, problem, run, turn=turn)
        copies.append(store.record_verification(attempt, verdict, "first", of))
    other = store.record_verification(first, samples.verification(problem, speedup=3.0), "again")

    def stored() -> dict[int, StoredVerification]:
        attempts = [store.load_attempt(number) for number in (first, first + 1, first + 2)]
        return {v.id: v for attempt in attempts for v in attempt.verifications}

    assert {number: v.reused_from for number, v in stored().items()} == {
        made: None,
        copies[0]: made,
        copies[1]: made,
        other: None,
    }
    assert stored()[copies[1]].verification == stored()[made].verification

    def retracted() -> set[int]:
        return {number for number, v in stored().items() if v.retracted is not None}

    assert store.retract(copies[0], "a trick") and retracted() == {made, *copies}
    assert store.retract(made, "it was none", counts=True) and retracted() == set()
