"""Attempts are begun once, continued where they stopped, and found by what people type."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy.exc import IntegrityError

from kernelproof.db.attempts import Finished
from kernelproof.db.store import Store
from kernelproof.errors import UsageError
from kernelproof.types import Extraction, Status
from tests.db import samples, sql
from tests.db.conftest import BOTH

STORES = BOTH


def test_the_same_settings_are_the_same_run(store: Store) -> None:
    first = store.begin_run(samples.settings())
    assert store.begin_run(samples.settings()) == first
    assert store.begin_run(samples.settings(name="another")) != first


def test_the_same_key_is_the_same_attempt(store: Store) -> None:
    first = samples.begin(store, samples.problem(), samples.settings())
    assert samples.begin(store, samples.problem(), samples.settings()) == first
    assert samples.begin(store, samples.problem(), samples.settings(), turn=2) != first


def test_an_edited_problem_is_another_attempt(store: Store) -> None:
    first = samples.begin(store, samples.problem(), samples.settings())
    edited = samples.problem(source="class Model: pass")
    assert samples.begin(store, edited, samples.settings()) != first


def test_attempts_of_says_what_is_left_to_do(store: Store) -> None:
    problem, run = samples.problem(), samples.settings()
    key = samples.key(problem)
    attempt = samples.begin(store, problem, run)
    run_id = store.begin_run(run)

    def progress() -> tuple[Status | None, bool, bool, bool]:
        s = store.attempts_of(run_id)[key]
        return s.status, s.has_response, s.has_candidate, s.has_verification

    assert progress() == (None, False, False, False)
    store.record_provider_error(attempt, "503: try later")
    assert progress() == (None, False, False, False)
    store.record_response(attempt, samples.response())
    assert progress() == (None, True, False, False)
    store.record_extraction(attempt, Extraction(candidate=None, status=Status.NO_CODE, method="none"))
    assert progress() == (None, True, False, False)
    store.record_extraction(attempt, samples.extraction())
    assert progress() == (None, True, True, False)
    verified = samples.verification(problem)
    store.record_verification(attempt, verified, "reproduce")
    assert progress() == (None, True, True, False)
    number = store.record_verification(attempt, verified)
    assert progress() == (None, True, True, True)
    store.finish_attempt(attempt, Status.CORRECT)
    assert progress() == (Status.CORRECT, True, True, True)
    store.retract(number, "measured on battery")
    assert progress() == (Status.CORRECT, True, True, False)


def test_errors_and_answers_keep_their_order(store: Store) -> None:
    attempt = samples.begin(store, samples.problem(), samples.settings())
    store.record_provider_error(attempt, "503")
    store.record_response(attempt, samples.response("one"))
    store.record_response(attempt, samples.response("two"))
    stored = store.load_attempt(attempt)
    assert [r.error or (r.response and r.response.text) for r in stored.responses] == ["503", "one", "two"]
    assert stored.response == samples.response("one")  # an answer that came is never replaced


def test_extracting_the_same_again_adds_nothing(store: Store) -> None:
    attempt = samples.begin(store, samples.problem(), samples.settings())
    for _ in range(2):
        store.record_extraction(attempt, samples.extraction())
    store.record_extraction(attempt, samples.extraction("class ModelNew: pass"))
    assert store.load_attempt(attempt).source == "class ModelNew: pass"


def test_a_prompt_is_replaced_only_until_it_is_answered(store: Store) -> None:
    problem, run = samples.problem(), samples.settings()
    attempt = samples.begin(store, problem, run)
    run_id = store.begin_run(run)
    second, third = samples.prompt("Rewrite it."), samples.prompt("Rewrite it well.")
    store.begin_attempt(run_id, samples.key(problem), second)
    assert store.load_attempt(attempt).prompt == second
    store.record_response(attempt, samples.response())
    store.begin_attempt(run_id, samples.key(problem), third)
    assert store.load_attempt(attempt).prompt == second


def test_a_repair_names_its_parent(store: Store) -> None:
    problem, run = samples.problem(), samples.settings()
    first = samples.begin(store, problem, run)
    second = store.begin_attempt(store.begin_run(run), samples.key(problem, turn=2), samples.prompt(), first)
    assert store.load_attempt(second).parent_id == first


@pytest.mark.few(1)
def test_threads_share_one_store(store: Store) -> None:
    with ThreadPoolExecutor(16) as pool:
        jobs = [
            pool.submit(samples.judge, store, samples.problem(), samples.settings(), sample=n)
            for n in range(60)
        ]
    assert len({job.result()[0] for job in jobs}) == 60


def add_finished(store: Store, status: Status = Status.CORRECT) -> int:
    of, judged = samples.problem(), samples.verification(samples.problem(), status)
    answer, found = samples.response(), samples.extraction()
    return store.add_finished(Finished(samples.settings(), of, answer, found, judged, status))


def test_a_finished_attempt_is_the_next_sample_of_its_run(store: Store) -> None:
    first, second = add_finished(store), add_finished(store, Status.WRONG_OUTPUT)
    one, two = store.load_attempt(first), store.load_attempt(second)
    assert (one.key.sample, two.key.sample, one.run_id) == (0, 1, two.run_id)
    assert (one.status, two.status) == (Status.CORRECT, Status.WRONG_OUTPUT)
    assert (one.response, one.extraction) == (samples.response(), samples.extraction())
    assert one.verdict is not None and one.verdict.verification == samples.verification(samples.problem())
    assert one.finished is not None


def test_a_finished_attempt_without_a_program_has_no_verification(store: Store) -> None:
    nothing = Extraction(candidate=None, status=Status.NO_CODE, method="none")
    number = store.add_finished(
        Finished(samples.settings(), samples.problem(), samples.response(), nothing, None, Status.NO_CODE)
    )
    stored = store.load_attempt(number)
    assert (stored.status, stored.extraction, stored.verifications) == (Status.NO_CODE, nothing, ())


@pytest.mark.few(4)
@pytest.mark.parametrize("table", ["responses", "candidates", "verifications", "checks", "builds"])
def test_a_finished_attempt_is_stored_whole_or_not_at_all(store: Store, table: str) -> None:
    if isinstance(store.place, Path):
        trigger = f"CREATE TRIGGER stop BEFORE INSERT ON {table} BEGIN SELECT RAISE(ABORT, 'stopped'); END"
        sql.run(store, trigger)
    else:
        sql.run(store, f"ALTER TABLE {table} ADD CONSTRAINT stopped CHECK (false)")
    with pytest.raises(IntegrityError, match="stopped"):
        add_finished(store)
    for name in ("attempts", "runs", "problems", "texts"):
        assert sql.run(store, f"SELECT count(*) FROM {name}") == [(0,)]


@pytest.mark.parametrize("text", ["2", "#2", "last"])
def test_an_attempt_is_found_by_number_or_as_the_last(store: Store, text: str) -> None:
    for sample in range(2):
        samples.begin(store, samples.problem(), samples.settings(), sample)
    assert store.resolve_attempt(text) == 2


@pytest.mark.few(6)
@pytest.mark.parametrize("text", ["3", "0", "-1", "two", "", "1.0", "9" * 40, "²"])
def test_what_names_no_attempt_is_the_users_mistake(store: Store, text: str) -> None:
    samples.begin(store, samples.problem(), samples.settings())
    with pytest.raises(UsageError, match="attempt"):
        store.resolve_attempt(text)


def test_an_empty_store_tells_to_generate_first(store: Store) -> None:
    with pytest.raises(UsageError, match="kernelproof generate"):
        store.resolve_attempt("last")


def test_an_attempt_that_is_not_there_can_be_neither_read_nor_finished(store: Store) -> None:
    with pytest.raises(UsageError, match="no attempt 7"):
        store.load_attempt(7)
    with pytest.raises(UsageError, match="no attempt 7"):
        store.finish_attempt(7, Status.CORRECT)


def test_the_devices_time_is_that_of_every_verification_but_reproductions(store: Store) -> None:
    attempt, _ = samples.judge(store, samples.problem(), samples.settings())
    seconds = {"build": 50.0, "start": 1.0, "timing": 2.5, "builds_while_held": 0.5}
    judged = samples.verification(samples.problem()).model_copy(update={"stage_seconds": seconds})
    assert judged.device_seconds == 3.5
    for kind in ("again", "again", "reproduce"):
        store.record_verification(attempt, judged, kind)  # type: ignore[arg-type]
    assert store.spent([1]).device_s == 7.0 and store.spent([2]).device_s == 0.0
