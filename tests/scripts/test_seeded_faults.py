"""Coverage and seeded faults of a small repository, with real runs of pytest and real processes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from scripts.fault_places import Fault
from scripts.line_index import Index, nearest
from scripts.seeded_faults import shares, table

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


def record(outcome: str, kind: str = "operator", file: str = "pipeline/runs/batch.py") -> dict[str, Any]:
    """A fault that ended so."""
    return {
        "kind": kind, "file": file, "line": 3, "start": 9, "before": "a\n  b", "after": "c",
        "outcome": outcome, "late": False, "ran": {"test": 2}, "covering": {"test": 30},
    }  # fmt: skip


def test_the_table_counts_kinds_and_packages_and_lists_what_nobody_noticed() -> None:
    rows = table([record("test"), record("unnoticed", "constant"), record("test-ci", file="db/store.py")])
    numbers = {line[:24].strip(): line[24:].split() for line in rows.splitlines() if line[24:].split()}
    assert numbers["operator"] == ["1", "1", "0", "0", "0", "2"]
    assert numbers["pipeline/runs"] == ["1", "0", "1", "0", "0", "2"]
    assert numbers["db"] == ["0", "1", "0", "0", "0", "1"]
    assert (
        "unnoticed: pipeline/runs/batch.py:3: a b -> c (survived 2 of 30 covering tests of make test)" in rows
    )


def test_parts_of_different_sets_are_not_added(tmp_path: Path) -> None:
    for seed in (1, 2):
        content = {"seed": seed, "count": 4, "suite": "test", "under": ["db"], "faults": []}
        (tmp_path / f"{seed}.json").write_text(json.dumps(content))
    command = [
        sys.executable,
        "-m",
        "scripts.seeded_faults",
        "--add",
        tmp_path / "1.json",
        tmp_path / "2.json",
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "different sets" in done.stderr


def test_sandboxed_code_is_tried_by_the_tests_that_start_it() -> None:
    test = {"fixtures": [], "seconds": {"test": 1.0}, "clock": False, "passed": True}
    index = Index(
        {
            "names": ["t"],
            "tests": {"t": test},
            "digests": {},
            "lines": {"pipeline/verifier/workers/client.py": {"2": [0]}},
        }
    )
    fault = Fault("constant", "pipeline/verifier/contestant/main.py", 90, 90, True, 0, 1, "1", "2")
    assert index.covering(fault) == {"t"}
    assert [nearest(file) for file in ("db/store.py", "pipeline/bounds.py", "pipeline/runs/batch.py")] == [
        "db", "bounds", "runs",
    ]  # fmt: skip


@pytest.mark.parametrize("jobs", [1, 2, 3, 50])
def test_each_job_has_two_cores_of_its_own_as_far_as_there_are(jobs: int) -> None:
    cores = os.sched_getaffinity(0)
    widths = shares(jobs)
    assert len(widths) == jobs
    assert {len(each) for each in widths} == {max(min(2, len(cores)), len(cores) // jobs)}
    assert set().union(*widths) <= cores
