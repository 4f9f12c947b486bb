"""Where the marks of charts lie, and what is left out."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelproof.report.web.charts import (
    Axis,
    Chart,
    Placed,
    beside_roofline,
    linear,
    logarithmic,
    roofline,
    rounds,
    speedups,
)
from tests.db import samples

LEFT, TOP, WIDTH = 60, 8, 340
NUMBER = r"(-?[\d.]+)"


def value(axis: Axis, part: float) -> float:
    """The value at a part of an axis."""
    if axis.logarithmic:
        return float(axis.low * (axis.high / axis.low) ** part)
    return axis.low + part * (axis.high - axis.low)


def places(chart: Chart | None, look: str) -> list[list[tuple[float, float]]]:
    """The places of each mark with that look, in the figures of the axes."""
    assert chart is not None
    return [
        [
            (value(chart.x, (float(x) - LEFT) / WIDTH), value(chart.y, 1 - (float(y) - TOP) / chart.height))
            for x, y in re.findall(f"[ML]{NUMBER} {NUMBER}", mark.path)
        ]
        for mark in chart.marks
        if look in mark.look.split()
    ]


def placed(fraction: float, operations: int = 100_000) -> Placed:
    """A kernel that reaches this fraction of its roofline."""
    found = samples.roofline(fraction, operations)
    return Placed(0, max(found.memory_ms, found.compute_ms) / fraction, found)


@pytest.mark.parametrize("operations", [1_000, 100_000], ids=["bound by memory", "bound by operations"])
@pytest.mark.parametrize("fraction", [0.1, 1.0])
def test_a_kernel_lies_below_the_roof_by_its_fraction(operations: int, fraction: float) -> None:
    kernel = placed(fraction, operations)
    (((x, y),),) = places(roofline([kernel]), "point")
    ceilings = kernel.roofline.ceilings
    roof = min(ceilings.operations_per_s, x * ceilings.bytes_per_s)
    assert y == pytest.approx(fraction * roof, rel=0.03)
    (((least, taken),),) = places(beside_roofline([kernel]), "point")
    assert least / taken == pytest.approx(fraction, rel=0.03)


def test_the_roof_rises_with_the_bandwidth_to_the_peak() -> None:
    ((begin, ridge, end),) = places(roofline([placed(0.5)]), "ink")
    assert begin[1] / begin[0] == pytest.approx(1.2e5, rel=0.05)
    assert ridge == (pytest.approx(5e8 / 1.2e5, rel=0.03), pytest.approx(5e8, rel=0.03))
    assert end[0] > ridge[0] and end[1] == pytest.approx(5e8, rel=0.03)


def test_a_point_has_the_words_and_the_link_of_its_own_kernel() -> None:
    """Kernels that a chart leaves out do not shift the words of the others."""
    kernels = [
        replace(placed(0.5, operations), says=f"<{operations}>", href=href)
        for operations, href in ((0, "#none"), (1_000, "#kernel-1"), (100_000, None))
    ]
    chart = roofline(kernels)
    assert chart is not None
    drawn = chart.drawn("kernels")
    assert re.findall(
        r'<(?:a href="([^"]*)"|g role="img") aria-label="([^"]*)"><title>([^<]*)</title>', drawn
    ) == [
        ("#kernel-1", "&lt;1000&gt;", "&lt;1000&gt;"),
        ("", "&lt;100000&gt;", "&lt;100000&gt;"),
    ]
    assert 'role="group"' in drawn and "#none" not in drawn
    silent = roofline([placed(0.5)])
    assert silent is not None and '<svg class="chart" role="img"' in silent.drawn("kernels")


def test_without_operations_there_is_no_roofline_plot() -> None:
    kernel = placed(0.5, operations=0)
    assert roofline([kernel]) is None
    (((least, taken),),) = places(beside_roofline([kernel]), "point")
    assert (least, taken) == (pytest.approx(0.1, rel=0.03), pytest.approx(0.2, rel=0.03))
    assert beside_roofline([]) is None


def test_rounds_show_medians_and_hold_a_hiccup_at_the_edge() -> None:
    measured = samples.measurement(2.0).model_copy(
        update={
            "candidate_samples_ms": ((1.0, 1.0, 90.0), (2.0, 2.0, 2.0), (3.0,)),
            "baseline_samples_ms": ((4.0, 4.0), (4.0, 5.0), ()),
            "sessions": (0, 0, 1),
        }
    )
    chart = rounds(measured)
    (fresh,) = (mark.path for mark in chart.marks if mark.look == "rule")
    assert value(chart.x, (float(fresh[1:].split()[0]) - LEFT) / WIDTH) == pytest.approx(2.5, abs=0.02)
    candidate, baseline = places(chart, "line")
    assert candidate == [(pytest.approx(n, abs=0.02), pytest.approx(n, abs=0.05)) for n in (1, 2, 3)]
    assert [ms for _, ms in baseline] == pytest.approx([4.0, 4.5], abs=0.05)
    calls = [ms for dots in places(chart, "dots") for _, ms in dots]
    assert len(calls) == 11
    assert max(calls) == pytest.approx(1.15 * 4.5, abs=0.05)


@given(st.lists(st.floats(1e-6, 1e15), min_size=1, max_size=5))
def test_a_logarithmic_axis_holds_its_points_and_few_labels(values: list[float]) -> None:
    axis = logarithmic("x", values)
    assert axis.low < min(values) <= max(values) < axis.high
    assert axis.high / axis.low < 30 * max(values) / min(values)
    assert 2 <= len(axis.ticks) <= 6
    assert all(axis.low * 0.999 <= tick <= axis.high * 1.001 for tick in axis.ticks)


@given(st.floats(0, 1e9), st.floats(0, 1e9), st.booleans())
def test_a_linear_axis_holds_its_ends_and_few_labels(one: float, other: float, whole: bool) -> None:
    low, high = sorted((math.floor(one), math.floor(other)) if whole else (one, other))
    axis = linear("x", low, high, whole=whole)
    assert axis.low <= low + 1e-6 * high and axis.high >= high - 1e-6 * high and axis.low < axis.high
    assert 2 <= len(axis.ticks) <= 7
    assert not whole or all(tick == round(tick) for tick in axis.ticks)


@given(st.lists(st.floats(1e-3, 1e3), max_size=5))
def test_speedups_stand_between_the_ends_of_their_axis(values: list[float]) -> None:
    axis = speedups("speedup", values)
    assert axis.low <= 0.5 and axis.high >= 2
    assert all(axis.low <= min(max(value, 0.01), 100) <= axis.high for value in values)
    assert all(0 <= axis.at(value) <= 1 for value in values)


def test_many_dots_are_one_path_of_each_side() -> None:
    block = tuple(float(ms) for ms in range(1, 101))
    measured = samples.measurement(2.0).model_copy(
        update={"candidate_samples_ms": (block,), "baseline_samples_ms": (block,)}
    )
    drawn = rounds(measured).drawn("times")
    assert [path.count("h0M") for path in drawn.split("<path") if "h0M" in path] == [99, 99]
    assert len(drawn) < 10_000
