"""The metrics equal an independent computation from the papers' formulas, on random data."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from kernelproof.db.scores.records import Scores
from kernelproof.types import Status
from tests.db import samples
from tests.db.scores import reference
from tests.db.scores.filling import UNPACKED, fill, fresh, turns
from tests.db.scores.reference import Turn

RUN = samples.settings()
OTHER = samples.settings("openai:other")
ALIKE = settings(
    max_examples=8,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def near(expected: float | None) -> Any:
    return None if expected is None else pytest.approx(float(expected), rel=1e-9)


def check(scores: Scores, made: list[Turn]) -> None:
    """Each figure, by the reference."""
    decided = reference.deciding(made)
    judged = [s for group in reference.by_problem(decided).values() for s in group]
    correct = [s for s in judged if s.status == "correct"]
    assert (scores.attempts, scores.samples, scores.errors) == (
        len(made),
        len(decided),
        len(decided) - len(judged),
    )
    assert (scores.correct.part, scores.correct.whole) == (len(correct), len(judged))
    assert scores.statuses == Counter(Status(s.status) for s in decided)
    assert scores.answered == len(made)
    assert scores.extracted == sum(t.status != "no_code" for t in made)
    assert scores.built == sum(t.status in ("correct", "wrong_output") for t in made)
    assert scores.right == sum(t.status == "correct" for t in made)
    for found in scores.pass_at:
        assert found.mean.value == near(reference.pass_at_k(decided, found.k))
    known = not correct or any(s.speedup is not None for s in correct)
    if judged:
        interval = scores.correct.interval
        assert interval is not None
        assert (interval.low, interval.high) == near_pair(reference.wilson(len(correct), len(judged)))
        for fast in scores.fast:
            assert fast.rate.share == near(float(reference.fast_p(decided, fast.p)) if known else None)
            assert fast.sure == sum(s.status == "correct" and s.ranking > fast.p for s in judged)
    best = reference.best_speedups(decided)
    problems = len(reference.by_problem(decided))
    everywhere = best + [1.0] * (problems - len(best)) if known else []
    assert (scores.problems, scores.geometric_mean.count) == (problems, len(best))
    assert scores.geometric_mean.value == near(reference.geometric_mean(best))
    assert scores.median.value == near(reference.median(best))
    assert scores.geometric_mean_all.value == near(reference.geometric_mean(everywhere))
    assert scores.median_all.value == near(reference.median(everywhere))
    assert scores.tokens == 30 * len(made)
    in_problems = [t for t in made if t.problem in reference.by_problem(decided)]
    if correct and len(in_problems) == len(made):
        assert scores.tokens_per_correct.value == near(30 * len(made) / len(correct))


def near_pair(expected: tuple[float, float]) -> Any:
    return pytest.approx(expected, abs=1e-9)


@ALIKE
@given(turns(), turns())
@example([Turn(1, "level1/1", 0, 1, "infrastructure_error")], [Turn(1, "level1/1", 0, 1, "correct")])
def test_every_figure_equals_the_reference_and_the_views_of_the_schema(
    empty_database: Path, tmp_path: Path, first: list[Turn], second: list[Turn]
) -> None:
    with fresh(empty_database, tmp_path) as store:
        fill(store, RUN, first)
        packed_early = store.scores.leaderboard()
        assert len(packed_early.models) == 1
        numbers = fill(store, OTHER, second)
        board = store.scores.leaderboard(views=("model", "problem", "kernel", "run", "strategy", "template"))
        check(next(s for s in board.models if s.model == RUN.model), first)
        shifted = [replace(t, attempt=n) for t, n in zip(second, numbers, strict=True)]
        check(next(s for s in board.models if s.model == OTHER.model), shifted)
        assert len(board.runs) == len(board.strategies) == len(board.templates) == 2
        compare_with_views(store.path, board)
        with closing(sqlite3.connect(store.path)) as connection, connection:
            connection.executescript(UNPACKED)
        again = store.scores.leaderboard(views=("model", "problem", "kernel", "run", "strategy", "template"))
        assert again == board


def compare_with_views(path: Path, board: Any) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        rows = {row["model"]: row for row in connection.execute("SELECT * FROM model_scores")}
        best = {row["problem_id"]: row for row in connection.execute("SELECT * FROM best_by_problem")}
        strategies = connection.execute("SELECT strategy, model FROM strategy_scores").fetchall()
    for scores in board.models:
        row = rows[scores.model]
        assert (row["samples"], row["judged"], row["correct"]) == (
            scores.samples,
            scores.correct.whole,
            scores.correct.part,
        )
        assert (row["rate"], row["pass_1"]) == (near(scores.correct.share), near(scores.pass_at_k(1).value))
        assert (row["problems"], row["solved"]) == (scores.problems, scores.solved)
        assert row["geometric_mean"] == near(scores.geometric_mean.value)
        for fast in scores.fast:
            counted = row[f"fast_{fast.p:g}".replace(".", "_")]
            assert counted == near(fast.rate.part / fast.rate.whole if fast.rate.whole else None)
    assert {name: row["attempt_id"] for name, row in best.items()} == {
        p.problem_id: p.best.attempt_id for p in board.problems if p.best
    }
    assert {tuple(row) for row in strategies} == {("sample", RUN.model), ("sample", OTHER.model)}


@pytest.mark.ci
@ALIKE
@given(turns(problems=3, samples_each=3), st.data())
def test_packed_rows_follow_every_change(
    empty_database: Path, tmp_path: Path, made: list[Turn], data: st.DataObject
) -> None:
    """Rows that are stored after the packing are seen, as if nothing had been packed."""
    views = ("model", "problem", "kernel")
    with fresh(empty_database, tmp_path) as store:
        numbers = fill(store, RUN, made)
        for _ in range(3):
            store.scores.leaderboard()
            attempt = data.draw(st.sampled_from(numbers))
            change = data.draw(st.sampled_from(("verify", "retract", "answer", "end", "begin")))
            if change == "verify":
                status = data.draw(st.sampled_from((Status.CORRECT, Status.WRONG_OUTPUT)))
                judged = samples.verification(
                    samples.problem(1), status, 3.0 if status is Status.CORRECT else None
                )
                store.record_verification(attempt, judged, "again")
            elif change == "retract":
                for stored in store.load_attempt(attempt).verifications:
                    store.retract(stored.id, "why not", counts=stored.retracted is not None)
            elif change == "answer":
                store.record_response(attempt, samples.response("another"))
            elif change == "end":
                store.finish_attempt(attempt, Status.CRASH)
            else:
                samples.begin(store, samples.problem(9), RUN, sample=data.draw(st.integers(0, 3000)))
        seen = store.scores.leaderboard(views=views)
        with closing(sqlite3.connect(store.path)) as connection, connection:
            connection.executescript(UNPACKED)
        assert store.scores.leaderboard(views=views) == seen
