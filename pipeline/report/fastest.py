"""The fastest of many candidates, as `verify` shows them when it is done with a folder."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from rich.console import Console

from kernelproof.report.layout import between, cell, plain_table
from kernelproof.types import Measurement

ROWS = 10
"""Candidates that the table shows."""


class Timed(NamedTuple):
    """A correct candidate that was measured."""

    name: str
    problem_id: str
    measurement: Measurement
    attempt_id: int | None


def print_fastest(timed: Iterable[Timed], console: Console) -> None:
    """A table of the best speedups, by what each surely reaches; nothing where nothing was measured."""
    best = sorted(timed, key=lambda one: -one.measurement.claimed)
    if not best:
        return
    table = plain_table("candidate", "problem", "speedup", "95 % interval", "pace", "attempt")
    for one in best[:ROWS]:
        m = one.measurement
        attempt = "" if one.attempt_id is None else f"#{one.attempt_id}"
        facts = (one.name, one.problem_id, f"{m.speedup:.3f}", between(m.speedup_interval), m.pace, attempt)
        table.add_row(*map(cell, facts))
    console.print(table)
    if len(best) > ROWS:
        console.print(f"and {len(best) - ROWS} more that were measured")
