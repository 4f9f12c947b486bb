"""The axes of charts, and the looks that tell one series from another. Vega-Lite specifications."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from kernelproof.report.html.drawing import DASHES, SERIES, SHAPES

Spec = dict[str, Any]
TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)
"""Of speedups: those beyond the first or the last stand at the edge of a chart."""
_LABELS = 6
"""Of a logarithmic axis, at most."""
_ROOM = 1.1
"""Between the last point and the end of an axis."""


def ends(speedups: Iterable[float]) -> tuple[float, float]:
    """The speedups from which to which an axis goes: a half to twice at least."""
    every = list(speedups)
    least, most = min([*every, 0.5]), max([*every, 2.0])
    low = max((tick for tick in TICKS if tick <= least), default=TICKS[0])
    return low, min((tick for tick in TICKS if tick >= most), default=TICKS[-1])


def speedup_axis(field: str, title: str, domain: tuple[float, float]) -> Spec:
    """A logarithmic axis of speedups."""
    ticks = [tick for tick in TICKS if domain[0] <= tick <= domain[1]]
    return _logarithmic(field, title, domain, ticks, "~g")


def mean_axis(field: str, title: str, values: Iterable[float]) -> Spec:
    """A linear axis around some positive values, which need not begin at 0."""
    every = sorted(values)
    room = max(0.08 * (every[-1] - every[0]), 0.02 * every[-1])
    return {
        "field": field,
        "type": "quantitative",
        "title": title,
        "scale": {"domain": [max(every[0] - room, 0.0), every[-1] + room], "nice": True},
        "axis": {"tickCount": 5},
    }


def around(values: Iterable[float]) -> tuple[float, float]:
    """Numbers like 1, 2, 5 or 10 around some positive values: the ends of a logarithmic axis."""
    every = list(values)
    steps = _steps(min(every) / 10, max(every) * 10)
    low, high = min(every) / _ROOM, max(every) * _ROOM
    return max(step for step in steps if step <= low), min(step for step in steps if step >= high)


def log_axis(field: str, title: str, domain: tuple[float, float], form: str) -> Spec:
    """A logarithmic axis. `form`: how d3 writes a number, such as `~s`."""
    ticks = _steps(*domain)
    if len(ticks) > _LABELS:
        tens = [tick for tick in ticks if f"{tick:e}".startswith("1.0")]
        ticks = tens[:: -(-len(tens) // _LABELS)]
    return _logarithmic(field, title, domain, ticks, form)


def _logarithmic(
    field: str, title: str, domain: tuple[float, float], ticks: Sequence[float], form: str
) -> Spec:
    return {
        "field": field,
        "type": "quantitative",
        "title": title,
        "scale": {"type": "log", "domain": list(domain), "nice": False},
        "axis": {"values": ticks, "format": form},
    }


def _steps(low: float, high: float) -> list[float]:
    """1, 2, 5 and their tenfolds, from one number to another."""
    powers = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1)
    every = (float(f"{digit}e{power}") for power in powers for digit in (1, 2, 5))
    return [step for step in every if low * 0.999 <= step <= high * 1.001]


def coloured(count: int) -> Spec:
    """Each series has the same colour in every chart."""
    return {"color": _by_series(SERIES, count)}


def dashed(count: int) -> Spec:
    """Colours and dashes: lines that are told apart without colours."""
    return coloured(count) | {"strokeDash": _by_series(DASHES, count)}


def shaped(count: int) -> Spec:
    """Colours and shapes: points that are told apart without colours."""
    return coloured(count) | {"shape": _by_series(SHAPES, count)}


def _by_series(looks: Iterable[Any], count: int) -> Spec:
    scale = {"domain": list(range(count)), "range": list(looks)[:count]}
    return {"field": "series", "type": "nominal", "scale": scale, "legend": None}
