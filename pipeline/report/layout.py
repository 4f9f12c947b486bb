"""Pieces of screens: words, facts, figures, and tables that a narrow screen shows with fewer columns."""

from __future__ import annotations

import csv
import io
import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple, Protocol

from rich.box import SIMPLE
from rich.cells import cell_len, set_cell_size
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


def print_facts(console: Console, facts: Mapping[str, str]) -> None:
    """Name and fact, a line each; empty facts are left out."""
    table = Table.grid(padding=(0, 2))
    for name, value in facts.items():
        if value:
            table.add_row(Text(clean(name), style="dim"), Text(clean(value)))
    console.print(table)


def print_lines(console: Console, lines: Iterable[Text | str], style: str = "") -> None:
    """Sentences, each folded at the terminal's width; whole in a pipe."""
    for line in lines:
        said = line if isinstance(line, Text) else Text(clean(line), style=style)
        console.print(said, soft_wrap=not console.is_terminal)


def print_table(
    console: Console, titles: Sequence[str], rows: Iterable[Sequence[Text | str]], spare: Sequence[str] = ()
) -> None:
    """Prints a table in the screen's width; nothing where there are no rows. The first and the last column
    may fold; a narrow screen leaves out those that are `spare`, the first of them first."""
    ends = (0, len(titles) - 1)
    places = {title: place for place, title in enumerate(spare, start=1)}
    columns = [
        Column(title, itemgetter(n), False, folded if n in ends else None, places.get(title, 0))
        for n, title in enumerate(titles)
    ]
    if known := list(rows):
        console.print(fitting(columns, known, console).table)


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


class Ends(Protocol):
    @property
    def low(self) -> float:
        """Lower end."""

    @property
    def high(self) -> float:
        """Upper end."""


def percents_between(interval: Interval | None) -> str:
    """The ends of a share's interval in whole percent: `55 to 93`; empty without one."""
    return "" if interval is None else f"{100 * interval.low:.0f} to {100 * interval.high:.0f}"


_LEAST = Interval(low=0.9, high=1.1)
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


NAME_WIDTH, LEAST_NAME = 20, 14
"""Characters of a name for which a narrow screen gives up spare columns, and those that are spare LAST."""
LAST = 9
_GAP, _NARROW_GAP = 3, 2
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
    title: str
    cell: Callable[[Any], Text | str]
    number: bool = True
    """Numbers stand on the right and are never broken; words stand on the left."""
    fit: Callable[[str, int], str] | None = None
    """Of a text that is not ours, of any length: fits it to so many characters, such as `folded`."""
    spare: int = 0
    """On a narrow screen 1 goes first, then 2 ..., at last LAST; 0 stays."""
    optional: bool = False
    """Left out where no row has anything in it."""
    short: Callable[[Any], Text | str] | None = None
    """The cell on a screen that is too narrow for the whole table."""
    common: str = ""
    """How the heading says what all rows have in common, such as `all by {}`; the column is left out then."""
    legend: str = ""
    """What the title means, for who reads it the first time."""


def folded(text: str, room: int) -> str:
    """As it is: the table folds it over lines."""
    return text


def cut_short(text: str, room: int) -> str:
    """Its beginning: `What the prob…`."""
    return text if cell_len(text) <= room else f"{set_cell_size(text, room - 1).rstrip()}…"


def shortened(text: str, room: int) -> str:
    """Both ends of a name: `openai:org…-Instruct`."""
    if cell_len(text) <= room:
        return text
    tail = (room - 1) // 2
    return f"{set_cell_size(text, room - 1 - tail)}…{set_cell_size(text[::-1], tail)[::-1]}"


def entries(text: str, room: int) -> str:
    """What has `, ` between its entries, in lines of up to `room` characters; a longer entry has its own."""
    lines = [""]
    for entry in text.split(", "):
        longer = f"{lines[-1]}, {entry}" if lines[-1] else entry
        if lines[-1] and cell_len(longer) >= room:  # the last character is a comma's
            lines.append(entry)
        else:
            lines[-1] = longer
    return ",\n".join(lines)


Filled = list[tuple[Column, list[Text | str]]]


class Fitted(NamedTuple):
    table: Table
    legends: list[str]
    common: list[str]
    """What all rows have in common, in words, in place of a column."""


def fitting(
    columns: Sequence[Column], records: Sequence[Any], console: Console, *, whole: bool = False
) -> Fitted:
    """The table of these records with as many of its columns as the screen holds whole.

    Spare columns go only for names of up to NAME_WIDTH characters; longer names are fitted instead. `whole`:
    what all rows have in common has its column, too.
    """
    filled: Filled = [(column, [_safe(column.cell(record)) for record in records]) for column in columns]
    filled = [(column, cells) for column, cells in filled if not column.optional or any(cells)]
    common = []
    for column, cells in [] if whole or len(records) < 2 else list(filled):
        if column.common and len(set(map(str, cells))) == 1:
            filled.remove((column, cells))
            common.append(column.common.format(cells[0]))
    room, narrow = console.width, _width(filled, console.width, _GAP) > console.width
    if narrow:
        filled, room = _narrowed(filled, records, console.width)
    table = Table(box=SIMPLE, pad_edge=False, show_edge=False, collapse_padding=narrow)
    for column, cells in filled:
        width = _cells(column, cells, room)
        table.add_column(
            Text(column.title),
            justify="right" if column.number else "left",
            no_wrap=column.fit is None,
            overflow="fold",
            # Known widths spare the library three looks at each cell.
            width=None if narrow and column.fit else width,
            max_width=width,
        )
    for row in zip(*(cells for _, cells in filled), strict=True):
        table.add_row(*row)
    return Fitted(table, [column.legend for column, _ in filled if column.legend], common)


def _safe(cell: Text | str) -> Text | str:
    return " ".join(clean(cell).split()) if isinstance(cell, str) else cell


def _cells(column: Column, cells: Iterable[Text | str], room: int) -> int:
    """Characters of a column whose names have `room`."""
    longest = max((cell_len(line) for cell in cells for line in str(cell).split("\n")), default=0)
    return max(cell_len(column.title), min(longest, room) if column.fit else longest)


def _width(filled: Filled, room: int, gap: int) -> int:
    return sum(_cells(column, cells, room) + gap for column, cells in filled) - gap


def _narrowed(filled: Filled, records: Sequence[Any], width: int) -> tuple[Filled, int]:
    """The columns that a narrow screen shows, and the characters of a name there."""
    filled = [(c, list(map(c.short, records)) if c.short else cells) for c, cells in filled]

    def fitted(room: int) -> Filled:
        return [
            (c, [cell if c.fit is None or isinstance(cell, Text) else c.fit(cell, room) for cell in cells])
            for c, cells in filled
        ]

    for spare in sorted((column for column, _ in filled if column.spare), key=lambda column: column.spare):
        room = LEAST_NAME if spare.spare == LAST else NAME_WIDTH
        if _width(fitted(room), room, _NARROW_GAP) <= width:
            break
        filled = [(column, cells) for column, cells in filled if column is not spare]
    rooms = range(1, width + 1)
    room = bisect_right(rooms, width, key=lambda room: _width(fitted(room), room, _NARROW_GAP)) or 1
    return fitted(room), room


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
