"""Coverage and seeded faults of a small repository, with real runs of pytest and real processes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = """\
LIMIT = 3
def low(a):
    return a < LIMIT
def nobody(a):
    return a > 7
def child(a):
    return a + 5
def forked(a):
    return a - 5
def wide():
    return 8
def loop(a):
    while a > 0:
        a -= 1
    return a
def unseen(a):
    return a * 9
"""
TESTS = """\
import os, subprocess, sys, pytest
from kernelproof import sums
@pytest.fixture(scope="module")
def eight(): return sums.wide()
def test_low(): assert sums.low(2) and not sums.low(3) and not sums.low(4)
def test_child():
    code = "import os; from kernelproof import sums; code = sums.child(1); os._exit(code)"
    there = {"PYTHONPATH": os.environ["PYTHONPATH"]}
    assert subprocess.run([sys.executable, "-c", code], env=there).returncode == 6
def test_forked():
    process = os.fork()
    if not process: os._exit(sums.forked(9))
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 4
def test_first(eight): pass
def test_second(eight): assert eight == 8
def test_loop(): assert sums.loop(2) == 0
def test_unseen(): sums.unseen(1)
def test_broken(): assert sums.low(9)
@pytest.mark.ci
def test_ci(): assert sums.unseen(2) == 18
"""
MAKEFILE = """\
lint: ; false
test: lint ; $(PYTEST) -m "not ci"
test-ci: ; $(PYTEST) -m ci
"""
PLUGINS = "-p pytest_timeout -p _hypothesis_pytestplugin -p no:cacheprovider"


def run(root: Path, script: str, *options: object, code: int = 0) -> str:
    """The output of a script of the small repository, which ends with this exit code."""
    environment = {**os.environ, "PYTHONPATH": str(root / "src"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", f"scripts.{script}", *map(str, options)]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with an index of its tests."""
    pytest.importorskip("coverage")
    root = tmp_path_factory.mktemp("small")
    for folder in ("pipeline", "db", "tests", "src", "generated"):
        (root / folder).mkdir()
    shutil.copytree(ROOT / "scripts", root / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
    (root / "src" / "kernelproof").symlink_to("../pipeline")
    (root / "pipeline" / "__init__.py").touch()
    (root / "pipeline" / "sums.py").write_text(SOURCE)
    (root / "tests" / "test_sums.py").write_text(TESTS)
    (root / "Makefile").write_text(MAKEFILE)
    (root / "pytest.ini").write_text(f"[pytest]\naddopts = {PLUGINS}\nmarkers = ci\n")
    printed = run(root, "line_coverage", "--suite", "both", "--index", root / "index.json.gz")
    assert ["total", "16", "of", "17", "94.1", "%"] in [line.split() for line in printed.splitlines()]
    assert "1 tests failed" in printed and "tests/test_sums.py::test_broken" in printed
    return root


@pytest.mark.ci
def test_every_fault_ends_as_the_tests_can_tell(small: Path) -> None:
    options = (
        "--count",
        100,
        "--suite",
        "both",
        "--patience",
        2,
        "--index",
        small / "index.json.gz",
        "--jobs",
        2,
    )
    parts = [small / f"part{number}.json" for number in range(2)]
    for number, part in enumerate(parts):
        run(small, "seeded_faults", *options, "--shard", f"{number}/2", "--json", part)
    tried = {record["line"]: record for part in parts for record in json.loads(part.read_text())["faults"]}
    assert {line: (record["outcome"], record["by"].partition("::")[2]) for line, record in tried.items()} == {
        1: ("test", "test_low"),
        3: ("test", "test_low"),
        5: ("not covered", ""),
        7: ("test", "test_child"),
        9: ("test", "test_forked"),
        11: ("test", "test_second"),
        13: ("test", "test_loop"),
        14: ("test", "test_loop"),
        17: ("test-ci", "test_ci"),
    }
    assert tried[14]["late"] and not tried[7]["late"]
    assert (small / "pipeline" / "sums.py").read_text() == SOURCE
    total = run(small, "seeded_faults", "--add", *parts)
    assert [line.split() for line in total.splitlines() if line.startswith("all ")] == [
        ["all", "7", "1", "0", "1", "1", "9"]
    ]
    assert "not covered: pipeline/sums.py:5: " in total
    again = run(small, "seeded_faults", *options, "--shard", "0/2", "--json", parts[0])
    assert "test_low" not in again.partition("late")[0]  # nothing is tried twice
    with (small / "pipeline" / "sums.py").open("a") as source:
        source.write("# changed\n")
    assert "other lines of pipeline/sums.py: run scripts.line_coverage" in run(
        small, "seeded_faults", *options, code=2
    )
