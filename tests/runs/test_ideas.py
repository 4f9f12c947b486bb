"""The strategy `ideas`: plans first, programs of each, most of the promising ones, then new plans."""

from __future__ import annotations

from collections import Counter

from kernelproof.runs.strategies import Proposal
from kernelproof.types import Status
from tests.runs.searching import FAILED, Outcome, Search, search


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
