"""What holds for all tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from db.store import open_store
from pipeline.devices.locks import DIRECTORY_VARIABLE

settings.register_profile("loaded machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("loaded machine")


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is compiled, learnt of the compilers and measured of this machine, once for all tests."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty database of the newest schema, made once; a test that takes a copy needs no migrations."""
    path = tmp_path_factory.mktemp("empty") / "attempts.sqlite"
    open_store(path).close()
    return path


@pytest.fixture(scope="session", autouse=True)
def own_locks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test waits until somebody else's measurement on this host is done."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(DIRECTORY_VARIABLE, str(tmp_path_factory.mktemp("locks")))
        yield
