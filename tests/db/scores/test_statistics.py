"""Intervals and tests, against other ways to compute them, and against values from textbooks."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelproof.db.scores import statistics
from tests.db.scores import reference


@given(st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilsons_interval_solves_its_equation(counts: tuple[int, int]) -> None:
    found = statistics.wilson(*counts)
    assert found is not None
    assert (found.low, found.high) == pytest.approx(reference.wilson(*counts), abs=1e-9)


def test_nothing_is_said_of_a_rate_of_nothing() -> None:
    assert statistics.wilson(0, 0) is None


@given(st.integers(1, 30).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))))
def test_pass_at_k_is_the_quotient_of_binomial_coefficients(case: tuple[int, int, int]) -> None:
    n, c, k = case
    found = statistics.pass_at_k(np.array([n]), np.array([c]), k)
    assert found[0] == pytest.approx(1 - math.comb(n - c, k) / math.comb(n, k), abs=1e-12)


@settings(max_examples=60)
@given(st.lists(st.integers(-4, 4).map(float), min_size=1, max_size=9))
def test_the_signed_rank_test_tries_all_signs(differences: list[float]) -> None:
    found = statistics.signed_rank_test(np.array(differences))
    assert found == pytest.approx(reference.signed_rank(differences), abs=1e-12)


def test_many_pairs_come_close_to_the_exact_test() -> None:
    drawn = np.random.default_rng(1).normal(0.3, 1.0, 25)
    exact = statistics.signed_rank_test(drawn)
    more = statistics.signed_rank_test(np.append(drawn, 1e-9))  # the smallest rank: hardly anything
    assert 0 < exact < 1 and more == pytest.approx(exact, rel=0.15)


@pytest.mark.parametrize(
    ("wins", "losses", "p"), [(0, 0, 1.0), (1, 1, 1.0), (5, 0, 2 / 32), (8, 1, 20 / 512), (3, 4, 1.0)]
)
def test_the_sign_test_counts_the_tails_of_fair_coins(wins: int, losses: int, p: float) -> None:
    assert statistics.sign_test(wins, losses) == statistics.sign_test(losses, wins) == pytest.approx(p)


def test_the_bootstrap_comes_near_the_normal_interval_and_repeats_itself() -> None:
    drawn = np.random.default_rng(2).normal(5.0, 1.0, 400)
    found = statistics.mean_interval(drawn)
    assert found is not None and found == statistics.mean_interval(drawn)
    half = 1.96 * drawn.std() / 20
    assert found.low == pytest.approx(drawn.mean() - half, abs=0.02)
    assert found.high == pytest.approx(drawn.mean() + half, abs=0.02)
    ratio = statistics.ratio_interval(2 * drawn, drawn)
    assert ratio is not None and (ratio.low, ratio.high) == pytest.approx((2.0, 2.0))


def test_one_problem_has_no_interval() -> None:
    one = np.array([2.0])
    assert statistics.mean_interval(one) is statistics.ratio_interval(one, one) is None
    assert statistics.median_interval(np.arange(5.0)) is None


@pytest.mark.parametrize(("count", "place"), [(6, 0), (8, 0), (9, 1), (20, 5), (50, 17), (5000, 2430)])
def test_a_medians_interval_has_the_places_of_the_tables(count: int, place: int) -> None:
    """Such as Conover's table A3: for 20 values the 6th and the 15th. Places are counted from 0 here."""
    found = statistics.median_interval(np.arange(float(count)))
    assert found is not None and (found.low, found.high) == (place, count - 1 - place)
