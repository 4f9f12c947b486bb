"""One referee for all tests that need one, and the corpus's confusion table at the end."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from pipeline.referee.device import exclusive
from tests.referee.corpus import Confusion
from tests.referee.court import Court
from tests.referee.holders import ROOT, Holder

settings.register_profile("loaded machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("loaded machine")

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


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(exclusive.DIRECTORY_VARIABLE, str(tmp_path / "locks"))
    return tmp_path / "locks"


@pytest.fixture
def start(place: Path) -> Iterator[Callable[..., Holder]]:
    started: list[Holder] = []

    def start(*command: str) -> Holder:
        process = subprocess.Popen(
            [sys.executable, "-c", *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    confusion = config.stash[TABLE]
    if confusion.table:
        terminalreporter.section("corpus: kind of candidate against status")
        for line in confusion.lines():
            terminalreporter.line(line)
