"""A batch stops asking at its limits, and at errors that are alike; what it does not know counts nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelproof.db.views import Spent
from kernelproof.runs.config import Price, with_cost
from kernelproof.runs.limits import REFRESH_S, Budget, EqualErrors, Limits
from kernelproof.types import Response, Usage


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def answer(tokens: int = 100, cost: float | None = None) -> Response:
    usage = Usage(prompt_tokens=tokens - 10, completion_tokens=10)
    return Response(text="x", usage=usage, cost_usd=cost)


def asked(budget: Budget, response: Response, most: int = 1000) -> int:
    """How many questions may be asked, one after the other."""
    count = 0
    while count < most and budget.may_ask():
        budget.answered(response)
        count += 1
    return count


def test_without_limits_nothing_ends() -> None:
    budget = Budget(Limits(), Spent)
    assert asked(budget, answer(cost=1.0)) == 1000 and budget.reached is None


@pytest.mark.parametrize(
    ("limits", "count", "says"),
    [
        (Limits(max_attempts=7), 7, "--max-attempts: 7 of 7 answers are stored"),
        (Limits(max_tokens_total=1000), 10, "--max-tokens-total: 1000 of 1000 tokens"),
        (Limits(max_cost=0.5), 5, r"--max-cost: \$0.5 of \$0.5"),
    ],
)
def test_a_limit_ends_the_asking_and_says_which(limits: Limits, count: int, says: str) -> None:
    budget = Budget(limits, Spent)
    assert asked(budget, answer(cost=0.1)) == count
    assert budget.reached is not None and budget.reached.startswith(says.replace("\\", ""))
    assert not budget.may_ask()


def test_what_the_runs_took_before_counts() -> None:
    budget = Budget(Limits(max_attempts=10), lambda: Spent(answers=8))
    assert asked(budget, answer()) == 2


def test_another_command_on_the_same_run_counts_after_a_while() -> None:
    clock, stored = Clock(), Spent()
    budget = Budget(Limits(max_attempts=10), lambda: stored, clock)
    assert budget.may_ask()
    stored = Spent(answers=50)
    clock.now = REFRESH_S
    assert not budget.may_ask()


def test_time_is_this_commands() -> None:
    clock = Clock()
    budget = Budget(Limits(max_time=60.0), Spent, clock)
    clock.now = 59.9
    assert budget.may_ask()
    clock.now = 60.0
    assert not budget.may_ask() and budget.reached == "--max-time: 60 s are over"


def test_the_devices_time_is_that_of_all_verifications_that_are_stored() -> None:
    clock, stored = Clock(), Spent(device_s=59.0)
    budget = Budget(Limits(max_device_time=60.0), lambda: stored, clock)
    assert budget.may_ask()
    stored = Spent(device_s=61.0)
    clock.now = REFRESH_S
    assert not budget.may_ask() and budget.reached == "--max-device-time: 61 of 60 s were used"


@given(
    costs=st.lists(st.floats(0.01, 1.0), min_size=1, max_size=40),
    limit=st.floats(0.5, 20.0),
    flying=st.integers(1, 8),
)
def test_questions_in_flight_count_with_the_mean(costs: list[float], limit: float, flying: int) -> None:
    budget = Budget(Limits(max_cost=limit), Spent)
    spent, out = 0.0, []
    for cost in costs:
        while len(out) < flying and budget.may_ask():
            out.append(cost)
        if not out:
            break
        done = out.pop(0)
        spent += done
        budget.answered(answer(cost=done))
    assert spent <= limit + flying * 1.0


def test_equal_errors_in_a_row_end_the_asking_and_an_answer_begins_anew() -> None:
    errors = EqualErrors(3)
    assert errors.failed("HTTP 500 at 10:31, request 0a1b2c3d4e") is None
    assert errors.failed("HTTP 500 at 10:32, request ffffffffff") is None
    errors.answered()
    assert [errors.failed("HTTP 500 at 10:33, request 1234567890") for _ in range(2)] == [None, None]
    assert errors.failed("another") is None
    assert [errors.failed("HTTP 500 at 1") for _ in range(2)] == [None, None]
    why = errors.failed("HTTP 500 at 2")
    assert why is not None and "3 questions in a row failed alike: HTTP 500 at 2" in why


def test_one_error_that_ends_the_asking_is_told_as_one() -> None:
    why = EqualErrors(1).failed("HTTP 500")
    assert why is not None and why.startswith("a question failed: HTTP 500; mend that")


def test_the_servers_own_cost_goes_before_the_price_and_unknown_stays_unknown() -> None:
    price = Price(input=1.0, output=10.0, cached=0.1)
    usage = Usage(prompt_tokens=1000, completion_tokens=500, cached_tokens=400)
    paid = with_cost(Response(text="x", usage=usage), price).cost_usd
    assert paid == pytest.approx((600 * 1.0 + 400 * 0.1 + 500 * 10.0) / 1e6)
    assert with_cost(Response(text="x", usage=usage, cost_usd=0.5), price).cost_usd == 0.5
    assert with_cost(Response(text="x", usage=usage), None).cost_usd is None
    assert with_cost(Response(text="x"), price).cost_usd is None
