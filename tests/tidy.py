"""The check that the tests leave no new files in the repository's root."""

from __future__ import annotations

from collections.abc import Generator
from fnmatch import fnmatch
from pathlib import Path

import pytest

FILES_LEFT = 9
"""The exit code. It is none of pytest's, so that `scripts/tests_again.py` forgives nothing."""


class Tidy:
    """The plugin that compares a folder before the tests and after them. What `.gitignore` names may come."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._before = self._names()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None]:
        """Runs last, when the processes that share the run have ended."""
        yield
        if left := sorted(self._names() - self._before):
            print(f"\nThe tests left in {self._root}: {', '.join(left)}")
            session.exitstatus = FILES_LEFT

    def _names(self) -> set[str]:
        ignoring = self._root / ".gitignore"
        ignored = [line.strip("/") for line in ignoring.read_text().split()] if ignoring.exists() else []
        names = (path.name for path in self._root.iterdir())
        return {name for name in names if not any(fnmatch(name, each) for each in ignored)}


def pytest_configure(config: pytest.Config) -> None:
    """Only the process that prints looks: others are at work while one of them ends."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Tidy(config.rootpath), "tidy")
