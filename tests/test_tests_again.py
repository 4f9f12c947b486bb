"""What `.ci/run` runs again, and what it never forgives: real runs of pytest on small suites of tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FLAKY = """
import pathlib
def test_second_time():
    been = pathlib.Path(__file__).with_suffix(".been")
    first = not been.exists()
    been.touch()
    assert not first
"""
RIGHT = "def test_right(): pass\n"
WRONG = "def test_wrong(): assert False\n"


def run(folder: Path, source: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a file of tests in a folder of its own, as `.ci/run` would."""
    (folder / "test_it.py").write_text(source)
    (folder / "pytest.ini").write_text("[pytest]\naddopts = -q -p no:cacheprovider -p xdist.plugin\n")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "FLAKY_TESTS": str(folder / "flaky")}
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # only pytest-xdist, or each start takes far longer
    command = [sys.executable, "-m", "scripts.tests_again", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.few(1)
@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_test_that_passes_the_second_time_is_named_and_forgiven(tmp_path: Path, workers: str) -> None:
    done = run(tmp_path, FLAKY + RIGHT, "-n", workers)
    assert done.returncode == 0, done.stdout
    assert "Flaky: failed, and passed when run again alone:\n  test_it.py::test_second_time\n" in done.stdout
    assert (tmp_path / "flaky").read_text() == "test_it.py::test_second_time\n"


def test_a_test_that_fails_twice_fails_the_run_beside_a_flaky_one(tmp_path: Path) -> None:
    done = run(tmp_path, FLAKY + WRONG + RIGHT)
    assert done.returncode == 1
    assert "Failed twice:\n  test_it.py::test_wrong\n" in done.stdout
    assert (tmp_path / "flaky").read_text() == "test_it.py::test_second_time\n"


DIES = "import os\ndef test_dies(): os._exit(3)\n"
SKIPS = FLAKY.replace("assert not first", "if not first: import pytest; pytest.skip()\n    assert 0")
LEFT_OUT = FLAKY + "def test_would_fail(): assert False\n"


@pytest.mark.parametrize("target", ["test", "test-ci"])
def test_make_takes_another_command_for_all_its_tests(target: str) -> None:
    command = ["make", "-n", "-o", ".venv/test.installed", target, "PYTEST=run-tests"]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "pytest" not in shown
    assert sum(line.startswith("run-tests ") for line in shown.splitlines()) == 2
    assert f'make {target} PYTEST="$again"' in (ROOT / ".ci" / "run").read_text().splitlines()


@pytest.mark.ci
@pytest.mark.parametrize(
    ("source", "arguments", "code"),
    [
        (RIGHT, ["-k", "nothing"], 5),
        (FLAKY + "import not_there\n", [], 2),
        (FLAKY + "import not_there\n", ["-n", "1"], 1),
        (DIES, ["-n", "1"], 1),
        (DIES, [], 3),
        (LEFT_OUT, ["-x"], 1),
        (SKIPS, [], 1),
        (FLAKY + "\n".join(f"def test_{n}(): assert False" for n in range(20)), [], 1),
        (RIGHT, ["--no-such-option"], 4),
    ],
    ids=[
        "no tests", "collecting", "collecting beside others", "a lost worker", "a lost process", "stopped",
        "skipped the second time", "very many", "usage",
    ],
)  # fmt: skip
def test_what_is_no_failed_test_fails_the_run(
    tmp_path: Path, source: str, arguments: list[str], code: int
) -> None:
    done = run(tmp_path, source, *arguments)
    assert done.returncode == code, done.stdout + done.stderr
    assert not (tmp_path / "flaky").exists()
