"""A workspace with a store, and the commands as a person runs them, without a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kernelproof.cli.commands import CommandLine
from kernelproof.cli.leaderboard import leaderboard
from kernelproof.cli.show import show
from kernelproof.db.store import Store
from tests.db import samples
from tests.report import hostile_attempts

Command = Callable[..., str]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def store(workspace: Path, empty_database: Path) -> Iterator[Store]:
    with samples.new_store(workspace, empty_database) as opened:
        yield opened


@pytest.fixture(scope="session")
def hostile_store(empty_database: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Attempts of hostile texts; tests only read it."""
    with samples.new_store(tmp_path_factory.mktemp("hostile"), empty_database) as opened:
        hostile_attempts.fill(opened)
        yield opened


@pytest.fixture
def command(workspace: Path) -> Command:
    """`command("show", "17")` runs it in the workspace and returns what it printed."""
    app = CommandLine(help="")
    app.command()(leaderboard)
    app.command()(show)

    def run(*arguments: str) -> str:
        result = CliRunner().invoke(app, [*arguments, "--workspace", str(workspace)])
        if result.exception is not None:
            raise result.exception
        return result.output

    return run
