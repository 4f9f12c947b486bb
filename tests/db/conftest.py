"""A fresh store in a file of its own, and files that earlier versions wrote."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from kernelproof.db.store import Store, open_store


@pytest.fixture
def store(tmp_path: Path, empty_database: Path) -> Iterator[Store]:
    path = tmp_path / "db" / "attempts.sqlite"
    path.parent.mkdir()
    shutil.copy(empty_database, path)
    with open_store(path, create=False) as opened:
        yield opened


OLD = Path(__file__).parent / "old"


@pytest.fixture(params=sorted(OLD.glob("*.sql")), ids=lambda file: file.stem)
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A database as an earlier version wrote it: a correct attempt, a build error, an answer without code."""
    path = tmp_path / "old.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(request.param.read_text())
    return path
