"""The strategies that go on after a correct program: where they build, when they stop, what they repeat."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelproof.types import Status
from tests.runs.searching import FAILED, Outcome, search

SEARCHES = ["refine", "beam", "evolve", "ideas"]
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
def test_a_model_that_only_breaks_what_worked_ends_the_search_which_goes_back_to_the_best(name: str) -> None:
    done = search(name, lambda turn: Outcome(1.5) if turn == 2 else FAILED, turns=200)
    assert len(done.results) < 50 and done.note.startswith("no improvement in ")
    assert done.parents.count(2) > 1


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


def test_refine_stops_after_ten_attempts_without_a_clear_gain() -> None:
    done = search("refine", [Outcome(1.5), *[Outcome(1.505)] * 20])
    assert len(done.results) == 11 and done.note == "no improvement in 10 attempts"


def test_beam_asks_about_the_three_best_different_programs_at_the_same_time() -> None:
    first = [Outcome(1.2, source="a = 1"), Outcome(1.4, source="b = 1"), Outcome(1.3, source="b = 1  # same")]
    second = [Outcome(1.5, source="c = 1"), FAILED, Outcome(1.1, source="d = 1")]
    done = search("beam", [*first, *second, *[FAILED] * 3])
    parents = [[proposal.parent for proposal in asked] for asked in done.rounds]
    assert parents == [[None] * 3, [2, 1, None], [4, 2, 1]]


def test_beam_repairs_what_came_farthest_and_gives_it_up_after_two_questions() -> None:
    first = [FAILED, Outcome(status=Status.WRONG_OUTPUT), Outcome(status=Status.NO_CODE, source="")]
    done = search("beam", [*first, *[Outcome(status=Status.EMPTY, source="")] * 9])
    parents = [[proposal.parent for proposal in asked] for asked in done.rounds]
    assert parents[1][:2] == parents[2][:2] == [2, 1]
    assert not {1, 2} & set(parents[3])


def test_evolve_draws_parents_by_rank_and_shows_others_from_slow_to_fast() -> None:
    done = search("evolve", lambda turn: Outcome(1.0 + (turn * 7 % 10) / 10), turns=40)
    speeds = {each.turn: each.speedup for each in done.results}
    assert {len(asked) for asked in done.rounds} == {2}
    asked = [proposal for each in done.rounds for proposal in each]
    for proposal in asked:
        assert [*proposal.shown] == sorted(proposal.shown, key=speeds.__getitem__)
    assert max(len(proposal.shown) for proposal in asked) == 5
    parents = [proposal.parent for proposal in asked if proposal.parent is not None]
    assert len(set(parents)) > 5, "not only the best"
    mean = sum(speeds[parent] for parent in parents) / len(parents)
    assert mean > sum(speeds.values()) / len(speeds), "the faster ones more often"


def test_evolve_builds_on_programs_that_are_alike_once() -> None:
    done = search("evolve", lambda turn: Outcome(1.0 + turn / 100, source=f"a = 1  # {turn}"), turns=40)
    assert len(done.rounds) > 2
    for asked in done.rounds[1:]:
        assert all(proposal.shown == () for proposal in asked)
    # The fastest of them so far is the program's only place: an island's own, or the one that came to it.
    for number, asked in enumerate(done.rounds[1:], start=1):
        assert all(2 * number - 4 <= (proposal.parent or 0) for proposal in asked)


def test_the_seed_of_evolve_is_the_problem_and_the_sample() -> None:
    script = [Outcome(1.0 + (turn * 7 % 10) / 10) for turn in range(60)]
    one, other = search("evolve", script), search("evolve", script, sample=1)
    assert one.rounds == search("evolve", script).rounds != other.rounds
