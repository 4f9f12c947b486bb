"""The charts of kernels as Vega-Lite specifications: on the roofline, and the times of one of them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kernelproof.report.html.axes import Spec, around, coloured, dashed, log_axis, shaped
from kernelproof.report.html.drawing import FAINT, INK, Point, point_name
from kernelproof.types import Measurement, Roofline

MOST_CALLS = 300
"""Dots of one side in a chart of times."""
_EDGE = 1.15
"""How far above the slowest block's median a chart of times ends."""


@dataclass(frozen=True)
class Placed:
    """A kernel and the roofline of its problem. `series`: its model's place among the charted ones."""

    series: int
    candidate_ms: float
    roofline: Roofline
    point: Point

    @property
    def least_ms(self) -> float:
        """The time that the roofline allows."""
        return max(self.roofline.memory_ms, self.roofline.compute_ms)

    @property
    def intensity(self) -> float:
        """Operations for each byte that must be moved; writes that fit the last-level cache are left out."""
        moved = self.roofline.memory_ms / 1e3 * self.roofline.ceilings.bytes_per_s
        return self.roofline.operations / moved if moved else 0.0

    @property
    def operations_per_s(self) -> float:
        """The operations a second that the kernel reached."""
        return self.roofline.operations / (self.candidate_ms / 1e3)


def roofline(kernels: Sequence[Placed], count: int) -> Spec | None:
    """The roofline plot of Williams et al. 2009: operations a second over operations a byte, below the roof.

    None where no kernel's operations are counted. The roof is the median of the kernels' ceilings. `count`:
    the series that there are.
    """
    shown = {number: kernel for number, kernel in enumerate(kernels) if kernel.intensity > 0}
    if not shown:
        return None
    bandwidth = statistics.median(kernel.roofline.ceilings.bytes_per_s for kernel in shown.values())
    peak = statistics.median(kernel.roofline.ceilings.operations_per_s for kernel in shown.values())
    ridge = peak / bandwidth
    across = around([*(kernel.intensity for kernel in shown.values()), ridge / 3, ridge * 3])
    up = around([*(kernel.operations_per_s for kernel in shown.values()), peak])
    roof = [
        {"x": x, "y": min(peak, x * bandwidth)} for x in (max(across[0], up[0] / bandwidth), ridge, across[1])
    ]
    dots = [_dot(number, k, k.intensity, k.operations_per_s) for number, k in shown.items()]
    return _below(
        roof,
        dots,
        log_axis("x", "operations for each byte moved", across, "~s"),
        log_axis("y", "operations a second", up, "~s"),
        count,
    )


def beside_roofline(kernels: Sequence[Placed], count: int) -> Spec | None:
    """Each kernel's time over the time that its roofline allows; on the line they are equal."""
    shown = {number: kernel for number, kernel in enumerate(kernels) if kernel.least_ms > 0}
    if not shown:
        return None
    both = around(time for kernel in shown.values() for time in (kernel.least_ms, kernel.candidate_ms))
    line = [{"x": end, "y": end} for end in both]
    dots = [_dot(number, k, k.least_ms, k.candidate_ms) for number, k in shown.items()]
    return _below(
        line,
        dots,
        log_axis("x", "least time by the roofline (ms)", both, "~g"),
        log_axis("y", "the kernel's time (ms)", both, "~g"),
        count,
    )


def _dot(number: int, kernel: Placed, x: float, y: float) -> Spec:
    return {"series": kernel.series, "x": x, "y": y, "point": point_name(number)}


def _below(line: list[Any], dots: list[Any], x: Spec, y: Spec, count: int) -> Spec:
    """A line of the device's, and a dot for each kernel."""
    return {
        "encoding": {"x": x, "y": y},
        "layer": [
            {"data": {"values": line}, "mark": {"type": "line", "color": INK, "strokeWidth": 1.5}},
            {
                "data": {"values": dots},
                "mark": {"type": "point", "filled": True, "size": 50, "opacity": 0.85},
                "encoding": {**shaped(count), "description": {"field": "point", "type": "nominal"}},
            },
        ],
    }


def rounds(m: Measurement) -> Spec:
    """The times of both sides round by round: the median of each block, and single calls behind it.

    A call that took much longer than any block's median stands at the upper edge.
    """
    sides = (m.candidate_samples_ms, m.baseline_samples_ms)
    medians = [[statistics.median(block) if block else None for block in blocks] for blocks in sides]
    top = _EDGE * max(median for side in medians for median in side if median is not None)
    blocks = [
        {"series": side, "round": number, "ms": median}
        for side, of_side in enumerate(medians)
        for number, median in enumerate(of_side, start=1)
        if median is not None
    ]
    calls = []
    for side, of_side in enumerate(sides):
        every = [(number, ms) for number, block in enumerate(of_side, start=1) for ms in block]
        step = max(1, -(-len(every) // MOST_CALLS))
        calls += [{"series": side, "round": n, "ms": min(ms, top)} for n, ms in every[::step]]
    fresh = [n for n, (a, b) in enumerate(zip(m.sessions, m.sessions[1:], strict=False), start=2) if a != b]
    x: Spec = {"field": "round", "type": "quantitative", "title": "round"}
    x |= {
        "axis": {"tickCount": 5, "tickMinStep": 1, "format": "d"},
        "scale": {"nice": False, "domain": [0.5, len(medians[0]) + 0.5]},
    }
    y: Spec = {"field": "ms", "type": "quantitative", "title": "ms", "axis": {"tickCount": 5}}
    y |= {"scale": {"zero": False, "nice": True}}
    return {
        "height": 150,
        "layer": [
            {
                "data": {"values": [{"round": number - 0.5} for number in fresh]},
                "mark": {"type": "rule", "color": FAINT, "strokeWidth": 2},
                "encoding": {"x": x},
            },
            {
                "data": {"values": calls},
                "mark": {"type": "circle", "size": 10, "opacity": 0.35},
                "encoding": {"x": x, "y": y, **coloured(2)},
            },
            {
                "data": {"values": blocks},
                "mark": {"type": "line", "strokeWidth": 2, "point": len(medians[0]) <= 40},
                "encoding": {"x": x, "y": y, **dashed(2)},
            },
        ],
    }
