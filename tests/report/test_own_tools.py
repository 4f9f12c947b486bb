"""The leaderboard's Parquet file opens in the tools that people have."""

from __future__ import annotations

from pathlib import Path

import datasets
import duckdb
import pandas
import pytest

from kernelproof.db.store import open_store
from kernelproof.report.board_columns import flat
from kernelproof.report.exporting import write_parquet
from tests.db import samples


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("board")
    with open_store(folder / "attempts.sqlite") as store:
        samples.judge(store, samples.problem(1), samples.settings(), speedup=2.0)
        samples.judge(store, samples.problem(2), samples.settings(), speedup=1.5)
        rows = flat(store.scores.leaderboard(views=("problem",)), "problem")
    write_parquet(rows, folder / "board.parquet")
    return folder / "board.parquet"


def test_duckdb(board: Path) -> None:
    found = duckdb.sql(f"SELECT problem_id, speedup FROM '{board}' ORDER BY problem_id").fetchall()
    assert found == [("level1/1", 2.0), ("level1/2", 1.5)]


def test_pandas(board: Path) -> None:
    assert list(pandas.read_parquet(board)["speedup"]) == [2.0, 1.5]


def test_datasets(board: Path, tmp_path: Path) -> None:
    read = datasets.load_dataset("parquet", data_files=str(board), split="train", cache_dir=str(tmp_path))
    assert list(read["speedup"]) == [2.0, 1.5]
