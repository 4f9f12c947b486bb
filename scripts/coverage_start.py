"""Measures the lines that each test runs, in its own process and in all that it starts or forks.

`scripts/line_coverage.py` has Python run this file at the start of every process (by a `.pth` file, since
referees and commands do not inherit all variables), and gives it to pytest as a plugin. The plugin writes
which test runs to `RUN/current/PID`; a process belongs to the test of its nearest ancestor with such a file.
What a fixture of a wider scope runs is kept under its own name, as it runs for all tests that use it.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Any, NoReturn

RUN = "LINE_COVERAGE_RUN"
"""The variable that names the directory of the run to the plugin."""
BEGUN = "line_coverage_begun"
ROOT = Path(__file__).parents[1]


def current_label(run: Path) -> str | None:
    """What this process works for: empty outside of tests; None for a process that is not of this run."""
    pid = os.getpid()
    while pid > 1:
        try:
            return (run / "current" / str(pid)).read_text()
        except FileNotFoundError:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return None


def measure(run: Path) -> None:
    """Starts to measure this process, which writes its lines to `RUN/data` at its end."""
    if (label := current_label(run)) is None:
        return
    from coverage import Coverage

    measured = Coverage(
        data_file=str(run / "data" / "lines"),
        data_suffix=True,
        config_file=False,
        source=[str(ROOT / "pipeline"), str(ROOT / "db")],
        messages=False,
    )
    measured.set_option("run:sigterm", True)
    measured._warn_no_data = measured._warn_unimported_source = measured._warn_preimported_source = False
    measured._auto_save = True
    measured.start()
    measured.switch_context(label)


def begin(run: Path) -> None:
    """Measures this process, and those that it forks. `os._exit` writes the lines first."""
    if hasattr(sys, BEGUN):  # Python reads a folder of packages twice that has two names
        return
    setattr(sys, BEGUN, True)
    measure(run)
    from coverage import Coverage

    leave = os._exit

    def forked() -> None:
        if before := Coverage.current():
            before._auto_save = False
            before.stop()
        measure(run)

    def write_and_leave(status: int) -> NoReturn:
        try:
            if measured := Coverage.current():
                measured.stop()
                measured.save()
        finally:  # a process that became another user cannot write; it must not go on for that
            leave(status)

    os.register_at_fork(after_in_child=forked)
    os._exit = write_and_leave


class Labels:
    """The plugin: it names the running test, and writes for each how long it took and how it ended."""

    def __init__(self, run: Path, suite: str) -> None:
        self._run, self._suite = run, suite
        self._label = ""
        self._seconds: Counter[str] = Counter()
        self._tests: dict[str, dict[str, Any]] = {}

    def _switch(self, label: str) -> str:
        from coverage import Coverage

        before, self._label = self._label, label
        place = self._run / "current" / str(os.getpid())
        place.with_suffix(".new").write_text(label)
        place.with_suffix(".new").replace(place)
        if measured := Coverage.current():
            measured.switch_context(label)
        return before

    def pytest_runtest_protocol(self, item: Any) -> Generator[None, Any, Any]:
        definitions = item._fixtureinfo.name2fixturedefs.values()
        self._tests[item.nodeid] = {
            "fixtures": sorted({_name(each[-1]) for each in definitions if each[-1].scope != "function"}),
            "clock": item.get_closest_marker("clock") is not None,
            "passed": True,
        }
        self._switch(item.nodeid)
        try:
            return (yield)
        finally:
            self._switch("")

    def pytest_fixture_setup(self, fixturedef: Any) -> Generator[None, Any, Any]:
        if fixturedef.scope == "function":
            return (yield)
        before = self._switch(_name(fixturedef))
        try:
            return (yield)
        finally:
            self._switch(before)

    def pytest_runtest_makereport(self, item: Any, call: Any) -> None:
        import pytest  # this file runs in each process: only here is pytest there anyway

        self._seconds[item.nodeid] += call.duration
        failed = call.excinfo is not None and not call.excinfo.errisinstance(pytest.skip.Exception)
        self._tests[item.nodeid]["passed"] &= not failed

    def pytest_sessionfinish(self) -> None:
        for name, test in self._tests.items():
            test["seconds"] = {self._suite: round(self._seconds[name], 3)}
        file = self._run / "tests" / f"{self._suite}-{os.getpid()}.json"
        file.write_text(json.dumps(self._tests))


def _name(fixture: Any) -> str:
    return f"fixture {fixture.baseid}::{fixture.argname}"


def pytest_configure(config: Any) -> None:
    """Each process of pytest that runs tests keeps its own."""
    import pytest

    for name in ("pytest_runtest_protocol", "pytest_fixture_setup"):
        pytest.hookimpl(wrapper=True, tryfirst=True)(getattr(Labels, name))
    config.pluginmanager.register(Labels(Path(os.environ[RUN]), os.environ["LINE_COVERAGE_SUITE"]), "labels")
