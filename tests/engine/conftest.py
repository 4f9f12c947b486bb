"""The host of `host.py` as fixtures."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from kernelproof.verifier.build import learn_toolchain
from kernelproof.verifier.devices import discovery
from kernelproof.verifier.devices.locks import DIRECTORY_VARIABLE
from tests.engine.host import GPUS, REFEREE


@pytest.fixture
def new_cache(tmp_path: Path, cache: Path) -> Path:
    """A cache of the test's own: nothing is built in it, and the compilers are known already."""
    learn_toolchain(cache)
    shutil.copytree(cache / "toolchains", tmp_path / "cache" / "toolchains")
    return tmp_path / "cache"


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A host with three GPUs and no quarantine; its directory for locks."""
    place = tmp_path / "locks"
    monkeypatch.setenv(DIRECTORY_VARIABLE, str(place))
    monkeypatch.setattr(discovery, "gpus", lambda: GPUS)
    monkeypatch.setattr(discovery, "_set_aside", {})
    return place


@pytest.fixture
def referees(host: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Referees whose canary fails on the GPUs named, after they did `act`; all do `before` first."""

    def install(
        *broken: str, act: str = "quarantine.impose(gpu, 'it said so')", before: str = "pass"
    ) -> None:
        program = tmp_path / "referee"
        program.write_text(REFEREE.format(python=sys.executable, broken=broken, act=act, before=before))
        program.chmod(0o755)
        executable = SimpleNamespace(executable=str(program))
        monkeypatch.setattr("kernelproof.verifier.engine.referee_process.sys", executable)

    return install
