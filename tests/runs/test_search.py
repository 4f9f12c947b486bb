"""The strategies that go on after a correct program: where they build, when they stop, what they repeat."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelproof.types import Status
from tests.runs.searching import FAILED, Outcome, search

SEARCHES = ["refine"]
outcomes = st.one_of(
    st.builds(Outcome, speedup=st.floats(0.2, 4.0), source=st.sampled_from("abcdefgh")),
    st.builds(
        Outcome,
        status=st.sampled_from([Status.BUILD_ERROR, Status.WRONG_OUTPUT, Status.NO_CODE, Status.CHEATING]),
    ),
)


@pytest.mark.parametrize("name", [*SEARCHES, "repair", "sample"])
@given(script=st.lists(outcomes, min_size=1, max_size=40))
@settings(max_examples=60, deadline=None)
def test_equal_results_give_equal_proposals_within_the_turns(name: str, script: list[Outcome]) -> None:
    one, other = search(name, script), search(name, script)
    assert one.rounds == other.rounds and one.note == other.note
    assert 1 <= len(one.results) <= len(script)


@pytest.mark.parametrize("name", SEARCHES)
@given(script=st.lists(outcomes, min_size=1, max_size=40))
@settings(max_examples=60, deadline=None)
def test_a_question_does_not_grow_with_the_turns(name: str, script: list[Outcome]) -> None:
    asked = [proposal for each in search(name, script).rounds for proposal in each]
    assert all(proposal.parent is None or not proposal.history for proposal in asked)
    assert all(len(proposal.shown) <= 5 for proposal in asked)


@pytest.mark.parametrize("name", SEARCHES)
def test_a_landscape_without_improvement_ends_the_search_and_says_so(name: str) -> None:
    flat = search(name, lambda _: Outcome(1.5, source="x"), turns=200)
    assert len(flat.results) < 40
    assert flat.note.startswith("no improvement in ")


@pytest.mark.parametrize("name", SEARCHES)
def test_the_turns_are_used_up_as_long_as_it_gets_faster(name: str) -> None:
    climbing = search(name, lambda turn: Outcome(1.0 + turn / 10), turns=50)
    assert len(climbing.results) == 50 and climbing.note == ""


@pytest.mark.parametrize("name", SEARCHES)
def test_nothing_is_asked_for_speed_where_nothing_is_timed(name: str) -> None:
    done = search(name, lambda turn: Outcome() if turn == 4 else FAILED, turns=50, timed=False)
    assert 4 <= len(done.results) <= 6
    assert done.note == "a correct program is there, and nothing is timed"


@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_without_a_correct_answer_uses_all_turns(name: str) -> None:
    assert len(search(name, lambda _: FAILED, turns=30).results) == 30


def test_refine_repairs_three_times_and_then_begins_anew() -> None:
    done = search("refine", [FAILED] * 7)
    assert done.parents == [None, 1, 2, 3, None, 5, 6]


def test_refine_goes_back_to_the_best_after_an_idea_that_failed() -> None:
    script = [FAILED, Outcome(1.2), Outcome(1.1), Outcome(1.5), FAILED, FAILED, FAILED, FAILED, Outcome(2.0)]
    done = search("refine", [*script, Outcome(1.9)])
    assert done.parents == [None, 1, 2, 2, 4, 5, 6, 7, 4, 9]


def test_refine_ranks_by_the_lower_end_and_stops_after_six_attempts_without_a_gain() -> None:
    done = search("refine", [Outcome(1.5), *[Outcome(1.505)] * 20])
    assert len(done.results) == 7 and done.note == "no improvement in 6 attempts"
