"""Pieces that screens are made of: words, pairs of name and fact, tables, figures. All of it made safe."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from rich.box import SIMPLE
from rich.console import Console
from rich.segment import Segment, Segments
from rich.style import Style
from rich.table import Table
from rich.text import Text

from kernelproof.report.plain import clean
from kernelproof.types import Interval

_PREFIXES = ("", "k", "M", "G", "T", "P", "E")
_BINARY = ("KiB", "MiB", "GiB", "TiB")


def print_words(console: Console, text: str, style: str = "") -> None:
    """Text as it is: neither wrapped nor tabs expanded, because copied code is the code."""
    segment = Segment(clean(text) + "\n", Style.parse(style))
    console.print(Segments([segment]), end="", crop=False)


def print_facts(console: Console, facts: Mapping[str, str], style: str = "") -> None:
    """Name and fact, a line each; empty facts are left out. `style` is that of the status."""
    table = Table.grid(padding=(0, 2))
    for name, value in facts.items():
        if value:
            table.add_row(
                Text(clean(name), style="dim"), Text(clean(value), style=style if name == "status" else "")
            )
    console.print(table)


def plain_table(titles: Sequence[str], rows: Iterable[Sequence[Text | str]]) -> Table:
    """A table of texts, each as wide as it is."""
    table = Table(*titles, box=SIMPLE, pad_edge=False, show_edge=False)
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else Text(clean(cell)) for cell in row))
    return table


def print_table(console: Console, titles: Sequence[str], rows: Iterable[Sequence[Text | str]]) -> None:
    """Prints such a table; nothing where there are no rows."""
    table = plain_table(titles, rows)
    if table.row_count:
        console.print(table)


def attempt_number(attempt_id: int | None) -> str:
    """`#17`; empty for None."""
    return "" if attempt_id is None else f"#{attempt_id}"


def figure(value: object) -> str:
    """Four significant digits of a float; anything else as it is."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def pairs(values: Mapping[str, object]) -> str:
    """`name value, name value`."""
    return ", ".join(f"{name} {figure(value)}" for name, value in values.items())


def percent(fraction: float) -> str:
    """Three significant digits: `98.1 %`."""
    return f"{100 * fraction:.3g} %"


def share(fraction: float | None) -> str:
    """`93.3 %`; `-` where nothing is known."""
    return "-" if fraction is None else f"{100 * fraction:.1f} %"


def ratio(value: float | None) -> str:
    """A speedup, or a mean of several: `1.234`; `-` where nothing is known."""
    return "-" if value is None else f"{value:.3f}"


class Ends(Protocol):
    """An interval, or a record that has its ends."""

    @property
    def low(self) -> float:
        """Lower end."""

    @property
    def high(self) -> float:
        """Upper end."""


def between(interval: Ends | None, digits: int = 3) -> str:
    """`1.204 to 1.396`; empty without an interval."""
    return "" if interval is None else f"{interval.low:.{digits}f} to {interval.high:.{digits}f}"


def percents_between(interval: Interval | None) -> str:
    """The ends of a share's interval in whole percent: `55 to 93`; empty without one."""
    return "" if interval is None else f"{100 * interval.low:.0f} to {100 * interval.high:.0f}"


def scaled(value: float, unit: str) -> str:
    """Three significant digits with a decimal prefix: `4.29 GB`."""
    power = 0
    while abs(value) >= 999.5 and power < len(_PREFIXES) - 1:
        value, power = value / 1000, power + 1
    return f"{value:.3g} {_PREFIXES[power]}{unit}"


def size(count: int) -> str:
    """Three significant digits with a binary prefix: `20 GiB`, `512 bytes`."""
    if count < 1000:
        return f"{count} bytes"
    value, power = count / 1024, 0
    while value >= 999.5 and power < len(_BINARY) - 1:
        value, power = value / 1024, power + 1
    return f"{value:.3g} {_BINARY[power]}"
