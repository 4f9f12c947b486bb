"""Charts as SVG: two axes and the marks between them, each a path whose look style.css has by its class."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup

from kernelproof.report.layout import scaled
from kernelproof.report.web.rendering import fragment

SHAPES = (
    "m0-3a3 3 0 1 0 .01 0z",
    "m-3-3h6v6h-6z",
    "m0-4l4 7h-8z",
    "m0-4l3 4-3 4-3-4z",
    "m-1-3h2v2h2v2h-2v2h-2v-2h-2v-2h2z",
    "m0 4l4-7h-8z",
    "m-3-4l7 4-7 4z",
    "m3-4l-7 4 7 4z",
)
"""The shape of each series' points, around their place."""
MOST_SERIES = len(SHAPES)
WIDTH, HEIGHT = 340, 200
"""Pixels of the space between the axes: narrow enough for a phone."""
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 18, 8, 40
_LABELS = 6
"""Of a logarithmic axis, at most."""
_ROOM = 1.1
"""Between the last point and the end of an axis."""
Place = tuple[float, float]


def plain(value: float) -> str:
    """`0.5`, `20`."""
    return f"{value:.6g}"


def short(value: float) -> str:
    """`200k`, `5M`; small numbers as they are."""
    return scaled(value, "").replace(" ", "")


@dataclass(frozen=True)
class Axis:
    """An axis from one number to another. Values beyond an end stand at it."""

    title: str
    low: float
    high: float
    ticks: Sequence[float]
    label: Callable[[float], str] = plain
    logarithmic: bool = False

    def at(self, value: float) -> float:
        """The place of a value, from 0 to 1."""
        low, high, value = self.low, self.high, min(max(value, self.low), self.high)
        if self.logarithmic:
            low, high, value = math.log(low), math.log(high), math.log(value)
        return (value - low) / (high - low)


def linear(
    title: str,
    low: float,
    high: float,
    label: Callable[[float], str] = plain,
    *,
    whole: bool = False,
    nice: bool = True,
) -> Axis:
    """A linear axis around two values, which need not be different. `whole`: ticks are whole numbers.
    `nice`: it begins and ends at a tick."""
    span = high - low if high - low > 1e-9 * abs(high) + 1e-30 else max(abs(high), 1e-9)
    step = next(step for step in _steps(span / 100, span * 10) if span / step <= 5)
    step = max(step, 1.0) if whole else step
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    ticks = [number * step for number in range(first, max(last, first + 1) + 1)]
    if nice:
        return Axis(title, ticks[0], ticks[-1], ticks, label)
    return Axis(title, low, high, [tick for tick in ticks if low <= tick <= high], label)


def logarithmic(title: str, values: Iterable[float], label: Callable[[float], str] = plain) -> Axis:
    """A logarithmic axis around some positive values, from and to numbers like 1, 2, 5 or 10."""
    every = list(values)
    steps = _steps(min(every) / 10, max(every) * 10)
    low, high = min(every) / _ROOM, max(every) * _ROOM
    low, high = max(step for step in steps if step <= low), min(step for step in steps if step >= high)
    ticks = _steps(low, high)
    if len(ticks) > _LABELS:
        tens = [tick for tick in ticks if f"{tick:e}".startswith("1.0")]
        ticks = tens[:: -(-len(tens) // _LABELS)]
    return Axis(title, low, high, ticks, label, logarithmic=True)


def _steps(low: float, high: float) -> list[float]:
    """1, 2, 5 and their tenfolds, from one positive number to another."""
    powers = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1)
    every = (float(f"{digit}e{power}") for power in powers for digit in (1, 2, 5))
    return [step for step in every if low * 0.999 <= step <= high * 1.001]


@dataclass(frozen=True)
class Mark:
    """A path in a chart."""

    look: str
    """Its classes in style.css, such as `line s0`."""
    path: str
    says: str = ""
    """In words: shown beside the pointer, and read to those who do not see the mark."""
    href: str | None = None
    """Where a link leads from it."""


class Chart:
    """A chart. Series are numbered: a text of a server's or a candidate's is at most the words of a point."""

    def __init__(self, x: Axis, y: Axis, height: int = HEIGHT) -> None:
        self.x, self.y, self.height = x, y, height
        self.marks: list[Mark] = []

    def _at(self, place: Place) -> str:
        across, up = self.x.at(place[0]), self.y.at(place[1])
        return f"{_LEFT + across * WIDTH:.1f} {_TOP + (1 - up) * self.height:.1f}"

    def line(
        self, series: int | None, places: Iterable[Place], *, steps: bool = False, knots: bool = False
    ) -> None:
        """A line from place to place. None: the device's, not a model's. `steps`: level to the next place,
        then up or down. `knots`: places are marked."""
        every = list(places)
        if not every:
            return
        corners = [
            place
            for before, after in pairwise(every)
            for place in ([(after[0], before[1]), after] if steps else [after])
        ]
        path = "L".join(map(self._at, [every[0], *corners]))
        look = "ink" if series is None else f"s{series}"
        self.marks.append(Mark(f"line {look}", f"M{path}"))
        if knots:
            self.dots(series or 0, every, "knots")

    def dots(self, series: int, places: Iterable[Place], look: str = "dots") -> None:
        """Small dots, as one path of strokes without length and with round ends."""
        path = "".join(f"M{self._at(place)}h0" for place in places)
        if path:
            self.marks.append(Mark(f"{look} s{series}", path))

    def bar(self, series: int, low: Place, high: Place) -> None:
        """A rectangle between two corners."""
        across, up = [_LEFT + self.x.at(x) * WIDTH for x in (low[0], high[0])], self._at(low).split()[1]
        top = self._at(high).split()[1]
        self.marks.append(Mark(f"fill s{series}", f"M{across[0]:.1f} {up}V{top}H{across[1]:.1f}V{up}z"))

    def point(self, series: int, place: Place, says: str = "", href: str | None = None) -> None:
        """A point of the series' shape."""
        self.marks.append(Mark(f"fill point s{series}", f"M{self._at(place)}{SHAPES[series]}", says, href))

    def rule(self, x: float) -> None:
        """A faint upright line."""
        across = f"{_LEFT + self.x.at(x) * WIDTH:.1f}"
        self.marks.append(Mark("rule", f"M{across} {_TOP}V{_TOP + self.height}"))

    def drawn(self, title: str) -> Markup:
        """The SVG. `title`: what a screen reader says of it, in a sentence."""
        right, bottom = _LEFT + WIDTH, _TOP + self.height
        across = [(f"{_LEFT + self.x.at(t) * WIDTH:.1f}", self.x.label(t)) for t in self.x.ticks]
        up = [(f"{_TOP + (1 - self.y.at(t)) * self.height:.1f}", self.y.label(t)) for t in self.y.ticks]
        labels = [(x, bottom + 16, "middle", text) for x, text in _apart(across)]
        facts = {
            "title": title,
            "role": "group" if any(mark.says for mark in self.marks) else "img",  # an image has no parts
            "width": right + _RIGHT,
            "height": bottom + _BOTTOM,
            "grid": "".join(f"M{x} {_TOP}V{bottom}" for x, _ in across)
            + "".join(f"M{_LEFT} {y}H{right}" for y, _ in up),
            "frame": f"M{_LEFT} {_TOP}V{bottom}H{right}",
            "labels": [*labels, *((_LEFT - 6, f"{float(y) + 4:.1f}", "end", text) for y, text in up)],
            "middle": (_LEFT + WIDTH // 2, _TOP + self.height // 2),
            "axes": (self.x, self.y),
            "marks": self.marks,
        }
        return fragment("chart.svg", facts)


def _apart(labels: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """The labels of an axis from left to right, without those that would touch the one before."""
    end = -math.inf
    for at, text in labels:
        half = 3.5 * len(text) + 3
        if float(at) - half >= end:
            yield at, text
            end = float(at) + half
