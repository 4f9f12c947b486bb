"""A file is brought to the newest schema, from nothing and from each older one, and never when not ours."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import create_engine

from kernelproof.db.connection import HEAD
from kernelproof.db.maintenance import check, plan_upgrade, upgrade_database
from kernelproof.db.migrations import STEPS
from kernelproof.db.models import APPEND_ONLY, Base
from kernelproof.db.scores.filters import Filters
from kernelproof.db.store import Store, open_store
from kernelproof.errors import StoreError, UsageError
from kernelproof.types import Status
from kernelproof.workspace import DatabasePlace
from tests.db import older, samples, sql
from tests.db.soundness import sound
from tests.postgres import PostgresServer


def test_the_migrations_make_what_the_models_describe(store: Store) -> None:
    engine = create_engine(f"sqlite:///{store.path}")
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": False})
        assert compare_metadata(context, Base.metadata) == []
    engine.dispose()


def test_the_newest_migration_is_the_one_the_program_expects() -> None:
    names = list(STEPS)
    assert names[-1] == HEAD
    assert [int(name[:4]) for name in names] == list(range(1, len(names) + 1))


def test_every_evidence_table_has_its_two_triggers(store: Store) -> None:
    rows = sql.run(store, "SELECT name FROM sqlite_master WHERE type = 'trigger'")
    assert {name for (name,) in rows if not name.startswith("score_")} == {
        f"{t}_no_{d}" for t in APPEND_ONLY for d in ("update", "delete")
    }


def test_an_empty_file_becomes_a_store_in_wal_mode(tmp_path: Path) -> None:
    path = tmp_path / "attempts.sqlite"
    path.touch()
    with open_store(path) as store:
        assert store.latest_attempt_id() is None
        assert sql.run(store, "PRAGMA journal_mode") == [("wal",)]


def test_an_old_database_says_what_it_said(old: Path) -> None:
    with open_store(old, create=False) as store:
        right, broken, nothing = (store.load_attempt(number) for number in (1, 2, 3))
        ranked, board = store.scores.leaderboard(), store.scores.leaderboard(Filters(policy="any"))
    assert (right.alterations, broken.alterations, nothing.alterations) == ((), (), ())
    assert (right.status, broken.status, nothing.status) == (
        Status.CORRECT,
        Status.BUILD_ERROR,
        Status.NO_CODE,
    )
    assert right.verdict is not None
    verification = right.verdict.verification
    assert verification.measurement is not None
    assert verification.measurement.speedup == 2.0
    assert verification.measurement.candidate_samples_ms == ((0.5,),)
    assert verification.stage_seconds == {"build": 12.5}
    best = board.problems[0].best
    assert best is not None and (best.attempt_id, best.speedup) == (1, 2.0)
    (model,) = board.models
    assert (model.correct.part, model.correct.whole) == (1, 3)
    assert (ranked.counts.stale, [m.correct.whole for m in ranked.models]) == (2, [1])


def test_what_an_old_database_does_not_know_is_unknown(old: Path) -> None:
    with open_store(old, create=False) as store:
        stored = store.load_attempt(1).verdict
    assert stored is not None
    verification, measured = stored.verification, stored.verification.measurement
    assert (verification.error_class, verification.determinism, verification.kernels) == (None, None, None)
    assert verification.flags == ()
    rules = verification.settings
    assert (rules.numerics, rules.purity, rules.baselines, rules.own_kernel) == ("fp32", "any", (), True)
    assert measured is not None
    assert (measured.inside_ms, measured.roofline, measured.replayed) == (None, None, None)
    assert (measured.against, measured.disturbed, measured.calls) == ((), (), ())


def test_a_path_with_odd_characters_works(tmp_path: Path) -> None:
    with open_store(tmp_path / "100% of ?mine #1" / "attempts.sqlite") as store:
        assert store.path.exists()
    assert [p.name for p in tmp_path.iterdir()] == ["100% of ?mine #1"]


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        (
            "UPDATE alembic_version SET version_num = '9999_from_the_future'",
            r"9999_from_the_future.*newer than this kernelproof .*upgrade kernelproof \(pip",
        ),
        ("DROP TABLE alembic_version", "another program"),
    ],
    ids=["newer", "foreign"],
)
@pytest.mark.parametrize(
    "use", [open_store, partial(open_store, only_read=True), partial(check, tell=print), plan_upgrade]
)
def test_a_newer_schema_or_another_programs_database_is_refused_and_left_alone(
    store: Store, statement: str, why: str, use: Callable[[Path], object]
) -> None:
    with closing(sqlite3.connect(store.path)) as connection, connection:
        connection.execute(statement)
    store.close()
    before = store.path.read_bytes()
    with pytest.raises(StoreError, match=why):
        use(store.path)
    assert store.path.read_bytes() == before


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
