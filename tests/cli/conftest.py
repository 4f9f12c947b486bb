"""A workspace for each test; one build cache for the session, so that no extension compiles twice."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli import material
from tests.cli.program import Program


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return material.problems(tmp_path_factory.mktemp("suite") / "problems")


@pytest.fixture
def program(tmp_path: Path, cache: Path) -> Iterator[Program]:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    # Not below tmp_path, which is closed to the user ids that sandboxes run under.
    temporary = Path(tempfile.mkdtemp(prefix="test-"))
    temporary.chmod(0o711)
    yield Program(workspace, temporary, cache)
    shutil.rmtree(temporary, ignore_errors=True)
