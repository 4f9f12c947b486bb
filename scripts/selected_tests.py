"""A plugin of pytest that runs chosen tests in a given order, and says after each how things stand.

`SELECTED_TESTS` names a JSON file: `{"tests": {node id: most seconds}, "to": FILE}`. To FILE go the test that
runs (`running`), those that `passed`, and one that `failed`, after each test, as a fault may end the process.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

SELECTION = "SELECTED_TESTS"


class Selected:
    def __init__(self, tests: dict[str, float], to: Path) -> None:
        self._tests, self._to = tests, to
        self._state: dict[str, object] = {
            "running": "",
            "failed": "",
            "late": False,
            "passed": [],
            "errors": False,
        }
        self._failed: set[str] = set()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        order = {name: place for place, name in enumerate(self._tests)}
        items[:] = sorted(
            (item for item in items if item.nodeid in order), key=lambda item: order[item.nodeid]
        )
        for item in items:
            item.add_marker(pytest.mark.timeout(self._tests[item.nodeid]), append=False)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._keep(errors=bool(self._state["errors"]) or report.failed)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._keep(running=nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed.add(report.nodeid)
            self._keep(failed=report.nodeid, late="Timeout (>" in str(report.longrepr))

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        passed = self._state["passed"]
        assert isinstance(passed, list)
        self._keep(running="", passed=passed if nodeid in self._failed else [*passed, nodeid])

    def _keep(self, **values: object) -> None:
        self._state |= values
        self._to.with_suffix(".new").write_text(json.dumps(self._state))
        self._to.with_suffix(".new").replace(self._to)


def pytest_configure(config: pytest.Config) -> None:
    chosen = json.loads(Path(os.environ[SELECTION]).read_text())
    config.pluginmanager.register(Selected(chosen["tests"], Path(chosen["to"])), "selected-tests")
