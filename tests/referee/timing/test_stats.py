"""Statistics: intervals hold what they are of, and no more is claimed than the noise allows."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from statistics import median

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelproof.types import Interval, Pace
from kernelproof.verifier.referee.timing import stats
from kernelproof.verifier.referee.timing.pace import SAME_WITHIN, pace_of, resolution_of, unresolved_because

samples = st.lists(st.floats(-50, 50), min_size=1, max_size=40)


@given(samples)
@settings(max_examples=40)
def test_the_interval_holds_the_median_and_lies_within_the_samples(values: list[float]) -> None:
    found = stats.bootstrap_median(values)
    assert min(values) <= found.low <= median(values) <= found.high <= max(values)


@given(samples)
@settings(max_examples=20)
def test_the_same_samples_give_the_same_interval(values: list[float]) -> None:
    assert stats.bootstrap_median(values) == stats.bootstrap_median(list(values))


def test_more_samples_narrow_the_interval() -> None:
    source = random.Random(3)
    values = [source.gauss(0, 1) for _ in range(400)]
    few, many = stats.bootstrap_median(values[:10]), stats.bootstrap_median(values)
    assert stats.half_width(many) < stats.half_width(few) / 2


def test_the_interval_holds_the_true_median_about_as_often_as_it_says() -> None:
    source = random.Random(4)
    inside = 0
    for _ in range(100):
        found = stats.bootstrap_median([source.gauss(1, 1) for _ in range(25)])
        inside += found.low <= 1 <= found.high
    assert inside >= 85


@given(st.floats(-20, 20), st.floats(0, 20))
def test_ratios_come_of_their_logarithms(low: float, width: float) -> None:
    found = stats.exponential(Interval(low=low, high=low + width))
    assert (found.low, found.high) == (math.exp(low), math.exp(low + width))


def test_noise_of_the_baseline_against_itself() -> None:
    assert stats.aa_spread([(4, 1.0)] * 20) == 0.0
    assert stats.aa_spread([(4, 0.0), (4, 0.1)] * 20) > 0.05
    assert stats.aa_spread([(4, 1.0), (4, 1.0)]) == math.inf
    assert stats.aa_spread([(4, 0.0), (8, 0.1)] * 20) == 0.0, "blocks of other lengths are other blocks"


@pytest.mark.parametrize(("spread", "smallest"), [(0.0, 0.01), (0.001, 0.01), (0.02, 0.06)])
def test_no_difference_below_one_per_cent_or_three_spreads_is_claimed(spread: float, smallest: float) -> None:
    assert resolution_of(spread) == pytest.approx(smallest)


@pytest.mark.parametrize(
    ("low", "high", "pace"),
    [
        (1.2, 1.4, Pace.FASTER),
        (0.5, 0.8, Pace.SLOWER),
        (0.995, 1.005, Pace.SAME),
        (0.9, 1.1, Pace.UNRESOLVED),
        (1.005, 1.2, Pace.UNRESOLVED),
        (0.9, 1.0, Pace.UNRESOLVED),
    ],
)
def test_what_an_interval_allows_to_say(low: float, high: float, pace: Pace) -> None:
    assert pace_of(Interval(low=low, high=high), 0.01) is pace


SPREADS = st.floats(0, 1) | st.just(math.inf)


@given(st.floats(0.001, 1), st.floats(0.5, 1.1), SPREADS)
def test_what_is_surely_slower_is_slower_whatever_the_spread(
    share: float, high: float, spread: float
) -> None:
    """`slower`: the whole interval lies below 1 less the resolution, of which at most 5 % count."""
    resolved = min(resolution_of(spread), SAME_WITHIN)
    found = pace_of(Interval(low=share * high, high=high), resolution_of(spread))
    assert (found is Pace.SLOWER) == (high < 1 / (1 + resolved))


@given(st.floats(0.01, 1.0), SPREADS, st.floats(1.0, 2.0))
def test_where_one_clock_shows_no_loss_slower_has_to_exceed_the_spread(
    high: float, spread: float, highest: float
) -> None:
    found = pace_of(Interval(low=high / 2, high=high), resolution_of(spread), highest)
    assert (found is Pace.SLOWER) == (high < 1 / (1 + max(0.01, 3 * spread)))


@given(st.floats(0.01, 10), st.floats(1, 10), SPREADS)
def test_faster_has_to_exceed_the_spread_as_before(low: float, factor: float, spread: float) -> None:
    smallest = resolution_of(spread)
    found = pace_of(Interval(low=low, high=low * factor), smallest)
    assert (found is Pace.FASTER) == (low > 1 + max(0.01, 3 * spread))


@given(st.floats(0.01, 10), st.floats(1, 10), SPREADS)
def test_only_what_is_unresolved_has_a_reason(low: float, factor: float, spread: float) -> None:
    interval, smallest = Interval(low=low, high=low * factor), resolution_of(spread)
    unresolved = pace_of(interval, smallest) is Pace.UNRESOLVED
    assert bool(unresolved_because(interval, smallest)) == unresolved


@pytest.mark.parametrize(
    ("low", "high", "spread", "because"),
    [
        (0.9, 1.1, 0.0, "its interval holds 1"),
        (1.2, 1.4, 0.67, "no difference below 201 % is claimed: the A/A spread is 67 %"),
        (0.93, 0.97, 0.67, "no difference below 5 % is claimed: the A/A spread is 67 %"),
        (1.005, 1.2, 0.0, "no difference below 1 % is claimed"),
        (1.2, 1.4, math.inf, "there are too few rounds to know the A/A spread"),
    ],
)
def test_why_an_interval_resolves_nothing(low: float, high: float, spread: float, because: str) -> None:
    assert unresolved_because(Interval(low=low, high=high), resolution_of(spread)) == because


@given(st.floats(-0.1, 0), st.floats(0, 0.1), st.floats(0, 0.1))
def test_widening_never_narrows(low: float, high: float, spread: float) -> None:
    wide = stats.widened(Interval(low=low, high=high), 0.0, spread)
    assert wide.low <= min(low, -spread) + 1e-12
    assert wide.high >= max(high, spread) - 1e-12


@pytest.mark.parametrize("count", [4, 8, 12, 24])
@pytest.mark.parametrize("draw", [random.Random.gauss, lambda r, m, s: r.lognormvariate(m, s) - 1])
def test_the_median_is_hardly_ever_below_what_it_surely_is(
    count: int, draw: Callable[[random.Random, float, float], float]
) -> None:
    """Both distributions have the median 0."""
    source, risk = random.Random(count), 0.05
    above = sum(stats.sure_low([draw(source, 0.0, 1.0) for _ in range(count)], risk) > 0 for _ in range(2000))
    assert above / 2000 < max(0.06, 1.3 * 0.5**count)  # of four the smallest is above in one of sixteen


@pytest.mark.parametrize(
    ("count", "risk", "rank"), [(7, 0.005, 0), (8, 0.005, 1), (12, 0.005, 2), (16, 0.005, 3), (24, 0.005, 6)]
)
def test_ranks_are_those_of_a_fair_coin(count: int, risk: float, rank: int) -> None:
    assert stats.sure_rank(count, risk) == rank


@pytest.mark.parametrize("count", [4, 8, 12, 24, 60])
@pytest.mark.parametrize("draw", [random.Random.gauss, lambda r, m, s: (r.random() - 0.5) ** 7])
def test_the_centre_is_hardly_ever_outside_of_where_it_surely_is(
    count: int, draw: Callable[[random.Random, float, float], float]
) -> None:
    """Both distributions are symmetric about 0."""
    source, risk, outside = random.Random(count), 0.05, 0
    for _ in range(1000):
        found = stats.sure_centre([draw(source, 0.0, 1.0) for _ in range(count)], risk)
        outside += found.low > 0
    assert outside / 1000 < 0.065


@pytest.mark.parametrize(
    ("count", "risk", "rank"), [(7, 0.005, 0), (8, 0.005, 1), (10, 0.005, 4), (16, 0.01, 24)]
)
def test_ranks_are_those_of_wilcoxons_tables(count: int, risk: float, rank: int) -> None:
    """The published critical values of the one-sided test are one less than the first rank that is kept."""
    assert stats.signed_rank(count, risk) == rank


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=20), st.floats(0, 3), st.integers(0, 19))
def test_to_make_one_value_greater_makes_no_bound_smaller(
    values: list[float], more: float, which: int
) -> None:
    """All that a candidate can do to the outer clock is to make a block longer."""
    changed = list(values)
    changed[which % len(values)] += more
    if len(values) >= 8:
        assert stats.sure_centre(changed, 0.005).high >= stats.sure_centre(values, 0.005).high


def test_a_quarter_of_other_values_does_not_hide_the_rest() -> None:
    values = [0.0 if k % 4 == 0 else 3.0 + 0.01 * k for k in range(24)]
    assert stats.sure_low(values, 0.05) == pytest.approx(3.0, abs=0.1)
