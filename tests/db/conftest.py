"""A fresh store in a file of its own."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
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
