"""All readers agree on which verification counts, over random histories, with a plain loop and each other."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from kernelproof.db import counting as rule
from kernelproof.db.scores.filters import Filters
from kernelproof.db.store import Store, open_store
from kernelproof.types import Setting
from tests.db import sql
from tests.db.scores.filling import fresh
from tests.db.scores.histories import (
    NEXT,
    NOW,
    Row,
    Turn,
    counting,
    eligible,
    first,
    histories,
    store_history,
)
from tests.postgres import PostgresServer

RANDOM = settings(
    max_examples=25,
    phases=(Phase.generate,),
    report_multiple_bugs=False,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def agree(store: Store, policy: str) -> None:
    """Each reader says what the plain loops say."""
    attempts = list(store.load_attempts(range(1, (store.latest_attempt_id() or 0) + 1)))
    expected = counting(attempts, policy)
    finished = {row for row in expected if row.status is not None}
    exported = {
        (row.attempt_id, row.verification_id, row.setting, row.decides) for row in store.scores.chosen()
    }
    assert exported == {(row.attempt, row.verification, row.setting, row.decides) for row in finished}
    _board_agrees(store, finished)
    _views_agree(store, expected)
    for attempt in attempts:
        counts = first(eligible(attempt), policy)
        number = counts.id if counts else None
        assert (attempt.verdict and attempt.verdict.id) == number
    lines = {line.id: line.status for line in store.newest.attempts(Filters(kind=None), 1000)}
    for attempt in attempts:
        verdict = attempt.verdict
        assert lines[attempt.id] == (verdict.verification.status if verdict else attempt.status)


def _board_agrees(store: Store, finished: set[Row]) -> None:
    board = store.scores.leaderboard(views=("model", "problem"))
    deciding = [row for row in finished if row.decides]
    assert sum(m.samples for m in board.models) == len(deciding)
    for setting in {row.setting for row in deciding}:
        here = [row for row in deciding if row.setting == setting]
        models = [m for m in board.models if m.setting == setting]
        assert sum(m.correct.whole for m in models) == sum(r.status.counts_against_model for r in here)  # type: ignore[union-attr]
        for m in models:
            assert all(n <= sum(row.status == s for row in here) for s, n in m.statuses.items())
    shown = {p.best.attempt_id for p in board.problems if p.best}
    assert shown <= {row.attempt for row in deciding}


def _views_agree(store: Store, expected: set[Row]) -> None:
    columns = "attempt_id, verification_id, backend, size, device, numerics, purity, own_kernel, status"
    decided = _rows(sql.run(store, f"SELECT {columns} FROM samples_flat"))
    assert decided == {row[:4] for row in expected if row.decides}
    flat = _rows(sql.run(store, f"SELECT {columns} FROM attempts_flat WHERE stale = 0"))
    assert flat >= {row[:4] for row in expected}
    samples = sql.run(store, "SELECT SUM(samples) FROM model_scores")[0][0] or 0
    assert samples == sum(row.decides for row in expected)


def _rows(found: list[tuple[object, ...]]) -> set[tuple[object, ...]]:
    names = ("backend", "size", "device", "numerics", "purity", "own_kernel")
    return {
        (row[0], row[1], Setting.model_validate(dict(zip(names, row[2:8], strict=True))), row[8])
        for row in found
    }


@RANDOM
@given(turns=histories())
def test_all_readers_agree_in_a_file(turns: list[Turn], empty_database: Path, tmp_path: Path) -> None:
    with fresh(empty_database, tmp_path) as store, pytest.MonkeyPatch.context() as patch:
        store_history(store, turns)
        agree(store, NOW)
        patch.setattr(rule, "POLICY", NEXT)
        with open_store(store.path, create=False) as newer:
            agree(newer, NEXT)
        patch.undo()
        with open_store(store.path, create=False):  # an older program changes nothing back
            assert sql.run(store, "SELECT policy FROM current_policy") == [(NEXT,)]


@settings(RANDOM, max_examples=8)
@given(turns=histories())
def test_all_readers_agree_on_a_server(turns: list[Turn], postgres: PostgresServer) -> None:
    name = postgres.made()
    with open_store(postgres.address(name), create=False) as store, pytest.MonkeyPatch.context() as patch:
        store_history(store, turns)
        agree(store, NOW)
        patch.setattr(rule, "POLICY", NEXT)
        with open_store(postgres.address(name), create=False) as newer:
            agree(newer, NEXT)
    postgres.sql(f"DROP DATABASE {name} WITH (FORCE)")
