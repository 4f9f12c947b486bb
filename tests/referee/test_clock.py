"""The clock's arithmetic: times that cannot be, and work that only the outer clock sees."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pipeline.contestant import loop
from pipeline.nouns import Pace
from pipeline.referee.seats.memory import MAX_SLOTS, MAX_SMALL_SLOTS
from pipeline.referee.timing import clock
from pipeline.referee.timing.rounds import SHORT_BLOCK_MS
from pipeline.referee.timing.stopping import MIN_ROUNDS, SURE_ROUNDS

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


BLOCK_COST = 0.7


def rounds_with(
    hidden: float, *, count: int, inside: float = 2.0, calls: tuple[int, ...] = (4, 12), jitter: float = 0.0
) -> list[clock.Round]:
    """Rounds whose loop costs half a millisecond a call, whose blocks cost the candidate `BLOCK_COST` more,
    and whose candidate hides `hidden` ms a call."""
    source, made = random.Random(count), []
    for number in range(count):
        n = calls[number % len(calls)]
        noise = source.uniform(-jitter, jitter)
        host, baseline_host = n * (inside + hidden + 0.5) + BLOCK_COST + noise, n * (1.0 + 0.5)
        made.append(clock.Round("BC", [1.0] * n, [inside] * n, host, baseline_host))
    return made


@given(st.floats(0, 100), st.floats(0.1, 100), st.integers(1, 8))
def test_hidden_work_is_what_each_further_call_adds(hidden: float, inside: float, few: int) -> None:
    rounds = rounds_with(hidden, count=12, inside=inside, calls=(few, few + 8))
    rounds[0].host_ms += 500
    rounds[1].baseline_host_ms += 500
    assert clock.loop_cost_ms(rounds) == pytest.approx(0.5)
    assert clock.unseen_ms(rounds)[0] == pytest.approx(hidden, abs=1e-6)


def test_blocks_that_are_evened_out_have_no_slope_and_are_seen_all_the_same() -> None:
    rounds = rounds_with(0.0, count=24, inside=0.01)
    for r in rounds:
        r.host_ms = 12 * 5.0
    assert clock.unseen_ms(rounds)[0] > 4.0
    assert clock.hides_work(rounds)


def test_what_a_block_may_cost_is_no_speedup() -> None:
    """Half of each call is hidden, and short blocks idle until they have as much beside their calls."""
    rounds = [
        clock.Round("BC", [0.3] * n, [0.15] * n, 0.15 * n + 0.45 + 0.05 * n, 0.3 * n + 0.05 * n)
        for n in (2, 3) * 12
    ]
    told = clock.conclude(rounds, backend="cpp")
    assert told.speedup == pytest.approx(2.0)
    assert told.speedup_interval.low < 1.0
    assert told.pace is Pace.UNRESOLVED


def test_with_a_single_length_the_block_is_not_told_from_its_calls() -> None:
    rounds = rounds_with(1.0, count=8, calls=(4,))
    assert clock.unseen_ms(rounds)[0] == pytest.approx(1.0 + BLOCK_COST / 4)


def test_a_few_honest_rounds_do_not_hide_the_others() -> None:
    rounds = rounds_with(0.0, count=4) + rounds_with(3.0, count=12)
    assert clock.unseen_ms(rounds)[0] == pytest.approx(3.0)
    assert clock.hides_work(rounds)


@given(st.floats(0.05, 1.0))
def test_what_is_unseen_only_perhaps_is_not_held_against_anybody(jitter: float) -> None:
    rounds = rounds_with(0.0, count=24, jitter=jitter)
    assert clock.certainly_unseen_ms(rounds) < jitter / 4
    assert clock.conclude(rounds, backend="cpp").candidate_ms < 2.0 + jitter / 4


def test_an_outer_clock_that_does_not_vouch_is_the_claim_and_the_interval_holds_both() -> None:
    rounds = rounds_with(2.0, count=6, inside=1.0, jitter=40.0)
    assert not clock.vouched(rounds)
    assert not clock.hides_work(rounds)
    told = clock.conclude(rounds, backend="cpp")
    assert told.pace is Pace.UNRESOLVED
    assert told.speedup_interval.low < 0.5 < 0.9 < told.speedup_interval.high


def until_vouched(
    source: random.Random,
    host: Callable[[int], float],
    call_ms: float,
    share: float,
    counts: tuple[int, int],
    most: int,
) -> list[clock.Round]:
    """Rounds of these counts of calls, until the outer clock vouches or there are `most`.

    The candidate's clock shows `share` of its time; `host` is what the outer one shows of a block.
    """
    rounds: list[clock.Round] = []
    while len(rounds) < MIN_ROUNDS or not (clock.vouched(rounds) or len(rounds) >= most):
        for n in source.sample(counts, 2):
            rounds.append(clock.Round("BC", [call_ms] * n, [call_ms * share] * n, host(n), host(n)))
    return rounds


def measured_until_vouched(seed: int, noise: float, share: float) -> list[clock.Round]:
    """Rounds of half a millisecond a call on a busy machine, as many as the stopwatch would take; the
    candidate's clock shows `share` of its time. Noise is in ms a block, five times as much in one of five."""
    source = random.Random(seed)

    def host(calls: int) -> float:
        return 0.5 * calls + 1 + abs(source.gauss(0, noise)) * (5 if source.random() < 0.2 else 1)

    return until_vouched(source, host, 0.5, share, (6, 16), 3 * SURE_ROUNDS)


@pytest.mark.parametrize("noise", [0.2, 1.0, 2.0, 8.0])
def test_a_slow_clock_gains_nothing_by_noise_however_often_it_tries(noise: float) -> None:
    """The seeds are fixed: were the estimate believed as soon as it agrees, a few of them would get 8x."""
    for seed in range(100):
        rounds = measured_until_vouched(seed, noise, 1 / 8)
        if not clock.hides_work(rounds) and not clock.blurred(rounds):
            told = clock.conclude(rounds, backend="cpp")
            assert told.speedup < 1.3 and told.pace is not Pace.FASTER


@pytest.mark.parametrize("noise", [0.2, 1.0, 2.0, 8.0, 30.0])
def test_who_blurs_the_clock_by_itself_gains_nothing(noise: float) -> None:
    """It computes for half a millisecond, says an eighth of that, and idles at random in its own blocks."""
    seen = 0
    for seed in range(100):
        source, rounds = random.Random(seed), []
        for n in (6, 16) * SURE_ROUNDS:
            idle = source.choice([0.0, 0.0, 1.0]) * noise * n * source.random()
            host, baseline = 0.5 * n + 1 + idle, 0.5 * n + 1 + abs(source.gauss(0, 0.05))
            rounds.append(clock.Round("BC", [0.5] * n, [0.5 / 8] * n, host, baseline))
        assert clock.sharp_around_baseline(rounds)
        seen += clock.blurred(rounds)
        if not clock.hides_work(rounds):
            told = clock.conclude(rounds, backend="cpp")
            assert told.speedup < 1.3 and told.pace is not Pace.FASTER
    assert seen > 0


def test_a_busy_machine_blurs_the_clock_around_both() -> None:
    blurred = 0
    for seed in range(100):
        rounds = measured_until_vouched(seed, 8.0, 1 / 8)
        if clock.blurred(rounds) and not clock.hides_work(rounds):
            blurred += 1
            assert not clock.sharp_around_baseline(rounds)
    assert blurred > 0


def short_calls_until_vouched(seed: int, call_ms: float, share: float) -> list[clock.Round]:
    """The same for short calls on a GPU, 0.15 ms of noise a block, as many calls as the stopwatch makes."""
    source = random.Random(seed)
    many = min(MAX_SMALL_SLOTS, max(MAX_SLOTS, round(SHORT_BLOCK_MS / call_ms)))

    def host(calls: int) -> float:
        return (call_ms + 0.1) * calls + 3 + source.gauss(0, 0.15)

    return until_vouched(source, host, call_ms, share, (many // 3, many), 3 * SURE_ROUNDS)


@pytest.mark.parametrize("call_ms", [0.004, 0.01, 0.03, 0.1, 0.2])
def test_the_time_of_a_short_call_cannot_be_a_tenth_of_the_truth(call_ms: float) -> None:
    for seed in range(60):
        rounds = short_calls_until_vouched(seed, call_ms, 0.1)
        assert clock.hides_work(rounds) or clock.conclude(rounds, backend="cuda").speedup < 1.3


@pytest.mark.parametrize("call_ms", [0.01, 0.03, 0.1, 0.2])
def test_an_honest_short_call_is_vouched_for(call_ms: float) -> None:
    for seed in range(60):
        rounds = short_calls_until_vouched(seed, call_ms, 1.0)
        assert clock.vouched(rounds)
        assert clock.conclude(rounds, backend="cuda").speedup == pytest.approx(1.0, abs=0.01)


def test_who_hides_work_in_every_round_is_convicted_by_few() -> None:
    rounds = rounds_with(3.0, count=8, inside=0.5)
    assert clock.flagrant(rounds) and clock.hides_work(rounds)
    assert not clock.flagrant(rounds + rounds_with(0.0, count=1, inside=0.5))


@pytest.mark.parametrize("noise", [0.2, 1.0, 2.0, 8.0])
def test_no_honest_clock_is_flagrant_on_a_busy_machine(noise: float) -> None:
    for seed in range(100):
        assert not clock.flagrant(measured_until_vouched(seed, noise, 1.0)[:MIN_ROUNDS])


@pytest.mark.parametrize("noise", [0.0, 0.05, 0.2])
def test_an_honest_clock_loses_nothing_on_a_quiet_machine(noise: float) -> None:
    for seed in range(100):
        rounds = measured_until_vouched(seed, noise, 1.0)
        assert clock.vouched(rounds)
        assert clock.conclude(rounds, backend="cpp").speedup == pytest.approx(1.0, abs=0.01)


@given(st.floats(0.2, 0.9))
def test_a_clock_that_runs_slow_gains_nothing(share: float) -> None:
    rounds = rounds_with(2.0 * (1 - share), count=24, inside=2.0 * share, jitter=0.01)
    told = clock.conclude(rounds, backend="cuda")
    assert told.candidate_ms == pytest.approx(2.0, rel=0.02)
    assert told.speedup == pytest.approx(0.5, rel=0.02)


@given(st.integers(2, 16), st.floats(0.01, 10))
def test_a_first_call_that_does_the_work_of_all_gains_nothing(calls: int, each: float) -> None:
    done = [each * calls, *[1e-6] * (calls - 1)]
    rounds = [clock.Round("BC", [each] * calls, done, 0.0, 0.0) for _ in range(10)]
    for r in rounds:
        r.host_ms, r.baseline_host_ms = sum(r.candidate), sum(r.baseline)
    assert clock.conclude(rounds, backend="cpp").speedup <= 1.01


@given(st.integers(2, 16), st.floats(0.01, 10), st.integers(4, 24), st.randoms(use_true_random=False))
def test_nor_does_one_that_takes_it_very_unevenly(
    calls: int, each: float, count: int, source: random.Random
) -> None:
    rounds = []
    for _ in range(count):
        done = [each * calls * source.choice([1, 2, 10]), *[1e-6] * (calls - 1)]
        rounds.append(clock.Round("BC", [each] * calls, done, sum(done), each * calls))
    told = clock.conclude(rounds, backend="cpp")
    assert told.speedup <= 1.01
    assert told.pace is not Pace.FASTER


@given(st.tuples(st.integers(2, 4), st.integers(5, 16)), st.floats(0.5, 4.0), st.floats(0.01, 0.2))
def test_cold_first_calls_of_both_sides_change_no_ratio(
    calls: tuple[int, int], ratio: float, cold: float
) -> None:
    """As on an H200, where a block of one or two calls said another speedup than one of sixteen."""
    rounds = []
    for n in calls * 6:
        baseline, candidate = [0.1 * ratio + cold, *[0.1 * ratio] * (n - 1)], [0.1 + cold, *[0.1] * (n - 1)]
        rounds.append(clock.Round("BC", baseline, candidate, sum(candidate), sum(baseline)))
    told = clock.conclude(rounds, backend="cuda", alone_ms=[0.1 * ratio] * 5)
    assert told.speedup == pytest.approx(ratio)
    assert told.candidate_ms == pytest.approx(0.1)
    assert told.baseline_ms == pytest.approx(0.1 * ratio)


@given(st.floats(-3.0, clock.BLOCK_MS - BLOCK_COST), st.integers(4, 8), st.integers(4, 8))
def test_pairs_whose_blocks_cost_differently_leave_no_doubt(offset: float, few: int, other: int) -> None:
    """Each pair of processes has its own cost of a block, and its own numbers of calls: a slope over all
    rounds was that of nobody, and took a third off an honest claim."""
    rounds = rounds_with(0.0, count=12, inside=0.4, calls=(few, 16))
    for r in rounds_with(0.0, count=12, inside=0.4, calls=(other, 16)):
        rounds.append(clock.Round("BC", r.baseline, r.candidate, r.host_ms + offset, r.baseline_host_ms, 1))
    assert clock.unseen_ms(rounds)[0] == pytest.approx(0.0, abs=1e-9)
    assert clock.vouched(rounds)
    assert clock.conclude(rounds, backend="cuda").candidate_ms == pytest.approx(0.4)


@given(st.floats(0.6, 5.0))
def test_a_baseline_that_is_slowed_counts_as_fast_as_it_is_alone(factor: float) -> None:
    slow = 1 + factor
    rounds = [clock.Round("BC", [slow] * 4, [1.0] * 4, 6.0, 4 * slow + 2) for _ in range(10)]
    told = clock.conclude(rounds, backend="cuda", alone_ms=[1.0] * 5)
    assert told.speedup == pytest.approx(1.0)
    assert told.baseline_ms == pytest.approx(1.0)
    assert clock.slowed_by(rounds, [1.0] * 5) == pytest.approx(factor)


def test_a_baseline_that_was_disturbed_now_and_then_is_left_alone() -> None:
    rounds = [clock.Round("BC", [5.0 if n % 2 else 1.0] * 4, [1.0] * 4, 6.0, 6.0) for n in range(12)]
    assert clock.slowed_by(rounds, [1.0] * 5) == 0.0


def test_several_pairs_of_processes_widen_the_interval_by_how_far_they_are_apart() -> None:
    def pair(session: int, baseline: float) -> list[clock.Round]:
        host = 4 * baseline + 2
        return [clock.Round("BC", [baseline] * 4, [1.0] * 4, 6.0, host, session) for _ in range(8)]

    near = clock.conclude(pair(0, 2.0) + pair(1, 2.0) + pair(2, 2.0), backend="cuda")
    far = clock.conclude(pair(0, 1.96) + pair(1, 2.0) + pair(2, 2.04), backend="cuda")
    assert near.speedup == pytest.approx(2.0)
    assert near.speedup_interval.high / near.speedup_interval.low < 1.01
    assert far.speedup_interval.low < 1.96
    assert far.speedup_interval.high > 2.04


@pytest.mark.parametrize(("ratio", "close"), [(1.0, False), (1.03, True), (0.91, True), (1.3, False)])
def test_only_small_differences_need_a_second_pair(ratio: float, close: bool) -> None:
    rounds = [clock.Round("BC", [ratio] * 4, [1.0] * 4, 6.0, 4 * ratio + 2) for _ in range(8)]
    assert clock.close_call(rounds, "cuda") is close


def test_what_only_the_spread_of_the_rounds_forbids_to_claim_is_measured_on() -> None:
    def rounds(baseline: float, noise: float) -> list[clock.Round]:
        """The noise is in both sides: in the ratio of each round there is none."""
        slow = [1 + noise * (number % 4 // 2) for number in range(12)]
        return [clock.Round("BC", [f * baseline] * 4, [f] * 4, 6 * f, 4 * f * baseline + 2 * f) for f in slow]

    told = clock.conclude(rounds(1.03, 0.05), backend="cuda")
    assert told.pace is not Pace.FASTER
    assert clock.undecided(told)
    for baseline, noise in ((1.03, 0.0), (1.0, 0.05), (1.5, 0.05)):
        assert not clock.undecided(clock.conclude(rounds(baseline, noise), backend="cuda"))


def test_pairs_that_disagree_decide_nothing() -> None:
    first = [clock.Round("BC", [1.04] * 4, [1.0] * 4, 6.0, 6.16, 0) for _ in range(8)]
    second = [clock.Round("BC", [1.0] * 4, [1.0] * 4, 6.0, 6.0, 1) for _ in range(8)]
    assert clock.conclude(first, backend="cuda").pace is Pace.FASTER
    assert clock.conclude(first + second, backend="cuda").pace is Pace.UNRESOLVED


def test_ratios_are_above_zero_where_the_candidate_is_faster() -> None:
    rounds = [clock.Round("BC", [9.0, 2.0, 2.0, 9.0], [1.0] * 4, 4.0, 22.0)]
    assert clock.log_ratios(rounds) == [pytest.approx(math.log(2))]


def delivered(
    forward: loop.Forward, arguments: list[list[torch.Tensor]], *places: list[torch.Tensor]
) -> list[float]:
    slots = [loop.Slot(each) for each in arguments]
    return loop.run_block(forward, slots, loop.Flush(0, CPU), CPU, lambda: places)


def test_the_loop_calls_once_for_each_slot_and_delivers() -> None:
    places = [[torch.empty(2, 3)] for _ in range(4)]
    times = delivered(lambda x: x + 1, [[torch.full((2, 3), float(n))] for n in range(4)], *places)
    assert len(times) == 4
    assert all(t > 0 for t in times)
    assert [float(place[0][0, 0]) for place in places] == [1.0, 2.0, 3.0, 4.0]


def test_the_places_are_asked_for_when_all_calls_are_made() -> None:
    made: list[str] = []
    place = [torch.empty(1)]

    def forward(x: torch.Tensor) -> torch.Tensor:
        made.append("call")
        return x

    def places() -> list[list[torch.Tensor]]:
        made.append("places")
        return [place, place]

    slots = [loop.Slot([torch.zeros(1)]), loop.Slot([torch.ones(1)])]
    loop.run_block(forward, slots, loop.Flush(0, CPU), CPU, places)
    assert made == ["call", "call", "places"]


def test_strided_and_nested_results_are_delivered_whole() -> None:
    x = torch.arange(6.0).view(2, 3)
    place = [torch.empty(3, 2), torch.empty(2, 3), torch.empty((), dtype=torch.int64)]
    delivered(lambda x: {"b": [x * 2, 5], "a": x.t()}, [[x]], place)
    assert torch.equal(place[0], x.t())
    assert torch.equal(place[1], x * 2)
    assert place[2] == 5


@pytest.mark.parametrize(
    "wrong", [lambda x: x[:1], lambda x: x.double(), lambda x: (x, x), lambda x: None, lambda x: x.to("meta")]
)
def test_a_result_that_does_not_fit_ends_the_block(wrong: loop.Forward) -> None:
    with pytest.raises(ValueError, match="another shape or dtype"):
        delivered(wrong, [[torch.zeros(2, 3)]], [torch.zeros(2, 3)])


def test_an_interval_on_a_cpu_holds_what_pairs_differ_by_today() -> None:
    """On a shared machine pairs of processes differ by more than the rounds of either can know."""
    rounds = [clock.Round("BC", [1.2] * 4, [1.0] * 4, 6.0, 6.8) for _ in range(8)]
    for backend, least, most in (("cpp", 0.12, 0.13), ("cuda", 0.0, 0.01)):
        interval = clock.conclude(rounds, backend=backend, device_spread=0.04).speedup_interval
        assert least <= math.log(interval.high / interval.low) / 2 <= most
