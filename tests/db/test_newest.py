"""The newest attempts, and whether anything is new, in SQLite and in PostgreSQL."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from kernelproof.db.leases import new_owner
from kernelproof.db.scores.filters import Filters
from kernelproof.db.store import Store
from kernelproof.types import Pace, Status
from tests.db import samples
from tests.db.conftest import BOTH

STORES = BOTH


def test_whatever_is_stored_makes_another_state_and_a_question_does_not(store: Store) -> None:
    seen = {store.newest.state().results}

    def is_new() -> bool:
        state = store.newest.state().results
        known = state in seen
        seen.add(state)
        return not known

    attempt = samples.begin(store, samples.problem(), samples.settings())
    assert is_new()
    store.record_response(attempt, samples.response())
    assert is_new()
    store.record_extraction(attempt, samples.extraction())
    assert is_new()
    verification = store.record_verification(attempt, samples.verification(samples.problem(), speedup=2.0))
    assert is_new()
    store.finish_attempt(attempt, Status.CORRECT)
    assert is_new()
    store.retract(verification, "the fan was off")
    assert is_new()
    store.tags.add([1], ["good"])
    assert is_new()
    store.scores.leaderboard()
    assert not is_new(), "what the leaderboard packs is no news"


def test_signs_of_life_of_a_batch_are_a_state_of_their_own(store: Store) -> None:
    states = [store.newest.state()]
    batch = store.batches.begin(new_owner(), None, [1], {})
    states.append(store.newest.state())
    store.batches.report(batch, {"over": 1})
    states.append(store.newest.state())
    store.batches.report(batch, {"over": 1}, ended="done")
    states.append(store.newest.state())
    assert len({state.results for state in states}) == 1
    assert len({state.batches for state in states}) == 4


@pytest.fixture
def filled(store: Store) -> Store:
    """Attempts 1 to 4: correct, wrong, in progress, and a second turn of the wrong one."""
    run = samples.settings("vendor:good", name="night")
    samples.judge(store, samples.problem(1), run, speedup=2.0)
    samples.judge(store, samples.problem(2), run, Status.WRONG_OUTPUT)
    samples.begin(store, samples.problem(3), samples.settings("vendor:poor"))
    samples.judge(store, samples.problem(2), run, speedup=1.5, turn=2)
    return store


def test_the_newest_come_first_with_what_counts_of_them(filled: Store) -> None:
    lines = filled.newest.attempts(Filters(), 10)
    assert [line.id for line in lines] == [4, 3, 2, 1]
    assert [line.status for line in lines] == [
        *(Status.CORRECT, None, Status.WRONG_OUTPUT, Status.CORRECT),
    ]
    assert [line.speedup for line in lines] == [1.5, None, None, 2.0]
    assert lines[0].pace is Pace.FASTER and lines[0].interval is not None
    assert (lines[0].run, lines[0].model, lines[0].problem_id) == ("night", "vendor:good", "level1/2")
    assert [line.id for line in filled.newest.attempts(Filters(), 2, before=4)] == [3, 2]


def test_a_retracted_verification_and_a_reproduction_do_not_count(filled: Store) -> None:
    again = samples.verification(samples.problem(1), speedup=3.0)
    number = filled.record_verification(1, again, "again")
    filled.record_verification(1, samples.verification(samples.problem(1), Status.CRASH), "reproduce")
    assert filled.newest.sample_of(1)[0].speedup == 3.0
    filled.retract(number, "too hot")
    assert filled.newest.sample_of(1)[0].speedup == 2.0


def test_filters_on_runs_problems_turns_and_days_are_asked(filled: Store) -> None:
    today = date.today()
    for filters, expected in (
        (Filters(model="good"), [4, 2, 1]),
        (Filters(run="night", problem="level1/2"), [4, 2]),
        (Filters(turns=1), [3, 2, 1]),
        (Filters(since=today - timedelta(days=2), until=today + timedelta(days=2)), [4, 3, 2, 1]),
        (Filters(since=today + timedelta(days=2)), []),
        (Filters(problem="nothing"), []),
    ):
        assert [line.id for line in filled.newest.attempts(filters, 10)] == expected, filters


def test_the_attempts_of_a_sample_come_by_turn(filled: Store) -> None:
    assert [line.id for line in filled.newest.sample_of(4)] == [2, 4]
    assert filled.newest.sample_of(99) == []
