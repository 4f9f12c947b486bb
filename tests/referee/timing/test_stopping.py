"""When measuring ends, by rounds that are made up."""

from __future__ import annotations

import pytest

from kernelproof.types import Rigor, VerifySettings
from kernelproof.verifier.referee.timing.clock import Round
from kernelproof.verifier.referee.timing.stopping import Stop, StoppingRule

STANDARD = VerifySettings(backend="cuda", rigor=Rigor.STANDARD)
"""6 s and 1 %."""


def why(
    rounds: list[Round], seconds: float, settings: VerifySettings = STANDARD, *, trusted: bool = False
) -> Stop | None:
    return StoppingRule.of(settings, trusted=trusted).decide(rounds, seconds)


def rounds(ratio: float = 1.03, *, noise: float = 0.0, spread: float = 0.0, count: int = 12) -> list[Round]:
    """`noise` is in the ratios, `spread` in both sides of a round alike. The clocks agree."""
    made = []
    for number in range(count):
        slower, one = 1 + spread * (number % 4 // 2), 1 + noise * (number % 4 - 1.5)
        baseline, candidate, calls = ratio * slower * one, slower, 4 + number % 2 * 4
        both = calls * baseline + 2, calls * candidate + 2
        made.append(Round("BC", [baseline] * calls, [candidate] * calls, both[1], both[0]))
    return made


@pytest.mark.parametrize(
    ("seconds", "count", "stops"),
    [(1, 6, None), (1, 8, Stop.RESOLVED), (7, 4, Stop.TIME_UP), (7, 2, None)],
)
def test_few_rounds_are_enough_only_when_time_is_up(seconds: float, count: int, stops: Stop | None) -> None:
    assert why(rounds(count=count), seconds) is stops


def test_a_wide_interval_uses_the_time_and_no_more() -> None:
    wide = rounds(1.0, noise=0.05)
    assert why(wide, 5.9) is None
    assert why(wide, 11.9) is None  # the outer clock does not reach what the inner one shows
    assert why(wide, 12.1) is Stop.TIME_UP
    assert why(wide, 6.1, trusted=True) is Stop.TIME_UP


def test_a_difference_that_only_the_spread_forbids_has_twice_as_long() -> None:
    """At the power cap of an H200 blocks of the same code spread by 2 to 3 %, and after 6 s no difference of
    3 % could be claimed, though it was known to half a percent."""
    forbidden = rounds(spread=0.05)
    assert why(forbidden, 11.9) is None
    assert why(forbidden, 12.1) is Stop.TIME_UP
    not_narrow = rounds(1.08, noise=0.02, spread=0.05)
    assert why(not_narrow, 11.9) is None
    assert why(not_narrow, 12.1) is Stop.TIME_UP
    assert why(rounds(1.5, spread=0.05), 1) is Stop.RESOLVED  # claimed in spite of it


def test_nothing_is_called_the_same_early_by_blocks_that_are_far_apart() -> None:
    """Ten rounds of a candidate 3 % slower once looked narrow by chance, at the power cap of an H200: they
    ended as "same", although nothing below 19 % could be told."""
    apart = rounds(1.0, spread=0.05)
    assert why(apart, 5.9) is None
    assert why(apart, 6.1) is Stop.TIME_UP
    assert why(apart, 1, STANDARD.model_copy(update={"rigor": Rigor.QUICK})) is Stop.RESOLVED
    assert why(rounds(1.0, spread=0.01), 1) is Stop.RESOLVED


def hiding(ms: float, count: int) -> list[Round]:
    """So much of each call is on the outer clock alone."""
    return [
        Round(r.order, r.baseline, r.candidate, r.host_ms + ms * len(r.candidate), r.baseline_host_ms)
        for r in rounds(count=count)
    ]


def test_a_clock_that_hides_all_of_it_in_each_round_needs_no_more() -> None:
    assert why(hiding(50, 8), 1) is Stop.HIDES_WORK


def test_where_the_clocks_contradict_each_other_so_many_rounds_are_made_that_it_is_known_well() -> None:
    most = StoppingRule.sure_rounds
    assert why(hiding(0.2, most - 2), 1) is None
    assert why(hiding(0.2, most), 1) is Stop.REFUTED
    assert why(hiding(0.2, most), 1, trusted=True) is Stop.RESOLVED


def test_no_measurement_has_more_rounds_than_the_rule_allows() -> None:
    wide = rounds(1.0, noise=0.2, count=StoppingRule.most_rounds)
    assert why(wide, 1) is Stop.MOST_ROUNDS
    assert why(wide[:-2], 1) is None


@pytest.mark.parametrize(
    ("rigor", "ratio", "pairs"),
    [
        (Rigor.QUICK, 1.03, 1),
        (Rigor.STANDARD, 1.03, 2),
        (Rigor.STANDARD, 1.3, 1),
        (Rigor.STANDARD, 1.0, 1),
        (Rigor.PUBLISH, 1.3, 3),
    ],
)
def test_the_pairs_of_processes_that_are_measured(rigor: Rigor, ratio: float, pairs: int) -> None:
    """At standard another pair confirms a close call."""
    rule = StoppingRule.of(STANDARD.model_copy(update={"rigor": rigor}))
    number = 1
    while rule.wants_pair(number, rounds(ratio)):
        number += 1
    assert number == pairs


def mostly_hiding(count: int, disturbed: int = 0) -> list[Round]:
    """Nearly all of 4 ms a call is hidden; in some rounds other programs hold the baseline up for as long."""
    made = []
    for number in range(count):
        held_up = 40.0 if number < disturbed else 0.0
        made.append(Round("BC", [1.0] * 4, [0.001] * 4, 4 * 4.0 + 2, 4 * 1.0 + 2 + held_up))
    return made


def test_who_hides_work_is_measured_until_that_is_proved_though_time_is_up() -> None:
    """On a busy machine time was up after few rounds, and one disturbed round spared the candidate."""
    assert why(mostly_hiding(4, disturbed=1), 13) is None
    assert why(mostly_hiding(8, disturbed=1), 20) is None
    assert why(mostly_hiding(14, disturbed=1), 20) is not None
    assert why(mostly_hiding(4), 7) is Stop.HIDES_WORK
    assert why(mostly_hiding(4, disturbed=1), 26.1) is Stop.TIME_UP  # not for ever
    assert why(mostly_hiding(4, disturbed=1), 13, trusted=True) is Stop.TIME_UP


@pytest.mark.parametrize(
    ("bar", "count", "stops"),
    [(None, 4, None), (0.0, 4, None), (1.5, 3, None), (1.5, 4, Stop.BELOW_BAR), (1.1, 4, None)],
)
def test_what_is_surely_below_the_bar_needs_four_rounds(
    bar: float | None, count: int, stops: Stop | None
) -> None:
    screening = STANDARD if bar is None else STANDARD.as_screening(bar)
    assert why(rounds(1.1, noise=0.02, count=count), 1, screening) is stops
    assert why(rounds(1.1, noise=0.02, count=count), 1, screening, trusted=True) is None
    rule = StoppingRule.of(screening)
    assert rule.is_below_bar(rounds(1.1, noise=0.02, count=count)) is (stops is Stop.BELOW_BAR)


def test_no_second_pair_is_measured_of_what_is_below_the_bar() -> None:
    publish = StoppingRule.of(VerifySettings(backend="cuda", rigor=Rigor.PUBLISH, bar=2.0))
    assert publish.wants_pair(1, rounds(1.95)) is False
    assert publish.wants_pair(1, rounds(2.05)) is True
