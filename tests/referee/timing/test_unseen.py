"""Time that is not on the candidate's own clock, and that an honest program can cause."""

from __future__ import annotations

import pytest

from kernelproof.referee.timing import claim, clock
from tests.referee.timing.test_clock import rounds_with


@pytest.mark.parametrize(("hidden", "within"), [(0.6, True), (2.0, False)])
def test_a_pool_that_spins_may_double_the_cost_of_the_loop_and_no_more(hidden: float, within: bool) -> None:
    rounds = rounds_with(hidden, count=24, inside=1.0)  # the loop costs half a millisecond a call
    assert clock.hides_work(rounds)
    assert clock.is_within_the_loop(rounds) == within


def test_what_is_used_while_held_is_claimed_by_nobody_and_convicts_nobody() -> None:
    """The candidate is as fast as the baseline, and did half of each block's work before it."""
    early = 8.0
    rounds = [
        clock.Round("BC", [1.0] * 16, [0.5] * 16, 16 * 1.0 + 8.0, 16 * 1.5, held_ms=early) for _ in range(24)
    ]
    assert claim.conclude(rounds, backend="cuda").speedup <= claim.REACH
    assert not clock.hides_work(rounds)
