"""Screens as a person sees them, each held against a stored text. `UPDATE_SCREENS=1` stores them anew."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path
from unittest import mock

from kernelproof.report.plain import clean

SNAPSHOTS = Path(__file__).parent / "snapshots"
WIDTHS = (60, 80, 100, 160, None)
"""Columns of terminals; None is a pipe."""


class _Screen(io.StringIO):
    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    encoding = "utf-8"

    def isatty(self) -> bool:
        return self._terminal


def shown(run: Callable[[], object], width: int | None) -> str:
    """What `run` prints on a terminal with so many columns, without colours; None: into a pipe."""
    screen = _Screen(width is not None)
    variables = {"TERM": "xterm", "COLUMNS": str(width)} if width else {}
    with mock.patch.dict(os.environ, variables), mock.patch("sys.stdout", screen):
        run()
    lines = clean(screen.getvalue()).split("\n")
    return "\n".join(line.rstrip() for line in lines)


def assert_screen(name: str, run: Callable[[], object], width: int | None) -> str:
    """Holds what `run` prints against `snapshots/NAME-WIDTH.txt`, and returns it."""
    printed = shown(run, width)
    stored = SNAPSHOTS / f"{name}-{width or 'piped'}.txt"
    if os.environ.get("UPDATE_SCREENS"):
        stored.write_text(printed)
    assert printed == stored.read_text(), f"UPDATE_SCREENS=1 stores {stored.name} anew"
    return printed
