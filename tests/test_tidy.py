"""A run of pytest whose tests leave a file in its root fails."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tidy import FILES_LEFT

LEAVES = "def test_it(): open('{}', 'w')\n"


@pytest.mark.parametrize(
    ("name", "workers", "code"),
    [("test_123_1", "0", FILES_LEFT), ("test_123_1", "1", FILES_LEFT), ("ignored.log", "0", 0)],
)
def test_a_file_that_is_left_in_the_root_fails_the_run(
    tmp_path: Path, name: str, workers: str, code: int
) -> None:
    (tmp_path / "test_it.py").write_text(LEAVES.format(name))
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -q -p no:cacheprovider -p xdist.plugin\n")
    (tmp_path / ".gitignore").write_text("/*.log\n__pycache__/\n")
    places = {
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    }
    environment = {**os.environ, **places, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest", "-p", "tests.tidy", "-n", workers]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    assert (f"The tests left in {tmp_path}: {name}\n" in done.stdout) == bool(code)
