"""The arguments of `verify`, `Verifier` and `Scorer`, turned into problems and settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import ValidationError

from kernelproof.errors import UsageError
from kernelproof.problems import Suite, open_suite, read_problem
from kernelproof.runs.files import read_text
from kernelproof.runs.sizes import choose_size
from kernelproof.types import Problem, VerifySettings
from kernelproof.types.explain import explain
from kernelproof.verifier.devices.discovery import default_backend


class Rules:
    """Gives the problems that the arguments name, and the settings of each."""

    def __init__(self, suite: str | Path | None, unsafe: bool, settings: dict[str, Any]) -> None:
        """Raises UsageError for settings that make no sense."""
        self._path = Path(suite) if suite is not None else None
        self._suite: Suite | None = open_suite(self._path) if suite is not None else None
        chosen = {"backend": default_backend(), **settings}
        self._size = chosen.pop("size", None)
        try:
            self.settings = VerifySettings(unsafe=unsafe, **chosen)
        except ValidationError as error:
            raise UsageError(explain(error, known=VerifySettings.model_fields)) from None

    def problem(self, named: str | Path | Problem) -> Problem:
        """The problem that `named` means. Raises UsageError when there is none."""
        if isinstance(named, Problem):
            return named
        if isinstance(named, Path):
            return read_problem(named)
        if self._suite is None:
            self._suite = open_suite(self._path)
        return self._suite.find(named)

    def settings_for(self, problem: Problem) -> VerifySettings:
        """The settings with the size that this problem is verified at. Raises UsageError when it lacks it."""
        size = choose_size(self._size, self.settings.backend, [problem])
        return self.settings.model_copy(update={"size": size})


def text_of(source: str | Path) -> str:
    """The text itself, or what the file of this path holds. Raises UsageError as `read_text` does."""
    return read_text(source) if isinstance(source, Path) else source
