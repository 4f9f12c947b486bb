"""Correct programs that were timed, as a table: the fastest of a folder, and what `tune` tried."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rich.console import Console

from kernelproof.report.layout import attempt_number, between, print_table
from kernelproof.types import Measurement

MOST_CANDIDATES = 10
"""Candidates that a table of the fastest shows."""
MOST_TRIALS = 5
"""Trials of a tuner that a table shows, the original apart."""


class Timed(NamedTuple):
    """A program."""

    facts: Sequence[str]
    """Its name and more, in the first columns."""
    measurement: Measurement
    attempt_id: int | None


def print_fastest(titles: Sequence[str], timed: Iterable[Timed], console: Console) -> None:
    """The best, by what each surely reaches, and how many more there are."""
    best = sorted(timed, key=lambda one: -one.measurement.claimed)
    print_timed(titles, best[:MOST_CANDIDATES], console)
    if len(best) > MOST_CANDIDATES:
        console.print(f"and {len(best) - MOST_CANDIDATES} more that were measured")


def print_timed(titles: Sequence[str], rows: Iterable[Timed], console: Console) -> None:
    """A table of programs in their order; nothing where there are none. `titles`: of their facts."""
    cells = (
        (*facts, f"{m.speedup:.3f}", between(m.speedup_interval), m.pace, attempt_number(attempt_id))
        for facts, m, attempt_id in rows
    )
    print_table(console, (*titles, "speedup", "95 % interval", "pace", "attempt"), cells)
