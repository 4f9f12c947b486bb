"""When two verdicts on one candidate are the same."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.pairs import Pair, Times, shown, summary

speedups = st.floats(0.05, 20.0)
halves = st.floats(0.0, 0.5)


def pair(one: Times | None, other: Times | None, together: str = "correct", alone: str = "correct") -> Pair:
    return Pair(0, "level1/2", "correct", together, alone, one, other, "why", "because", "same")


def times(speedup: float, half: float) -> Times:
    return Times(speedup, speedup * math.exp(-half), speedup * math.exp(half))


@given(speedups, halves, speedups, halves)
def test_agreement_is_mutual_and_wider_intervals_do_not_end_it(
    one: float, half: float, other: float, other_half: float
) -> None:
    first, second = times(one, half), times(other, other_half)
    found = pair(first, second)
    assert found.agree is pair(second, first).agree and found.within is pair(second, first).within
    assert pair(first, first).agree
    if found.agree:
        assert pair(times(one, half + 0.1), second).agree
    if found.within and half > 1e-6 and other_half > 1e-6:  # intervals around their middle: the stricter rule
        assert found.overlap


@pytest.mark.parametrize("expected", ["correct", "cheating"])
def test_what_got_through_is_named(expected: str) -> None:
    found = Pair(3, "level1/1", expected, "correct", "infrastructure_error", None, None, "why", "", "same")
    assert found.wrongly_correct is (expected == "cheating")
    named = "3 level1/1 is correct here, and was written as cheating" in summary([found])
    assert named is (expected == "cheating")
    assert "1 could not be judged" in summary([found])


def test_the_table_and_the_summary_name_what_differs() -> None:
    pairs = [
        pair(times(1.00, 0.01), times(1.015, 0.01)),  # the intervals overlap, the ratio is beyond both
        pair(times(1.00, 0.01), times(1.10, 0.01)),
        pair(None, times(1.0, 0.01), "cheating"),
        pair(None, None, "build_error", "build_error"),
    ]
    assert [p.agree for p in pairs] == [True, False, None, None]
    lines = shown(pairs).splitlines()
    assert ["agree" in line for line in lines] == [False, True, False, False, False]
    assert "DIFFER" in lines[2] and "cheating, alone correct" in lines[3]
    said = summary(pairs)
    assert "3 of 4 statuses are the same" in said
    assert "1 of 2 speedups agree; 2 beyond both" in said
    assert "in the batch: cheating, why" in said and "alone: correct, because" in said
