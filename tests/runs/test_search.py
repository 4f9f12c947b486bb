"""The strategies that go on after a correct program: where they build, when they stop, what they repeat."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelproof.runs.strategies import Proposal
from kernelproof.types import Status
from tests.runs.searching import FAILED, Outcome, Search, search

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


def asked(done: Search) -> list[list[tuple[int | None, int | None]]]:
    """Of each round the parents and plans; 0 plans stands for a question for plans."""
    return [[(p.parent, 0 if p.plans else p.plan) for p in each] for each in done.rounds]


def programs_by_plan(done: Search) -> Counter[int]:
    """How many programs came of each of the first answer's plans, repairs and improvements included."""
    plans: dict[int, int] = {}
    for each in done.results:
        parent = each.proposal.parent
        plan = each.proposal.plan if parent == 1 else plans.get(parent or 0)
        if plan is not None:
            plans[each.turn] = plan
    return Counter(plans.values())


def test_plans_come_first_and_each_is_carried_out_once() -> None:
    done = search("ideas", [Outcome(1.0 + n / 10) for n in range(5)])
    assert asked(done) == [[(None, 0)], [(1, plan) for plan in (1, 2, 3, 4)]]
    assert done.rounds[0] == (Proposal(history=False, plans=4),)
    assert done.results[0].status is Status.PLANS


def test_the_plan_that_came_to_most_is_carried_out_again() -> None:
    speeds = {2: 1.0, 3: 3.0, 4: 1.1, 5: 2.0}
    done = search("ideas", lambda turn: Outcome(speeds.get(turn, 0.4)), turns=12)
    assert asked(done)[2] == [(1, 2)]
    assert programs_by_plan(done)[2] > max(programs_by_plan(done)[plan] for plan in (1, 3, 4))


def test_broken_answers_lower_a_plan() -> None:
    script = [Outcome(), Outcome(1.2), Outcome(1.4), FAILED, FAILED, FAILED, FAILED, FAILED, FAILED]
    # Plan 2 is the fastest, and its next answer is broken: 1.4 * 2/4 is less than 1.2 * 2/3.
    assert asked(search("ideas", script))[2:4] == [[(1, 2)], [(1, 1)]]


def test_a_broken_program_is_repaired_twice_before_the_plan_is_begun_anew() -> None:
    done = search("ideas", lambda _: FAILED, turns=5, given_plans=1)
    assert asked(done) == [[(None, 0)], [(1, 1)], [(2, None)], [(3, None)], [(1, 1)]]


def test_two_programs_begin_from_a_plan_and_later_ones_from_its_fastest() -> None:
    done = search("ideas", [Outcome(), *[Outcome(1.0 + n) for n in range(4)]], given_plans=1)
    assert asked(done) == [[(None, 0)], [(1, 1)], [(1, 1)], [(3, None)], [(4, None)]]


def test_new_plans_are_for_the_best_program_when_the_old_are_used_up() -> None:
    done = search("ideas", lambda turn: Outcome(1.5 if turn == 4 else 1.0), turns=27)
    again = next(n for n, each in enumerate(done.rounds[1:], start=1) if each[0].plans)
    assert done.rounds[again] == (Proposal(4, history=False, plans=4),)
    turn = sum(map(len, done.rounds[:again])) + 1
    assert done.rounds[again + 1] == tuple(Proposal(turn, history=False, plan=n) for n in range(1, 5))
    assert min(programs_by_plan(done).values()) == 5 and len(programs_by_plan(done)) == 4


def test_an_answer_without_plans_is_followed_by_ordinary_questions() -> None:
    done = search("ideas", [Outcome(), Outcome(1.1), FAILED, Outcome(1.2)], given_plans=0)
    assert asked(done) == [[(None, 0)], [(None, None)], [(None, None)], [(3, None)]]


def test_with_a_single_turn_a_program_is_asked_for() -> None:
    assert search("ideas", [Outcome(1.0)]).rounds == [(Proposal(),)]
    last = search("ideas", lambda _: Outcome(1.0), turns=6, given_plans=1).rounds[-1]
    assert not last[0].plans
