"""What holds for all tests."""

from __future__ import annotations

import gc
import os

# Read when torch is imported: its threads else spin while they wait. Where several processes share the cores,
# arithmetic then takes six times as long.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from kernelproof.db.store import open_store
from kernelproof.verifier.devices.locks import DIRECTORY_VARIABLE
from tests import tidy
from tests.order import shuffle
from tests.postgres import PostgresServer, server
from tests.referee.corpus import Confusion
from tests.referee.table import TABLE, Table

settings.register_profile("loaded machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", settings.get_profile("loaded machine"), max_examples=25)
settings.load_profile(os.environ.get("TEST_EXAMPLES", "loaded machine"))

OTHERWISE_RUN = ("ci", "slow", "thorough", "gpu")
"""Markers of tests that `make test` leaves out."""


def pytest_configure(config: pytest.Config) -> None:
    """The table is made here, since the process that prints collects no tests itself."""
    config.stash[TABLE] = Table()
    config.pluginmanager.register(config.stash[TABLE], "corpus-table")
    tidy.pytest_configure(config)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leaves the cases that `few` does not keep to `make test-ci`; the variable `TEST_ORDER` shuffles."""
    of_functions: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("few") and not any(map(item.get_closest_marker, OTHERWISE_RUN)):
            of_functions[item.nodeid.partition("[")[0]].append(item)
    for cases in of_functions.values():
        marker = cases[0].get_closest_marker("few")
        assert marker is not None
        (most,) = marker.args
        kept = {number * len(cases) // most for number in range(most)}
        for number, case in enumerate(cases):
            if number not in kept:
                case.add_marker("ci")
    if seed := os.environ.get("TEST_ORDER"):
        shuffle(items, seed)


@pytest.hookimpl(hookwrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collected tests stay to the end: no search for garbage looks at their 700,000 objects."""
    gc.disable()
    yield
    gc.freeze()
    gc.enable()


def pytest_unconfigure() -> None:
    gc.unfreeze()


@pytest.fixture(scope="session")
def confusion(request: pytest.FixtureRequest) -> Confusion:
    """Every verdict on a member of the corpus so far."""
    return request.config.stash[TABLE].confusion


@pytest.fixture(scope="session")
def run_directory(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """A directory of this run, the same one for all processes that share the run (`pytest -n 2`)."""
    base = tmp_path_factory.getbasetemp()
    place = (base.parent if hasattr(request.config, "workerinput") else base) / "run"
    place.mkdir(mode=0o700, exist_ok=True)
    return place


@pytest.fixture(scope="session")
def cache(run_directory: Path) -> Path:
    """What is compiled, learnt of the compilers and measured of this machine, once for all tests."""
    place = run_directory / "cache"
    place.mkdir(exist_ok=True)
    return place


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty database of the newest schema, made once; a test that takes a copy needs no migrations."""
    path = tmp_path_factory.mktemp("empty") / "attempts.sqlite"
    open_store(path).close()
    return path


@pytest.fixture(scope="session", autouse=True)
def own_locks(run_directory: Path) -> Iterator[None]:
    """No test waits for somebody else's measurement. The processes of one run wait for each other."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(DIRECTORY_VARIABLE, str(run_directory / "locks"))
        yield


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server, started when the first test asks for it."""
    with server() as running:
        yield running
