"""A workspace with made-up attempts, and one server for all tests that only read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelproof.db.store import Store
from kernelproof.types import Status
from tests.db import samples
from tests.report.web.serving.server import Server, serving


def fill(store: Store) -> None:
    """Two models at two problems; attempt 4 is wrong, attempt 5 is in progress."""
    good, poor = samples.settings("vendor:good", name="night"), samples.settings("vendor:poor", name="day")
    samples.judge(store, samples.problem(1), good, speedup=2.0)
    samples.judge(store, samples.problem(2), good, speedup=1.5)
    samples.judge(store, samples.problem(1), poor, speedup=0.5)
    samples.judge(store, samples.problem(2), poor, Status.WRONG_OUTPUT)
    samples.begin(store, samples.problem(3), good)


def new_workspace(path: Path, empty_database: Path) -> Path:
    """A workspace with these attempts."""
    with samples.new_store(path, empty_database) as store:
        fill(store)
    return path


@pytest.fixture(scope="package")
def read_workspace(empty_database: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return new_workspace(tmp_path_factory.mktemp("served"), empty_database)


@pytest.fixture(scope="package")
def server(read_workspace: Path) -> Iterator[Server]:
    with serving(read_workspace) as running:
        yield running


@pytest.fixture
def own_workspace(empty_database: Path, tmp_path: Path) -> Path:
    """One that a test may change."""
    return new_workspace(tmp_path / "workspace", empty_database)
