"""Hostile texts in an attempt: a terminal prints them, exports hold them, and none is more than text."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from pyarrow import parquet
from rich.console import Console

from kernelproof.db.scores.records import Leaderboard, ViewName
from kernelproof.db.store import Store
from kernelproof.report.board_columns import Flat, flat
from kernelproof.report.export.files import (
    as_csv,
    as_markdown,
    every_column,
    write_parquet,
)
from kernelproof.report.leaderboard import print_leaderboard
from kernelproof.report.plain import clean, json_text
from kernelproof.report.show import print_all
from tests.hostile_texts import HOSTILE, TEXTS, harmless

VIEWS: tuple[ViewName, ...] = ("model", "problem", "kernel", "run")


def on_terminal(width: int = 100) -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=width, markup=False, highlight=False)


def printed(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.fixture(scope="module")
def board(hostile_store: Store) -> Leaderboard:
    return hostile_store.scores.leaderboard(views=VIEWS)


@pytest.fixture(params=VIEWS)
def rows(request: pytest.FixtureRequest, board: Leaderboard) -> Flat:
    return flat(board, request.param)


@pytest.mark.few(30)
@pytest.mark.parametrize("number", range(len(TEXTS)), ids=lambda n: HOSTILE[n].mechanism)
def test_show_steers_no_terminal(hostile_store: Store, number: int) -> None:
    attempt = hostile_store.load_attempt(number + 1)
    assert attempt.response is not None and attempt.response.text == TEXTS[number], "stored as it came"
    console = on_terminal()
    print_all(attempt, console)
    harmless(printed(console), terminal=True)


@pytest.mark.ci
@pytest.mark.parametrize("width", [60, pytest.param(200, marks=pytest.mark.ci)])
def test_a_leaderboard_steers_no_terminal(board: Leaderboard, width: int) -> None:
    console = on_terminal(width)
    print_leaderboard(board, console)
    harmless(printed(console), terminal=True)


def test_json_is_ascii_and_exact(board: Leaderboard) -> None:
    text = json_text(board)
    assert text.isascii()
    harmless(text, terminal=False)
    assert {row["model"] for row in json.loads(text)["models"]} == {f"model:{text}" for text in TEXTS}


def test_csv_computes_nothing_and_has_its_rows(rows: Flat) -> None:
    text = as_csv(rows)
    harmless(text, terminal=False)
    read = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    assert len(read) == 1 + len(rows.rows)
    assert {len(row) for row in read} == {len(rows.fields)}
    for row, given in zip(read[1:], rows.rows, strict=True):
        for cell, value in zip(row, given, strict=True):
            assert not isinstance(value, str) or not re.match(r"\s*[=+\-@]", cell), cell


def test_markdown_stays_one_table_of_words(rows: Flat) -> None:
    text = as_markdown([every_column(rows)])
    harmless(text, terminal=False)
    tokens = MarkdownIt("commonmark", {"html": True, "linkify": False}).enable("table").parse(text)
    parts = {token.type for token in tokens} | {c.type for t in tokens for c in t.children or ()}
    table = {
        f"{part}_{end}" for part in ("table", "thead", "tbody", "tr", "th", "td") for end in ("open", "close")
    }
    assert parts == table | {"inline", "text"}
    assert sum(token.type == "tr_open" for token in tokens) == 1 + len(rows.rows)


def test_parquet_holds_clean_words(rows: Flat, tmp_path: Path) -> None:
    write_parquet(rows.fields, rows.rows, tmp_path / "a.parquet", clean)
    read = parquet.read_table(tmp_path / "a.parquet").to_pylist()
    assert len(read) == len(rows.rows)
    for row in read:
        harmless("".join(value for value in row.values() if isinstance(value, str)), terminal=False)
