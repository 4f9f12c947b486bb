"""Runs pytest as `python -m pytest` does, and what fails once more: alone, in one process, after all others.

    python -m scripts.tests_again ARGUMENTS OF PYTEST

`.ci/run` runs the tests so. A test that fails twice fails the run. A test that passed only the second time
is named in the summary as flaky, and added to the file that `FLAKY_TESTS` names. Nothing runs again where
more than `MOST` tests failed, where pytest did not finish (an error in collecting, no tests, a lost worker,
`-x`), or where an error lies outside the tests: the run has failed then.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pytest

MOST = 20
"""More failures than this are no flaky tests."""
SEEN = "TESTS_AGAIN_SEEN"
"""The environment variable that names the file to which a run of pytest writes its `Seen`."""
FAILED = int(pytest.ExitCode.TESTS_FAILED)


@dataclass
class Seen:
    """How the tests of one run of pytest ended."""

    failed: list[str] = field(default_factory=list)
    """Node ids of tests whose set-up, call or tear-down failed."""
    passed: list[str] = field(default_factory=list)
    """Node ids of tests that ran, and of which nothing failed."""
    unfinished: bool = False
    """Whether the run left out tests that it should have run, or lost a process."""


class Watch:
    """The plugin that makes `Seen`."""

    def __init__(self, to: Path) -> None:
        self._to = to
        self._seen = Seen()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when not in ("setup", "call", "teardown"):  # so a process that died is reported
            self._seen.unfinished = True
        if report.failed and report.nodeid not in self._seen.failed:
            self._seen.failed.append(report.nodeid)
        if report.passed and report.when == "call":
            self._seen.passed.append(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._seen.unfinished |= report.failed

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        seen = self._seen
        seen.unfinished |= bool(session.shouldfail or session.shouldstop)
        seen.passed = [name for name in seen.passed if name not in seen.failed]
        self._to.write_text(json.dumps(asdict(seen)))


def pytest_configure(config: pytest.Config) -> None:
    """This file is a plugin of the runs that it starts. Workers tell their outcomes to the process that
    prints."""
    to = os.environ.get(SEEN)
    if to and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Watch(Path(to)), "tests-again")


def once(arguments: list[str]) -> tuple[int, Seen]:
    """Runs pytest: its exit code, and how the tests ended. A run that died is unfinished."""
    with tempfile.TemporaryDirectory() as folder:
        to = Path(folder) / "seen.json"
        command = [sys.executable, "-m", "pytest", "-p", "scripts.tests_again", *arguments]
        code = subprocess.run(command, env={**os.environ, SEEN: str(to)}, check=False).returncode
        return code, Seen(**json.loads(to.read_text())) if to.exists() else Seen(unfinished=True)


def main(arguments: list[str]) -> int:
    """The exit code: pytest's, or 0 where all that failed passed the second time."""
    code, first = once(arguments)
    if code != FAILED or first.unfinished or not 0 < len(first.failed) <= MOST:
        return code
    print("\nAgain, alone:", *first.failed, sep="\n  ", flush=True)
    code, second = once(["-m", "", *first.failed])
    flaky = [name for name in first.failed if name in second.passed]
    twice = [name for name in first.failed if name not in second.passed]
    if flaky:
        print("\nFlaky: failed, and passed when run again alone:", *flaky, sep="\n  ", flush=True)
        if kept := os.environ.get("FLAKY_TESTS"):
            with Path(kept).open("a", encoding="utf-8") as file:
                file.writelines(f"{name}\n" for name in flaky)
    if twice:
        print("\nFailed twice:", *twice, sep="\n  ", flush=True)
    return code or (FAILED if twice or second.unfinished else 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
