"""What `tune` found: the parameters, the best trials, and the confirmed gain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rich.console import Console

from kernelproof.report.layout import between, cell, plain_table
from kernelproof.types import Measurement

ROWS = 5
"""Trials that the table shows, the original apart."""


class TunedRow(NamedTuple):
    """One correct combination."""

    name: str
    """`original`, or its rank."""
    parameters: Mapping[str, int]
    measurement: Measurement
    attempt_id: int


def print_tuned(rows: Sequence[TunedRow], console: Console) -> None:
    """A table with a column for each parameter; nothing where there are no rows."""
    if not rows:
        return
    names = list(rows[0].parameters)
    table = plain_table("", *names, "speedup", "95 % interval", "pace", "attempt")
    for row in rows:
        m = row.measurement
        numbers = [str(row.parameters[name]) for name in names]
        speedup = f"{m.speedup:.3f}", between(m.speedup_interval), m.pace
        facts = (row.name, *numbers, *speedup, f"#{row.attempt_id}")
        table.add_row(*map(cell, facts))
    console.print(table)
