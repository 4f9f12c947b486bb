"""Curves equal a plain loop over the attempts, and end where the leaderboard's figures are."""

from __future__ import annotations

from pathlib import Path

from hypothesis import HealthCheck, given, settings

from kernelproof.db.scores.filters import Filters
from kernelproof.db.scores.records import Evidence
from kernelproof.db.store import Store
from kernelproof.types import CheckOutcome, SandboxReport, Status
from kernelproof.version import POLICY
from tests.db import samples
from tests.db.scores import reference
from tests.db.scores.filling import fill, turns
from tests.db.scores.reference import Turn
from tests.db.scores.test_metrics import fresh

TOKENS = 30
"""Of each answer that `filling` makes."""
RUN = samples.settings()


def within(made: list[Turn], budget: float) -> tuple[int, int]:
    """Problems that are solved, and surely faster, if each may cost so many tokens."""
    solved, faster = set(), set()
    for problem in reference.by_problem(reference.deciding(made)):
        affordable = [turn for turn in made if turn.problem == problem][: int(budget // TOKENS)]
        solved |= {turn.problem for turn in affordable if turn.status == "correct"}
        faster |= {turn.problem for turn in affordable if is_faster(turn)}
    return len(solved), len(faster)


def is_faster(turn: Turn) -> bool:
    """As `filling` paces what it makes."""
    return turn.low is not None and turn.low > 1 and not turn.unresolved


def bests(made: list[Turn], allowed: int) -> dict[str, Turn]:
    """Of each problem the timed sample that ranks first, with so many turns."""
    decided = reference.deciding([turn for turn in made if turn.turn <= allowed])
    found = {}
    for problem, group in reference.by_problem(decided).items():
        if timed := [s for s in group if s.speedup is not None]:
            found[problem] = min(timed, key=lambda s: (-s.ranking, s.attempt))
    return found


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
            for point in curves.turns:
                (some,) = store.scores.leaderboard(Filters(turns=point.turns), ("model",)).models
                assert point.solved == some.solved
                best = bests(made, point.turns)
                assert point.faster == sum(map(is_faster, best.values()))
            for budget, *counts in curves.budgets:
                if budget % TOKENS:  # a rounded budget may miss an answer that costs exactly as much
                    assert tuple(counts) == within(made, budget)
            if curves.budgets:
                assert curves.budgets[-1].solved == scores.solved


def test_more_turns_never_look_worse(store: Store) -> None:
    """A problem that is first solved in a later turn, slowly, counts as solved."""
    for problem, speedups in ((1, (2.0, 3.0)), (2, (None, 0.1))):
        for turn, speedup in enumerate(speedups, 1):
            status = Status.WRONG_OUTPUT if speedup is None else Status.CORRECT
            samples.judge(store, samples.problem(problem), RUN, status, speedup, turn=turn)
    (curves,) = store.scores.curves()
    assert curves.turns == ((1, 1, 1), (2, 2, 1))
    assert [(point.solved, point.faster) for point in (curves.budgets[0], curves.budgets[-1])] == [
        (1, 1),
        (2, 1),
    ]


def test_unknown_tokens_have_no_curve_over_budgets(store: Store) -> None:
    attempt = samples.begin(store, samples.problem(), RUN)
    store.record_response(attempt, samples.response().model_copy(update={"usage": None}))
    store.record_extraction(attempt, samples.extraction())
    judged = samples.verification(samples.problem(), speedup=2.0)
    store.record_verification(attempt, judged)
    store.finish_attempt(attempt, judged.status)
    (curves,) = store.scores.curves()
    assert (curves.speedups, curves.turns, curves.budgets) == ((2.0,), ((1, 1, 1),), ())


def test_evidence_is_that_of_the_verifications_that_were_measured(store: Store) -> None:
    _, plain = samples.judge(store, samples.problem(1), RUN, speedup=2.0)
    _, unmeasured = samples.judge(store, samples.problem(3), RUN)
    attempt = samples.begin(store, samples.problem(2), RUN)
    (passed,) = samples.verification(samples.problem()).checks
    failed = passed.model_copy(update={"name": "shape", "outcome": CheckOutcome.FAIL})
    more = {"roofline": samples.roofline(), "unresolved_because": "noise"}
    judged = samples.verification(samples.problem(2)).model_copy(
        update={
            "measurement": samples.measurement(2.0).model_copy(update=more),
            "sandbox": SandboxReport(tier="A"),
            "checks": (passed, failed),
        }
    )
    number = store.record_verification(attempt, judged)
    found = store.scores.evidence([plain, unmeasured, number, 10_000])
    measured = {"resolution": 0.01, "aa_spread": 0.002, "policy": POLICY, "passed": ("output_values",)}
    assert found == {
        plain: Evidence(**measured, unresolved_because=None, roofline=None, sandbox_tier=None),
        number: Evidence(**measured, **more, sandbox_tier="A"),
    }
    assert store.scores.evidence([]) == {}
