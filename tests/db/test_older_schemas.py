"""A database of each older schema with rows, in a file and on a server, is upgraded and says what it said."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelproof.db.connection import HEAD
from kernelproof.db.maintenance import plan_upgrade, upgrade_database
from kernelproof.db.scores.filters import Filters
from kernelproof.db.store import open_store
from kernelproof.errors import UsageError
from kernelproof.types import Status
from kernelproof.workspace import DatabasePlace
from tests.db import older, samples
from tests.db.soundness import sound
from tests.postgres import PostgresServer

SCHEMAS = older.schemas()[:-1]
OFTEN = ("0001_first_tables", "0006_reported_results")
"""The one before all changes, and the one whose rows change most; `make test-ci` has all."""
EACH = [schema if schema in OFTEN else pytest.param(schema, marks=pytest.mark.ci) for schema in SCHEMAS]


def upgraded(place: DatabasePlace, schema: str) -> None:
    planned = plan_upgrade(place)
    assert (planned.found, len(planned.steps)) == (schema, len(SCHEMAS) - SCHEMAS.index(schema))
    upgrade_database(place, planned)
    assert plan_upgrade(place).steps == ()
    sound(place)
    with_evidence = SCHEMAS.index(schema) + 1 >= older.EVIDENCE
    with open_store(place, create=False) as store:
        board = store.scores.leaderboard(Filters(policy="any"))
        (model,), (first, second) = board.models, board.problems
        assert first.best is not None and second.best is None
        assert (model.strategy, model.correct.part, model.correct.whole) == (None, 1, 2)
        assert board.counts.retracted == 1
        compiled, fraction = first.best.compile_speedup, first.best.roofline_fraction
        assert (first.best.speedup, compiled, fraction) == (
            (3.0, 1.5, 0.25) if with_evidence else (2.0, None, None)
        )
        (strategy,) = store.scores.leaderboard(Filters(policy="any"), views=("strategy",)).strategies
        assert strategy.strategy == "sample"
        assert [store.load_attempt(number).status for number in (1, 2, 3)] == [
            *(Status.CORRECT, Status.BUILD_ERROR, Status.NO_CODE)
        ]
        (gone,) = store.load_attempt(2).verifications
        assert gone.retracted == "a bad disk"
        judged = samples.verification(samples.problem(), speedup=4.0)
        store.record_verification(1, judged, "again")
        found = store.scores.leaderboard().problems[0].best
        assert found is not None and found.speedup == 4.0


@pytest.mark.parametrize("schema", EACH)
def test_in_a_file(schema: str, tmp_path: Path) -> None:
    older.old_file(tmp_path / "old.sqlite", schema)
    upgraded(tmp_path / "old.sqlite", schema)


@pytest.mark.parametrize("schema", EACH)
def test_on_a_server(schema: str, tmp_path: Path, postgres: PostgresServer) -> None:
    older.old_file(tmp_path / "old.sqlite", schema)
    place = postgres.address(postgres.empty())
    older.copy_to_server(tmp_path / "old.sqlite", place, schema)
    upgraded(place, schema)


def test_what_a_server_needs_no_backup_for(postgres: PostgresServer, tmp_path: Path) -> None:
    place = postgres.address(postgres.made())
    planned = plan_upgrade(place)
    assert (planned.found, planned.steps, planned.backup) == (HEAD, (), None)
    with pytest.raises(UsageError, match="pg_dump"):
        plan_upgrade(place, tmp_path / "copy")
    with pytest.raises(UsageError, match="no attempts are stored"):
        plan_upgrade(postgres.address(postgres.empty()))
