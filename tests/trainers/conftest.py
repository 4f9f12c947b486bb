"""A trainer's package in a virtual environment of its own, which scripts/trainer_packages.sh makes."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import suite
from tests.cli.program import ROOT
from tests.service.conftest import Running, service

__all__ = ["service", "suite"]

FOLDER = "KERNELPROOF_TRAINERS"
"""The variable that names the folder of the environments."""
CALLS = Path(__file__).parent / "calls"

Ask = Callable[..., dict[str, Any]]


@pytest.fixture
def environment(request: pytest.FixtureRequest) -> Path:
    """The environment that the test names by its marker. Skips the test where it is not there."""
    [name] = request.node.get_closest_marker("package").args
    folder = os.environ.get(FOLDER)
    if not folder:
        pytest.skip(f"{FOLDER} names no folder: scripts/trainer_packages.sh makes one and runs this")
    if not (Path(folder) / name / "installed").exists():
        pytest.skip(f"{name} was not installed in {folder}: see what scripts/trainer_packages.sh said of it")
    return Path(folder) / name


@pytest.fixture
def ask(environment: Path, service: Running) -> Ask:
    """Runs a file of tests/trainers/calls with the package, and gives what it found."""

    def ask(call: str, **given: Any) -> dict[str, Any]:
        done = subprocess.run(
            [environment / "bin" / "python", CALLS / f"{call}.py", json.dumps(given)],
            env={
                **os.environ,
                "KERNELPROOF_URL": service.url,
                "PYTHONPATH": f"{ROOT / 'src'}:{CALLS}",
                "HF_HUB_OFFLINE": "1",
                "WANDB_MODE": "disabled",
                "CUDA_VISIBLE_DEVICES": "",
                "RAY_USAGE_STATS_ENABLED": "0",
            },
            cwd=environment,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-8000:]}"
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return found

    return ask
