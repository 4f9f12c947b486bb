"""A workspace for each test; what was built for one is there for all."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli import material
from tests.cli.program import Program

MEASURED = ("--backend", "cpp", "--trials", "1")
"""Options of a verification whose times hardly matter."""


@pytest.fixture(scope="session")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return material.problems(tmp_path_factory.mktemp("suite") / "problems")


@pytest.fixture
def program(tmp_path: Path, cache: Path) -> Iterator[Program]:
    with working_in(tmp_path / "workspace", cache) as program:
        yield program


@pytest.fixture(scope="session")
def one_attempt(tmp_path_factory: pytest.TempPathFactory, suite: Path, cache: Path) -> Path:
    """A workspace with an attempt that has no code."""
    folder = tmp_path_factory.mktemp("stored")
    (folder / "prose.md").write_text("no code")
    command = ("verify", folder / "prose.md", "--problem", "relu", "--suite", suite, "--backend", "cpp")
    with working_in(folder / "workspace", cache) as program:
        program.run(*command, code=1)
        return program.workspace


@pytest.fixture
def stored(program: Program, one_attempt: Path) -> Program:
    """The program in a copy of it."""
    shutil.copytree(one_attempt, program.workspace, dirs_exist_ok=True)
    return program


@pytest.fixture(scope="session")
def measured(tmp_path_factory: pytest.TempPathFactory, cache: Path, suite: Path) -> Path:
    """A workspace with one correct, measured attempt."""
    root = tmp_path_factory.mktemp("measured")
    (root / "sines.py").write_text(material.sines())
    with working_in(root / "workspace", cache) as program:
        options = ("--problem", "sines", "--suite", suite, *MEASURED, "--seconds", "2")
        program.run("verify", root / "sines.py", *options)
    return program.workspace


@pytest.fixture
def verified(program: Program, measured: Path) -> Program:
    """The program in a copy of it."""
    shutil.copytree(measured, program.workspace, dirs_exist_ok=True)
    return program


@contextmanager
def working_in(workspace: Path, cache: Path) -> Iterator[Program]:
    """The program in a workspace, which is made if it is not there."""
    workspace.mkdir(exist_ok=True)
    # Not below the tests' directory, which is closed to the user ids that sandboxes run under.
    temporary = Path(tempfile.mkdtemp(prefix="test-"))
    temporary.chmod(0o711)
    yield Program(workspace, temporary, cache)
    shutil.rmtree(temporary, ignore_errors=True)
