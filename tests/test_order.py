"""`TEST_ORDER` runs all tests, in an order that follows from it."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import groupby
from pathlib import Path

SUITE = {
    f"test_{name}.py": "def test_1(): pass\ndef test_2(): pass\ndef test_3(): pass\n" for name in "abcde"
}
HOOK = """
import os
from tests.order import shuffle
def pytest_collection_modifyitems(items):
    shuffle(items, os.environ["TEST_ORDER"])
"""


def order(folder: Path, seed: int) -> list[str]:
    """Node ids of a suite in the order in which they run."""
    for name, source in {**SUITE, "conftest.py": HOOK, "pytest.ini": "[pytest]\n"}.items():
        (folder / name).write_text(source)
    root = str(Path(__file__).parents[1])
    environment = os.environ | {
        "TEST_ORDER": str(seed),
        "PYTHONPATH": root,
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return [line.split()[0] for line in done.stdout.splitlines() if " PASSED" in line]


def test_the_order_follows_from_the_seed_and_files_stay_together(tmp_path: Path) -> None:
    first = order(tmp_path, 7)
    assert sorted(first) == [f"{name}::test_{number}" for name in SUITE for number in (1, 2, 3)] != first
    assert len(list(groupby(first, lambda node: node.partition("::")[0]))) == len(SUITE)
    assert order(tmp_path, 7) == first != order(tmp_path, 8)
