"""Pieces of screens: words, facts, figures, and tables that a narrow screen shows with fewer columns."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from rich.box import SIMPLE
from rich.cells import cell_len
from rich.console import Console
from rich.segment import Segment, Segments
from rich.style import Style
from rich.table import Table
from rich.text import Text

from kernelproof.report.plain import clean
from kernelproof.types import Interval, Setting

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


_LEAST = Interval(low=0.9, high=1.1)
"""The axis shows at least this: noise of a per cent fills no row."""
_BOUNDS = Interval(low=1e-3, high=1e4)


class Axis:
    """Speedups on a logarithmic axis of characters, one for all rows of a table."""

    def __init__(self, intervals: Iterable[Interval], cells: int) -> None:
        """It holds these intervals and 1, in so many characters."""
        known = [_LEAST, *intervals]
        self._cells = cells
        self._low = math.log(_within(min(each.low for each in known)))
        self._high = math.log(_within(max(each.high for each in known)))
        self._one = min(max(self._cell(1.0), 1), cells - 2)

    def _cell(self, speedup: float) -> int:
        share = (math.log(_within(speedup)) - self._low) / (self._high - self._low)
        return round(share * (self._cells - 1))

    @property
    def title(self) -> str:
        """The ends and 1, each at its place, as far as there is room: `0.06   1     11`."""
        low, high = f"{math.exp(self._low):.1g}", f"{math.exp(self._high):.2g}"
        before, after = self._one, self._cells - self._one - 1
        left = low.ljust(before) if len(low) < before else " " * before
        return left + "1" + (high.rjust(after) if len(high) < after else " " * after)

    def row(self, speedup: float, interval: Interval) -> str:
        """`    ─●─│    `: slower than 1 for sure, by the interval."""
        low, dot, high = map(self._cell, (interval.low, speedup, interval.high))
        if interval.high < 1:  # what does not hold 1 leaves its line alone
            low, dot, high = (min(place, self._one - 1) for place in (low, dot, high))
        elif interval.low > 1:
            low, dot, high = (max(place, self._one + 1) for place in (low, dot, high))
        signs = [" "] * self._cells
        signs[self._one] = "│"
        for place in range(low, high + 1):
            signs[place] = "┼" if place == self._one else "─"
        signs[dot] = "●"
        return "".join(signs)


def _within(speedup: float) -> float:
    return min(max(speedup, _BOUNDS.low), _BOUNDS.high)


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


NAME_WIDTH = 20
"""Characters of a name for which a narrow screen gives up spare columns."""
_UNBOUNDED = 10_000
_FORMULA = ("=", "+", "-", "@")


def setting_line(setting: Setting) -> str:
    """The setting; rules are named where they are not the usual ones."""
    said = [setting.backend, f"{clean(setting.size)} size", clean(setting.device or "no device reached")]
    if setting.numerics != "fp32":
        said.append(f"{setting.numerics} numerics")
    if setting.purity != "any":
        said.append(f"{setting.purity} purity")
    if not setting.own_kernel:
        said.append("no own kernel required")
    return " · ".join(said)


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    title: str
    cell: Callable[[Any], Text | str]
    """The cell of a record."""
    number: bool = True
    """Numbers stand on the right and are never broken; words stand on the left."""
    name: bool = False
    """A name that is not ours: of any length, folded over lines where it must be."""
    spare: int = 0
    """On a narrow screen 1 goes first, then 2 ...; 0 stays."""
    optional: bool = False
    """Left out where no row has anything in it."""
    listed: bool = False
    """Entries with `, ` between them: folded between entries, not within one."""
    short: Callable[[Any], Text | str] | None = None
    """The cell on a screen that is too narrow for the whole table."""
    common: str = ""
    """How the heading says what all rows have in common, such as `all by {}`; the column is left out then."""
    legend: str = ""
    """What the title means, for who reads it the first time."""


Rows = Sequence[Sequence[Text | str]]


class Fitted(NamedTuple):
    """A table that a screen holds."""

    table: Table
    legends: list[str]
    """Of the columns that are shown."""
    common: list[str]
    """What all rows have in common, in words, in place of a column."""


def fitting(
    columns: Sequence[Column], records: Sequence[Any], console: Console, *, whole: bool = False
) -> Fitted:
    """The table of these records with as many of its columns as the screen holds whole.

    Spare columns go only for names of up to NAME_WIDTH characters; longer names fold instead. `whole`: what
    all rows have in common has its column, too.
    """
    rows = [[_safe(column, column.cell(record)) for column in columns] for record in records]
    kept = [i for i, column in enumerate(columns) if not column.optional or any(row[i] for row in rows)]
    common = []
    for i in [] if whole or len(rows) < 2 else list(kept):
        if columns[i].common and len({str(row[i]) for row in rows}) == 1:
            kept.remove(i)
            common.append(columns[i].common.format(rows[0][i]))
    table, shown = _table_of_some(columns, rows, records, kept, console)
    return Fitted(table, [columns[i].legend for i in shown if columns[i].legend], common)


def _table_of_some(
    columns: Sequence[Column], rows: Rows, records: Sequence[Any], kept: list[int], console: Console
) -> tuple[Table, list[int]]:
    """The table of those of the kept columns that there is room for, and which they are."""
    chosen, cells = [columns[i] for i in kept], [[row[i] for i in kept] for row in rows]
    table = table_of(chosen, cells, widths=_widths(chosen, cells))
    if width_of(table, console) <= console.width:
        return table, kept
    rows = [
        [
            cell if column.short is None else _safe(column, column.short(record))
            for column, cell in zip(columns, row, strict=True)
        ]
        for record, row in zip(records, rows, strict=True)
    ]
    spare = sorted((i for i in kept if columns[i].spare), key=lambda i: columns[i].spare)
    while True:
        chosen = [columns[i] for i in kept]
        cells = [[row[i] for i in kept] for row in rows]
        if not spare or width_of(table_of(chosen, cells, NAME_WIDTH), console) <= console.width:
            return table_of(chosen, _folded(chosen, cells, console), console.width), kept
        kept.remove(spare.pop(0))


def _safe(column: Column, cell: Text | str) -> Text | str:
    return Text(clean(cell)) if column.name and isinstance(cell, str) else cell


def _folded(columns: Sequence[Column], rows: Rows, console: Console) -> Rows:
    """The rows with line ends between the entries of listed columns, where one line has no room for all."""
    for place, column in enumerate(columns):
        if column.listed:
            bare = [[*row[:place], "", *row[place + 1 :]] for row in rows]
            others = width_of(table_of(columns, bare, console.width), console) - cell_len(column.title)
            room = console.width - others
            rows = [[*row[:place], _lines(str(row[place]), room), *row[place + 1 :]] for row in rows]
    return rows


def _lines(entries: str, room: int) -> str:
    """Entries in lines of up to `room` characters; a longer entry has a line of its own."""
    lines = [""]
    for entry in entries.split(", "):
        longer = f"{lines[-1]}, {entry}" if lines[-1] else entry
        if lines[-1] and cell_len(longer) >= room:  # the last character is a comma's
            lines.append(entry)
        else:
            lines[-1] = longer
    return ",\n".join(lines)


def _widths(columns: Sequence[Column], rows: Rows) -> list[int] | None:
    """The characters of each column's longest cell; None where a cell has several lines. The library finds
    them as well, three times, and takes long where the rows are many."""
    texts = [[column.title for column in columns], *([str(cell) for cell in row] for row in rows)]
    if any("\n" in text or "\t" in text for row in texts for text in row):
        return None
    return [max(map(cell_len, column)) for column in zip(*texts, strict=True)]


def table_of(
    columns: Sequence[Column],
    rows: Rows,
    longest_name: int | None = None,
    widths: Sequence[int] | None = None,
) -> Table:
    """With `longest_name`, in characters, for a narrow screen: columns closer together. `widths`: of the
    columns, in characters, where they are known."""
    narrow = longest_name is not None
    table = Table(box=SIMPLE, pad_edge=False, show_edge=False, collapse_padding=narrow)
    for place, column in enumerate(columns):
        table.add_column(
            Text(column.title),
            justify="right" if column.number else "left",
            no_wrap=not column.name,
            overflow="fold",
            max_width=longest_name if column.name else None,
            width=None if widths is None else widths[place],
        )
    for row in rows:
        table.add_row(*row)
    return table


def width_of(table: Table, console: Console) -> int:
    """Characters that the table takes when nothing in it is broken."""
    return console.measure(table, options=console.options.update_width(_UNBOUNDED)).maximum


def csv_text(columns: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> str:
    """One line of names, then one for each row; texts are made safe."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([csv_cell(cell) if isinstance(cell, str) else cell for cell in row] for row in rows)
    return out.getvalue()


def csv_cell(text: str) -> str:
    """A text as a cell: made safe, and with `'` before what a spreadsheet would compute, such as `=A1`."""
    text = clean(text)
    return f"'{text}" if text.lstrip().startswith(_FORMULA) else text
