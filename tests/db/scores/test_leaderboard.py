"""The leaderboard's figures, as docs/guide/leaderboard.md defines them."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import date
from pathlib import Path

import pytest
from sqlalchemy import Engine, event

from kernelproof.db.scores.filters import Filters
from kernelproof.db.scores.records import Scores
from kernelproof.db.store import Store
from kernelproof.types import ErrorClass, Flag, RunSettings, Status, VerifySettings
from tests.db import samples, sql
from tests.db.conftest import BOTH
from tests.db.scores.filling import fill
from tests.db.scores.reference import Turn

STORES = BOTH

P1, P2, P10 = samples.problem(1), samples.problem(2), samples.problem(10)
RUN = samples.settings()


def only_model(store: Store) -> Scores:
    (model,) = store.scores.leaderboard().models
    return model


def test_an_empty_store_has_an_empty_leaderboard(store: Store) -> None:
    board = store.scores.leaderboard()
    assert (board.problems, board.models, board.counts.unfinished, board.counts.retracted) == ((), (), 0, 0)


def test_the_fastest_correct_attempt_leads_its_problem(store: Store) -> None:
    samples.judge(store, P1, RUN, speedup=1.5, sample=0)
    best, _ = samples.judge(store, P1, RUN, speedup=3.0, sample=1)
    samples.judge(store, P1, RUN, Status.CHEATING, speedup=900.0, sample=2)
    samples.judge(store, P1, RUN, Status.WRONG_OUTPUT, sample=3)
    samples.judge(store, P1, RUN, Status.CORRECT, speedup=None, sample=4)
    (result,) = store.scores.leaderboard().problems
    assert result.best is not None
    assert (result.best.attempt_id, result.best.speedup) == (best, 3.0)
    assert (result.best.interval.low, result.best.interval.high) == (3.0 * 0.99, 3.0 * 1.01)
    assert (result.correct.part, result.correct.whole) == (3, 5)


def test_problems_come_in_the_order_of_their_numbers(store: Store) -> None:
    for problem in (P10, P2, P1, samples.problem(1, level=2)):
        samples.judge(store, problem, RUN, Status.BUILD_ERROR)
    board = store.scores.leaderboard()
    assert [p.problem_id for p in board.problems] == ["level1/1", "level1/2", "level1/10", "level2/1"]
    assert all(p.best is None for p in board.problems)


def test_what_differs_in_source_size_backend_or_device_is_never_compared(store: Store) -> None:
    full = samples.settings(verify=VerifySettings(backend="cpp", size="full"))
    cuda = samples.settings(verify=VerifySettings(backend="cuda", size="small"))
    samples.judge(store, P1, RUN, speedup=2.0)
    samples.judge(store, P1, RUN, speedup=3.0, device="Other CPU", sample=1)
    samples.judge(store, P1, full, speedup=4.0)
    samples.judge(store, P1, cuda, speedup=5.0, device="GPU")
    samples.judge(store, samples.problem(1, source="class Model: pass"), RUN, speedup=6.0)
    results = store.scores.leaderboard().problems
    assert sorted(r.best.speedup for r in results if r.best) == [2.0, 3.0, 4.0, 5.0, 6.0]


OTHER_RULES = [
    {"numerics": "tf32"},
    {"purity": "own-compute"},
    {"own_kernel": False},
    {"numerics": "tf32", "purity": "own-compute"},
]


def under(rules: dict[str, object]) -> RunSettings:
    return samples.settings(
        verify=VerifySettings.model_validate({"backend": "cpp", "size": "small", **rules})
    )


@pytest.mark.few(2)
@pytest.mark.parametrize("rules", OTHER_RULES)
def test_results_under_other_rules_are_never_ranked_together(store: Store, rules: dict[str, object]) -> None:
    samples.judge(store, P1, RUN, speedup=2.0)
    samples.judge(store, P1, under(rules), speedup=3.0)
    unjudged = samples.begin(store, P2, under(rules))
    store.finish_attempt(unjudged, Status.NO_CODE)  # its run says by which rules it counts
    board = store.scores.leaderboard()
    assert [p.best.speedup for p in board.problems if p.best] == [2.0, 3.0]
    usual, other = board.models
    assert (usual.correct.whole, other.correct.whole) == (1, 2)
    assert usual.setting == board.problems[0].setting != other.setting
    assert {name: getattr(other.setting, name) for name in rules} == rules


def test_rigor_and_further_baselines_change_no_ranking(store: Store) -> None:
    samples.judge(store, P1, RUN, speedup=2.0)
    samples.judge(store, P1, under({"rigor": "publish", "baselines": ("compile",)}), speedup=3.0)
    (result,) = store.scores.leaderboard().problems
    assert (result.correct.whole, result.correct.part) == (2, 2)


SHAPE, LAYOUT = Flag.SHAPE_SPECIALISED, Flag.LAYOUT_SPECIALISED


@pytest.fixture
def specialised(store: Store) -> Store:
    """Two correct attempts without flags, two with one each, one with both, one wrong."""
    for sample, (speedup, flags) in enumerate(
        [(1.5, ()), (1.2, ()), (9.0, (SHAPE,)), (8.0, (LAYOUT,)), (10.0, (SHAPE, LAYOUT))]
    ):
        samples.judge(store, P1, RUN, speedup=speedup, sample=sample, flags=flags)
    samples.judge(store, P1, RUN, Status.WRONG_OUTPUT, sample=5)
    return store


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("without", "best", "correct"),
    [((), 10.0, 5), ((SHAPE,), 8.0, 3), ((LAYOUT,), 9.0, 3), ((SHAPE, LAYOUT), 1.5, 2)],
)
def test_without_a_flag_the_flagged_do_not_count_as_correct_and_stay_in_the_rates(
    specialised: Store, without: tuple[Flag, ...], best: float, correct: int
) -> None:
    board = specialised.scores.leaderboard(Filters(without=without))
    (result,), (model,) = board.problems, board.models
    assert result.best is not None
    assert (result.best.speedup, result.correct.part, result.correct.whole) == (best, correct, 6)
    assert (model.correct.part, model.correct.whole, model.correct.share) == (correct, 6, correct / 6)
    assert model.fast_p(1.0).rate.share == correct / 6
    assert model.statuses == {Status.CORRECT: 5, Status.WRONG_OUTPUT: 1}
    assert board.counts.refused == 5 - correct


def test_an_unflagged_turn_decides_where_the_flagged_one_does_not_count(store: Store) -> None:
    plain, _ = samples.judge(store, P1, RUN, speedup=1.5, turn=1)
    flagged, _ = samples.judge(store, P1, RUN, speedup=9.0, turn=2, flags=(SHAPE,))
    for without, best in (((), flagged), ((SHAPE,), plain)):
        (result,) = store.scores.leaderboard(Filters(without=without)).problems
        assert result.best is not None and result.best.attempt_id == best


def test_the_best_result_says_its_error_class_and_flags(store: Store) -> None:
    found = ErrorClass.TF32_CLASS
    samples.judge(store, P1, RUN, speedup=2.0, flags=(SHAPE,), error_class=found)
    (result,) = store.scores.leaderboard().problems
    assert result.best is not None
    assert (result.best.error_class, result.best.flags) == (found, (SHAPE,))


def test_an_error_class_is_asked_for_or_better(store: Store) -> None:
    for sample, found in enumerate([None, *ErrorClass]):
        samples.judge(store, P1, RUN, speedup=2.0, sample=sample, error_class=found)
    for count, wanted in enumerate(ErrorClass, start=2):
        board = store.scores.leaderboard(Filters(error_class=wanted))
        assert board.models[0].correct.part == count
        assert board.counts.refused == 5 - count


def test_the_wide_rows_are_never_read(store: Store) -> None:
    """Packed rows hold all that the leaderboard asks; packing them reads the columns that indexes hold."""
    samples.judge(store, P1, RUN, speedup=2.0)
    statements: list[str] = []

    def note(_c: object, _cursor: object, statement: str, *_rest: object) -> None:
        statements.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    store.scores.leaderboard()
    packing, statements[:] = list(statements), []
    store.scores.leaderboard()
    event.remove(Engine, "before_cursor_execute", note)
    assert not any(table in s for s in statements for table in ("verifications", "measurements", "attempts"))
    scan = next(s for s in packing if "JOIN measurements" in s)
    if isinstance(store.place, Path):  # PostgreSQL decides by what the tables hold
        with closing(sqlite3.connect(store.path)) as connection:
            plan = connection.execute(f"EXPLAIN QUERY PLAN {scan}", (64,)).fetchall()
        assert "v USING COVERING INDEX ix_verifications_leaderboard" in str(plan)


def test_a_sample_whose_next_turn_is_under_way_is_not_yet_counted(store: Store) -> None:
    samples.judge(store, P1, RUN, Status.BUILD_ERROR, turn=1)
    samples.begin(store, P1, RUN, turn=2)
    board = store.scores.leaderboard()
    assert (board.models, board.problems, board.counts.unfinished) == ((), (), 1)


def test_a_retracted_verification_gives_way_to_the_one_before(store: Store) -> None:
    attempt, first = samples.judge(store, P1, RUN, speedup=2.0)
    second = store.record_verification(attempt, samples.verification(P1, speedup=9.0), "again")
    store.retract(second, "clock was wrong")
    (result,) = store.scores.leaderboard().problems
    assert result.best is not None
    assert result.best.speedup == 2.0
    store.retract(first, "that one too")
    board = store.scores.leaderboard()
    assert (board.problems, board.models, board.counts.retracted) == ((), (), 1)


@pytest.fixture
def varied(store: Store) -> Store:
    def run(
        model: str, backend: str, size: str, name: str | None, kind: str = "generate", **rules: str
    ) -> RunSettings:
        verify = VerifySettings.model_validate({"backend": backend, "size": size, **rules})
        return RunSettings.model_validate({"model": model, "verify": verify, "name": name, "kind": kind})

    cuda = run("openai:Big-Model", "cuda", "full", "june")
    cpp = run("replay:a.jsonl", "cpp", "small", None, purity="own-compute")
    files = run("file", "cuda", "full", None, "verify", numerics="tf32")
    samples.judge(store, P1, cuda, speedup=1.1, device="NVIDIA H200")
    samples.judge(store, samples.problem(7, level=2), cuda, speedup=1.2, device="NVIDIA H200")
    samples.judge(store, P1, cpp, speedup=1.3)
    samples.judge(store, P10, files, speedup=1.4, device="NVIDIA A100")
    return store


@pytest.mark.few(12)
@pytest.mark.parametrize(
    ("filters", "speedups"),
    [
        ({}, [1.1, 1.2, 1.3, 1.4]),
        ({"problem": "level1/1"}, [1.1, 1.3]),
        ({"problem": "level1/*"}, [1.1, 1.3, 1.4]),
        ({"problem": "level1"}, [1.1, 1.3, 1.4]),
        ({"problem": "SoftMax"}, [1.1, 1.2, 1.3, 1.4]),
        ({"problem": "level"}, []),
        ({"problem": "level9/*"}, []),
        ({"level": 2}, [1.2]),
        ({"model": "big"}, [1.1, 1.2]),
        ({"device": "h200"}, [1.1, 1.2]),
        ({"device": "nvidia"}, [1.1, 1.2, 1.4]),
        ({"backend": "cpp"}, [1.3]),
        ({"size": "full"}, [1.1, 1.2, 1.4]),
        ({"numerics": "tf32"}, [1.4]),
        ({"numerics": "fp32", "backend": "cuda"}, [1.1, 1.2]),
        ({"purity": "own-compute"}, [1.3]),
        ({"run": "june"}, [1.1, 1.2]),
        ({"kind": "verify"}, [1.4]),
        ({"kind": "generate", "level": 1, "backend": "cuda"}, [1.1]),
    ],
)
def test_filters_narrow_problems_and_models_alike(
    varied: Store, filters: dict[str, object], speedups: list[float]
) -> None:
    board = varied.scores.leaderboard(Filters.model_validate(filters))
    assert sorted(p.best.speedup for p in board.problems if p.best) == speedups
    assert sum(m.correct.part for m in board.models) == len(speedups)


def test_a_question_for_plans_is_no_attempt_at_a_kernel_and_its_tokens_are_spent(store: Store) -> None:
    def plans(sample: int, turn: int) -> None:
        attempt = samples.begin(store, P1, RUN, sample, turn)
        store.record_response(attempt, samples.response("## 1. Fuse"))
        store.finish_attempt(attempt, Status.PLANS)

    plans(0, 1)
    samples.judge(store, P1, RUN, Status.WRONG_OUTPUT, sample=0, turn=2)
    plans(0, 3)
    plans(1, 1)
    samples.judge(store, P1, RUN, speedup=2.0, sample=1, turn=2)
    plans(2, 1)
    m = only_model(store)
    assert (m.attempts, m.samples, m.correct.whole, m.correct.part, m.errors) == (2, 2, 2, 1, 0)
    assert Status.PLANS not in m.statuses and m.tokens == 6 * 30
    assert m.tokens_per_correct.value == 6 * 30
    found = sql.run(store, "SELECT sample, turn, status FROM samples_flat ORDER BY sample")
    assert found == [(0, 2, "wrong_output"), (1, 2, "correct")]
    assert sql.run(store, "SELECT judged, correct FROM model_scores") == [(2, 1)]
    judged = "SELECT DISTINCT judged, built FROM attempts_flat WHERE status = 'plans'"
    assert sql.run(store, judged) == [(0, 0)]


def test_more_samples_than_are_packed_at_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernelproof.db.scores.score_table.BATCH", 4)
    made = [Turn(n, f"level1/{n % 2}", n // 2, 1, "correct", 2.0, 1.98) for n in range(10)]
    fill(store, RUN, made)
    assert only_model(store).correct.part == 10
    assert sql.run(store, "SELECT COUNT(*) FROM score_cells") == [(2,)]
    assert not sql.run(store, "SELECT 1 FROM score_changes")


def test_a_change_reads_its_own_sample_again_and_no_other(store: Store) -> None:
    attempts = [samples.judge(store, P1, RUN, speedup=2.0, sample=number)[0] for number in range(3)]
    assert only_model(store).samples == 3
    sql.run(store, "UPDATE attempts SET created = '2031-01-01T00:00:00.000+00:00'")  # unseen by triggers
    store.record_verification(attempts[1], samples.verification(P1, speedup=3.0), "again")
    (problem,) = store.scores.leaderboard(Filters(since=date(2030, 1, 1))).problems
    assert problem.samples == 1 and problem.best is not None
    assert (problem.best.attempt_id, problem.best.speedup) == (attempts[1], 3.0)
    assert only_model(store).samples == 3
