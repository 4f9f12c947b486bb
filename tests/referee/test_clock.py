"""The clock's arithmetic: times that cannot be, and work that only the outer clock sees."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pipeline.contestant import loop
from pipeline.referee import clock

CPU = torch.device("cpu")
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
)


@given(anything | st.lists(st.integers(10**300, 10**400), max_size=3), st.integers(1, 4))
def test_whatever_is_reported_becomes_times_or_nan(value: object, count: int) -> None:
    times = clock.believable_times(value, count)
    assert len(times) == count
    assert all(math.isnan(t) or 1e-6 <= t <= 1e9 for t in times)


@given(st.lists(st.floats(1e-6, 1e9), min_size=1, max_size=16))
def test_possible_times_are_taken_as_they_are(value: list[float]) -> None:
    assert clock.believable_times(value, len(value)) == value


def rounds_with(hidden: float, *, count: int, inside: float = 2.0, calls: int = 4) -> list[clock.Round]:
    """Rounds whose loop costs half a millisecond a call, and whose candidate hides `hidden` ms a call."""
    host, baseline_host = calls * (inside + hidden + 0.5), calls * (1.0 + 0.5)
    return [clock.Round("BC", [1.0] * calls, [inside] * calls, host, baseline_host) for _ in range(count)]


@given(st.floats(0, 100), st.floats(0.1, 100), st.integers(1, 16))
def test_hidden_work_is_what_the_loop_does_not_explain(hidden: float, inside: float, calls: int) -> None:
    rounds = rounds_with(hidden, count=5, inside=inside, calls=calls)
    rounds[0].host_ms += 500
    rounds[1].baseline_host_ms += 500
    assert clock.loop_cost_ms(rounds) == pytest.approx(0.5)
    assert clock.unseen_ms(rounds) == pytest.approx(hidden, abs=1e-6)


def test_a_few_honest_rounds_do_not_hide_the_others() -> None:
    rounds = rounds_with(0.0, count=4) + rounds_with(3.0, count=12)
    assert clock.unseen_ms(rounds) == pytest.approx(3.0)


def test_ratios_are_above_zero_where_the_candidate_is_faster() -> None:
    rounds = [clock.Round("BC", [2.0, 2.0, 9.0], [1.0, 1.0, 1.0], 3.0, 13.0)]
    assert clock.log_ratios(rounds) == [pytest.approx(math.log(2))]


def test_the_loop_calls_once_for_each_slot_and_delivers() -> None:
    slots = [loop.Slot([torch.full((2, 3), float(n))], [torch.empty(2, 3)]) for n in range(4)]
    times = loop.run_block(lambda x: x + 1, slots, loop.Flush(0, CPU), CPU)
    assert len(times) == 4
    assert all(t > 0 for t in times)
    assert [float(slot.outputs[0][0, 0]) for slot in slots] == [1.0, 2.0, 3.0, 4.0]


def test_strided_and_nested_results_are_delivered_whole() -> None:
    x = torch.arange(6.0).view(2, 3)
    slot = loop.Slot([x], [torch.empty(3, 2), torch.empty(2, 3)])
    loop.run_block(lambda x: {"a": x.t(), "b": [x * 2, 5]}, [slot], loop.Flush(0, CPU), CPU)
    assert torch.equal(slot.outputs[0], x.t())
    assert torch.equal(slot.outputs[1], x * 2)


@pytest.mark.parametrize(
    "wrong", [lambda x: x[:1], lambda x: x.double(), lambda x: (x, x), lambda x: None, lambda x: x.to("meta")]
)
def test_a_result_that_does_not_fit_ends_the_block(wrong: loop.Forward) -> None:
    slot = loop.Slot([torch.zeros(2, 3)], [torch.zeros(2, 3)])
    with pytest.raises(ValueError, match="another shape or dtype"):
        loop.run_block(wrong, [slot], loop.Flush(0, CPU), CPU)
