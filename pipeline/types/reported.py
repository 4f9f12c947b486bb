"""The result that somebody reported of a program that was imported; never a verdict."""

from __future__ import annotations

from math import isfinite
from typing import Any

from pydantic import Field

from kernelproof.types.record import FrozenRecord


def ratio(baseline_ms: float | None, runtime_ms: float | None) -> float | None:
    """The speedup that two times amount to; None where one is missing, or the result is no number."""
    if baseline_ms is None or runtime_ms is None:
        return None
    speedup = baseline_ms / runtime_ms
    return speedup if isfinite(speedup) and speedup > 0 else None


class ReportedFigures(FrozenRecord):
    """The figures reported of a program; None where nothing is said."""

    compiled: bool | None = None
    correct: bool | None = None
    runtime_ms: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Milliseconds of one call of the candidate."""
    baseline_ms: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Milliseconds of one call of the reference."""
    speedup: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """As reported, else baseline over runtime."""
    device: str | None = None
    """What it was measured on, in the reporter's words."""


class ReportedResult(ReportedFigures):
    """Where an imported program came from, with the result reported of it."""

    source: str
    """The file below the folder that was imported, or the line of a file of lines."""
    said_in: str | None = None
    """The file that reports it; None: nothing is reported."""
    raw: dict[str, Any] | None = None
    """The report as it was written, whole."""

    @property
    def has_claim(self) -> bool:
        """Whether anything is reported of the program."""
        return self.said_in is not None
