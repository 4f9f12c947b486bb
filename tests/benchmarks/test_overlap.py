"""Shares of the wall time: what was on the device, what the cores did, and what is left."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.overlap import Overlap, Sample, overlap_of, said
from benchmarks.stages import Span

STAGES = ("build", "referee", "reference", "start", "load", "correctness", "waiting", "timing")
SAMPLES = [Sample(second, second + 1.0, 0.95 if second < 4 else 0.2) for second in range(10)]
"""Ten seconds; the cores are full in the first four."""


def shares(*spans: Span, device_is_cpu: bool = False) -> Overlap:
    return overlap_of(SAMPLES, spans, device_is_cpu=device_is_cpu)


def test_one_candidate_builds_while_another_is_timed() -> None:
    timed = Span(0, "timing", 2.0, 5.0)
    found = shares(Span(1, "build", 0.0, 7.0), timed, Span(2, "start", 8.0, 9.0))
    assert (found.device, found.cores, found.neither) == pytest.approx((0.3, 0.4, 0.5))
    assert found.neither_by == pytest.approx(
        {"builds, cores not full": 0.2, "between candidates": 0.2, "start": 0.1}
    )
    assert found.busy == pytest.approx(0.5)
    on_cpu = shares(Span(1, "build", 0.0, 7.0), timed, device_is_cpu=True)
    assert (on_cpu.device, on_cpu.cores) == pytest.approx((0.3, 0.2))
    assert said(found).startswith("on the device 30%, cores full of builds 40%, neither 50% (")


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from(STAGES), st.floats(0.0, 10.0), st.floats(0.0, 10.0)),
        max_size=12,
    ),
    st.booleans(),
)
def test_the_shares_are_shares(given: list[tuple[int, str, float, float]], device_is_cpu: bool) -> None:
    found = shares(*(Span(n, s, a, a + b) for n, s, a, b in given), device_is_cpu=device_is_cpu)
    assert 0.0 <= max(found.device, found.cores) <= 1.0 + 1e-9
    assert sum(found.neither_by.values()) == pytest.approx(found.neither)
    covered = found.device + found.cores + found.neither
    assert covered >= 1.0 - 1e-9 and (not device_is_cpu or covered == pytest.approx(1.0))
