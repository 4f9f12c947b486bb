"""The pace of whole measurements: what is surely slower is slower, and what is unresolved says why."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kernelproof.types import Pace
from kernelproof.verifier.referee.timing import claim, clock
from kernelproof.verifier.referee.timing.pace import SAME_WITHIN


def alone(ms: float) -> dict[int, list[clock.Alone]]:
    return {0: [clock.Alone([ms] * 4, 4 * ms + 2)] * 5}


@given(st.lists(st.floats(1.2, 20.0), min_size=8, max_size=16), st.sampled_from((0.0, 0.67)))
def test_what_is_slower_in_a_wide_interval_is_slower(calls: list[float], device_spread: float) -> None:
    """0.07 [0.068, 0.30] was `unresolved`: the interval was wide, and the device's spread kept from a busy
    minute. Its upper end is what counts."""
    rounds = [clock.Round("BC", [1.0] * 4, [ms] * 4, 4 * ms + 2, 6.0) for ms in calls]
    told = claim.conclude(rounds, backend="cuda", alone=alone(1.0), device_spread=device_spread)
    near = min(told.resolution, SAME_WITHIN)
    assert (told.pace is Pace.SLOWER) == (told.speedup_interval.high < 1 / (1 + near))
    assert bool(told.unresolved_because) == (told.pace is Pace.UNRESOLVED)


def test_a_wide_interval_above_1_is_unresolved_and_says_so() -> None:
    rounds = [clock.Round("BC", [ms] * 4, [1.0] * 4, 6.0, 4 * ms + 2) for ms in (1.5, 1.6, 20.0, 19.0) * 3]
    told = claim.conclude(rounds, backend="cuda", alone=alone(20.0))
    assert told.pace is Pace.UNRESOLVED and told.unresolved_because is not None
    assert "half of its interval is" in told.unresolved_because
