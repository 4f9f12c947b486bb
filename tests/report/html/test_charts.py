"""The data of charts: where points lie, and what is left out."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelproof.report.html.axes import around, ends, log_axis
from kernelproof.report.html.drawing import Point, draw
from kernelproof.report.html.kernel_charts import Placed, beside_roofline, roofline, rounds
from tests.db import samples

LINE, DOTS = 0, 1


def points(spec: dict[str, Any] | None, layer: int) -> list[tuple[float, float]]:
    assert spec is not None
    return [(value["x"], value["y"]) for value in spec["layer"][layer]["data"]["values"]]


def placed(fraction: float, operations: int = 100_000) -> Placed:
    """A kernel that reaches this fraction of its roofline."""
    found = samples.roofline(fraction, operations)
    return Placed(0, max(found.memory_ms, found.compute_ms) / fraction, found, Point("said", None))


@pytest.mark.parametrize("operations", [1_000, 100_000], ids=["bound by memory", "bound by operations"])
@pytest.mark.parametrize("fraction", [0.1, 1.0])
def test_a_kernel_lies_below_the_roof_by_its_fraction(operations: int, fraction: float) -> None:
    kernel = placed(fraction, operations)
    ((x, y),) = points(roofline([kernel], 1), DOTS)
    ceilings = kernel.roofline.ceilings
    assert y == pytest.approx(fraction * min(ceilings.operations_per_s, x * ceilings.bytes_per_s))
    ((least, taken),) = points(beside_roofline([kernel], 1), DOTS)
    assert least / taken == pytest.approx(fraction)


def test_the_roof_rises_with_the_bandwidth_to_the_peak() -> None:
    begin, ridge, end = points(roofline([placed(0.5)], 1), LINE)
    assert begin[1] / begin[0] == pytest.approx(1.2e5)
    assert ridge == pytest.approx((5e8 / 1.2e5, 5e8))
    assert end[0] > ridge[0] and end[1] == 5e8


def test_a_point_has_the_words_and_the_link_of_its_own_kernel() -> None:
    """Kernels that a chart leaves out do not shift the words of the others."""
    kernels = [
        replace(placed(0.5, operations), point=Point(f"<{operations}>", href))
        for operations, href in ((0, "#none"), (1_000, "#kernel-1"), (100_000, None))
    ]
    spec = roofline(kernels, 1)
    assert spec is not None
    drawn = draw(spec, "kernels", [kernel.point for kernel in kernels])
    assert re.findall(
        r'<(?:a href="([^"]*)"|g role="img") aria-label="([^"]*)"><title>([^<]*)</title>', drawn
    ) == [
        ("#kernel-1", "&lt;1000&gt;", "&lt;1000&gt;"),
        ("", "&lt;100000&gt;", "&lt;100000&gt;"),
    ]
    assert drawn.startswith('<svg role="group"') and "#none" not in drawn
    assert draw(spec, "kernels").startswith('<svg role="img"')


def test_without_operations_there_is_no_roofline_plot() -> None:
    kernel = placed(0.5, operations=0)
    assert roofline([kernel], 1) is None
    assert points(beside_roofline([kernel], 1), DOTS) == [(0.1, 0.2)]
    assert beside_roofline([], 1) is None


def test_rounds_show_medians_and_hold_a_hiccup_at_the_edge() -> None:
    measured = samples.measurement(2.0).model_copy(
        update={
            "candidate_samples_ms": ((1.0, 1.0, 90.0), (2.0, 2.0, 2.0), (3.0,)),
            "baseline_samples_ms": ((4.0, 4.0), (4.0, 5.0), ()),
            "sessions": (0, 0, 1),
        }
    )
    fresh, calls, medians = (layer["data"]["values"] for layer in rounds(measured)["layer"])
    assert fresh == [{"round": 2.5}]
    assert [(m["series"], m["round"], m["ms"]) for m in medians] == [
        (0, 1, 1.0),
        (0, 2, 2.0),
        (0, 3, 3.0),
        (1, 1, 4.0),
        (1, 2, 4.5),
    ]
    assert len(calls) == 11
    assert max(call["ms"] for call in calls) == pytest.approx(1.15 * 4.5)
    assert "stroke-dasharray" in draw(rounds(measured), "times")


@given(st.lists(st.floats(1e-6, 1e15), min_size=1, max_size=5))
def test_a_logarithmic_axis_holds_its_points_and_few_labels(values: list[float]) -> None:
    low, high = around(values)
    assert low < min(values) <= max(values) < high
    assert high / low < 30 * max(values) / min(values)
    ticks = log_axis("x", "x", (low, high), "~s")["axis"]["values"]
    assert 2 <= len(ticks) <= 6
    assert all(low * 0.999 <= tick <= high * 1.001 for tick in ticks)


@given(st.lists(st.floats(1e-3, 1e3), max_size=5))
def test_speedups_stand_between_the_ends_of_their_axis(values: list[float]) -> None:
    low, high = ends(values)
    assert low <= 0.5 and high >= 2
    assert all(low <= min(max(value, 0.01), 100) <= high for value in values)
    assert math.isfinite(low) and math.isfinite(high)


def test_many_dots_are_one_path_of_each_colour() -> None:
    block = tuple(float(ms) for ms in range(1, 101))
    measured = samples.measurement(2.0).model_copy(
        update={"candidate_samples_ms": (block,), "baseline_samples_ms": (block,)}
    )
    drawn = draw(rounds(measured), "times")
    assert [path.count("h0M") for path in drawn.split("<path") if "h0M" in path] == [99, 99]
    assert len(drawn) < 10_000
