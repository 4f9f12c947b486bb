"""Curves equal a plain loop over the attempts, and end where the leaderboard's figures are."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from kernelproof.db.scores.filters import Filters
from kernelproof.db.store import Store
from tests.db import samples
from tests.db.scores import reference
from tests.db.scores.filling import fill, turns
from tests.db.scores.reference import Turn
from tests.db.scores.test_metrics import fresh

TOKENS = 30
"""Of each answer that `filling` makes."""
RUN = samples.settings()


def within(made: list[Turn], budget: float) -> float:
    """The geometric mean over all problems if each may cost so many tokens."""
    logs = []
    for problem in reference.by_problem(reference.deciding(made)):
        spent, best = 0, None
        for turn in (turn for turn in made if turn.problem == problem):
            spent += TOKENS
            if spent > budget:
                break
            if turn.speedup is not None and (best is None or turn.ranking > best.ranking):
                best = turn
        logs.append(math.log(best.counted) if best else 0.0)
    return math.exp(sum(logs) / len(logs))


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(made=turns())
def test_curves_are_what_a_plain_loop_finds(made: list[Turn], empty_database: Path, tmp_path: Path) -> None:
    with fresh(empty_database, tmp_path) as store:
        fill(store, RUN, made)
        board = store.scores.leaderboard(views=("model",))
        found = store.scores.curves()
        assert [(c.model, c.setting) for c in found] == [(s.model, s.setting) for s in board.models]
        for curves, scores in zip(found, board.models, strict=True):
            decided = reference.deciding(made)
            assert list(curves.speedups) == sorted(t.counted for t in decided if t.speedup is not None)
            for allowed, speedup in curves.turns:
                (some,) = store.scores.leaderboard(Filters(turns=allowed), ("model",)).models
                assert some.geometric_mean_all.value == pytest.approx(speedup)
            for budget, speedup in curves.budgets:
                if budget % TOKENS:  # a rounded budget may miss an answer that costs exactly as much
                    assert speedup == pytest.approx(within(made, budget))
            if curves.budgets:
                assert curves.budgets[-1][1] == pytest.approx(scores.geometric_mean_all.value)


def test_unknown_tokens_have_no_curve_over_budgets(store: Store) -> None:
    attempt = samples.begin(store, samples.problem(), RUN)
    store.record_response(attempt, samples.response().model_copy(update={"usage": None}))
    store.record_extraction(attempt, samples.extraction())
    judged = samples.verification(samples.problem(), speedup=2.0)
    store.record_verification(attempt, judged)
    store.finish_attempt(attempt, judged.status)
    (curves,) = store.scores.curves()
    assert (curves.speedups, curves.turns, curves.budgets) == ((2.0,), ((1, pytest.approx(2.0)),), ())


def test_rooflines_are_those_of_the_verifications_that_have_one(store: Store) -> None:
    _, without = samples.judge(store, samples.problem(1), RUN, speedup=2.0)
    attempt = samples.begin(store, samples.problem(2), RUN)
    measured = samples.measurement(2.0).model_copy(update={"roofline": samples.roofline()})
    judged = samples.verification(samples.problem(2)).model_copy(update={"measurement": measured})
    number = store.record_verification(attempt, judged)
    assert store.scores.rooflines([without, number, 10_000]) == {number: samples.roofline()}
    assert store.scores.rooflines([]) == {}
