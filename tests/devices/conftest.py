"""Locks in a directory of the test's own, processes that hold them, and the host of `tests.engine.host`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kernelproof.verifier.devices import locks
from tests.devices.holders import ROOT, Holder
from tests.engine.conftest import host as host
from tests.engine.conftest import referees as referees


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(locks.DIRECTORY_VARIABLE, str(tmp_path / "locks"))
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
            env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()
