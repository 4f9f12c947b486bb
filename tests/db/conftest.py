"""A fresh store in a file or in a database on a server, and files that earlier versions wrote."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from kernelproof.db.store import Store, open_store
from tests.db import samples

BOTH = ("sqlite", "postgresql")
"""A file with `STORES = BOTH` has tests that hold on either."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Runs a test for each kind of store that its file names."""
    stores = getattr(metafunc.module, "STORES", None)
    if stores is not None and "store" in metafunc.fixturenames:
        metafunc.parametrize("store", stores, indirect=True)


@pytest.fixture
def store(request: pytest.FixtureRequest, tmp_path: Path, empty_database: Path) -> Iterator[Store]:
    if getattr(request, "param", "sqlite") == "postgresql":
        postgres = request.getfixturevalue("postgres")
        name = postgres.made()
        with open_store(postgres.address(name), create=False) as opened:
            yield opened
        postgres.sql(f"DROP DATABASE {name} WITH (FORCE)")
        return
    with samples.new_store(tmp_path, empty_database) as opened:
        yield opened


OLD = Path(__file__).parent / "old"


@pytest.fixture(params=sorted(OLD.glob("*.sql")), ids=lambda file: file.stem)
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A database as an earlier version wrote it: a correct attempt, a build error, an answer without code."""
    path = tmp_path / "old.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(request.param.read_text())
    return path
