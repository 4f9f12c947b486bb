"""The schema's views: columns as documented, made anew with the schema, and queries that datasette offers."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from contextlib import closing

import pandas
import pytest

from kernelproof.db.datasette import DATABASE, QUERIES, metadata
from kernelproof.db.sql_views import VIEWS
from kernelproof.db.store import Store
from kernelproof.types import Status
from tests.db import samples


@pytest.fixture
def filled(store: Store) -> Store:
    run = samples.settings()
    samples.judge(store, samples.problem(1), run, speedup=2.0)
    samples.judge(store, samples.problem(1), run, Status.BUILD_ERROR, sample=1)
    store.finish_attempt(samples.begin(store, samples.problem(2), run), Status.NO_CODE)
    return store


def test_every_view_has_its_documented_columns(filled: Store) -> None:
    with closing(sqlite3.connect(filled.path)) as connection:
        for view in VIEWS:
            cursor = connection.execute(f"SELECT * FROM {view.name}")
            assert [column[0] for column in cursor.description] == list(view.columns)
            assert cursor.fetchall(), view.name


def test_each_status_is_judged_and_built_as_in_the_leaderboard(store: Store) -> None:
    for status in Status:
        run = samples.settings(model=status)
        store.finish_attempt(samples.begin(store, samples.problem(), run), status)
    with closing(sqlite3.connect(store.path)) as connection:
        rows = connection.execute("SELECT status, judged, built FROM attempts_flat").fetchall()
    assert {status: bool(judged) for status, judged, _ in rows} == {
        status: status.counts_against_model for status in Status
    }
    models = store.scores.leaderboard().models
    assert {status: built for status, _, built in rows if status != Status.PLANS} == {
        scores.model: scores.built for scores in models
    }


def test_pandas_reads_them(filled: Store) -> None:
    with closing(sqlite3.connect(filled.path)) as connection:
        attempts = pandas.read_sql("SELECT * FROM attempts_flat", connection)
    assert list(attempts["status"]) == ["correct", "build_error", "no_code"]
    assert list(attempts["device"]) == ["Test CPU"] * 3
    assert attempts["tokens"].sum() == 60


def test_the_canned_queries_run_and_name_columns_that_are_there(filled: Store) -> None:
    with closing(sqlite3.connect(filled.path)) as connection:
        for name, (_, query) in QUERIES.items():
            connection.execute(query, {"model": "replay:a.jsonl"} if ":model" in query else {}).fetchall()
            assert name.isidentifier()
        described = metadata()["databases"][DATABASE]["tables"]
        tables = {
            row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type <> 'index'")
        }
        assert described.keys() <= tables
        for name, table in described.items():
            columns = {row[1] for row in connection.execute(f"PRAGMA table_info({name})")}
            assert table["columns"].keys() == columns


def test_the_metadata_is_printed_as_json() -> None:
    printed = subprocess.run(
        [sys.executable, "-m", "kernelproof.db.datasette"], check=True, capture_output=True, text=True
    ).stdout
    assert json.loads(printed) == metadata()
