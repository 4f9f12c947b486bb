"""Other programs that want the core stretch blocks by a share of their length: nobody gains by it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelproof.verifier.referee.timing import claim, clock

SHARES = st.floats(0.05, 0.99)


def beside_others(share: float, stretched: float, n: int) -> clock.Round:
    """Other programs interrupt candidate and baseline, so that calls take `stretched` times as long in all.

    The baseline's call takes 1 ms. The candidate takes `share` of it, and tells an eighth of its time. The
    interruptions fall on a few calls, so most calls take what they take alone.
    """
    waits = (stretched - 1) * n
    baseline = [1.0] * n
    for place in (n // 2, n - 1) if n > 5 else (n - 1,):
        baseline[place] += waits / (2 if n > 5 else 1)
    return clock.Round("BC", baseline, [share / 8] * n, n * (0.5 + share * stretched), n * (0.5 + stretched))


def test_a_candidate_that_slows_its_clock_gains_nothing_where_other_programs_want_the_core() -> None:
    """It was `faster`, by 16, on two cores with a load of 10. The truth is 2.4: what its block saves has
    waits in it, and the baseline's call has none."""
    rounds = [beside_others(1 / 2.4, 1.6, n) for n in (12, 16) * 8]
    plain = [1 + (r.host_ms - r.baseline_host_ms) / len(r.baseline) for r in rounds]
    assert plain == pytest.approx([1 - 1.6 * (1 - 1 / 2.4)] * 16)  # 1 / 15: far too short
    told = claim.conclude(rounds, backend="cpp")
    assert 2.2 < told.speedup <= 2.4 * claim.REACH


@given(SHARES, st.floats(1.0, 3.0), st.integers(4, 16))
def test_what_stretches_both_blocks_makes_no_outer_time_shorter_and_none_much_longer(
    share: float, stretched: float, n: int
) -> None:
    shown = clock.outer_call_ms(beside_others(share, stretched, n))
    assert share * (1 - 1e-9) <= shown <= share + 1 / n


@given(st.floats(1.0, 9.0), st.floats(1.0, 3.0), st.integers(3, 16))
def test_a_slower_candidate_is_not_excused_by_what_stretched_its_block(
    share: float, stretched: float, n: int
) -> None:
    assert clock.outer_call_ms(beside_others(share, stretched, n)) >= share * (1 - 1e-9)


@given(st.floats(0.01, 5.0), st.integers(2, 16))
def test_a_cold_first_call_is_no_stretch(cold: float, n: int) -> None:
    assert clock.stretch([1.0 + cold, *[1.0] * (n - 1)]) == 1.0


@given(st.lists(st.floats(1e-6, 1e9), min_size=1, max_size=16))
def test_no_calls_shorten_a_block(times: list[float]) -> None:
    assert clock.stretch(times) >= 1.0
