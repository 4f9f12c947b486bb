"""The walls between the rooms, and the size of a file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("pipeline", "db", "tests", "benchmarks", "scripts", "prompts", "reference_models")
MOST_LINES = 450


def test_no_room_reaches_through_a_wall() -> None:
    pytest.importorskip("importlinter", reason="make test installs import-linter")
    code = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken" in done.stdout


def test_no_file_is_too_long_to_read() -> None:
    files = [file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py")]
    assert len(files) > 100
    lengths = {str(file.relative_to(ROOT)): len(file.read_text().splitlines()) for file in files}
    assert {name: length for name, length in lengths.items() if length > MOST_LINES} == {}
