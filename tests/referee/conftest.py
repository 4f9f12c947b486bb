"""One referee for all tests that need one, and the corpus's confusion table at the end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.devices.conftest import place as place
from tests.devices.conftest import start as start
from tests.referee.corpus import Confusion
from tests.referee.court import Court

TABLE = pytest.StashKey[Confusion]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[TABLE] = Confusion()


@contextmanager
def holding_court(factory: pytest.TempPathFactory, cache: Path) -> Iterator[Court]:
    """Judges requests in one referee process; everything it starts has its files below one directory."""
    with pytest.MonkeyPatch.context() as patch:
        scratch = factory.mktemp("scratch")
        scratch.chmod(0o755)
        patch.setenv("TMPDIR", str(scratch))
        with Court(cache, scratch) as court:
            yield court


@pytest.fixture(scope="session")
def court(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Iterator[Court]:
    """A court that is held once for all tests."""
    with holding_court(tmp_path_factory, cache) as court:
        yield court


@pytest.fixture(scope="session")
def confusion(request: pytest.FixtureRequest) -> Confusion:
    """Every verdict on a member of the corpus so far."""
    return request.config.stash[TABLE]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    confusion = config.stash[TABLE]
    if confusion.table:
        terminalreporter.section("corpus: kind of candidate against status")
        for line in confusion.lines():
            terminalreporter.line(line)
