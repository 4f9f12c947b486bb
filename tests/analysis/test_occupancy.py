"""Theoretical occupancy, against figures of NVIDIA's calculator; and its bounds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelproof.analysis.bottleneck import occupancy


@pytest.mark.parametrize(
    ("capability", "threads", "registers", "shared", "share", "limit"),
    [
        ("9.0", 256, 32, 0, 1.0, "warps"),
        ("9.0", 1024, 64, 0, 0.5, "registers"),
        ("9.0", 128, 168, 0, 12 / 64, "registers"),
        ("9.0", 256, 32, 100 * 1024, 16 / 64, "shared memory"),
        ("9.0", 32, 16, 0, 0.5, "blocks"),
        ("8.6", 1024, 32, 0, 32 / 48, "warps"),
        ("8.0", 256, 32, 48 * 1024, 24 / 64, "shared memory"),
        ("7.5", 1024, 64, 0, 1.0, "warps"),
    ],
)
def test_it_is_what_the_calculator_says(
    capability: str, threads: int, registers: int, shared: int, share: float, limit: str
) -> None:
    found = occupancy(capability, threads, registers, shared)
    assert found is not None and (found.share, found.limited_by) == (pytest.approx(share), limit)


def test_nothing_is_said_of_an_unknown_gpu_or_an_impossible_block() -> None:
    assert occupancy("99.0", 256, 32, 0) is None
    assert occupancy("9.0", 2048, 32, 0) is None
    assert occupancy("9.0", 1024, 255, 0) is None
    assert occupancy("9.0", 256, 32, 300 * 1024) is None


@given(
    threads=st.integers(1, 1024),
    registers=st.integers(1, 255),
    shared=st.integers(0, 228 << 10),
    more=st.integers(0, 64),
)
def test_who_takes_more_never_fits_more_often(threads: int, registers: int, shared: int, more: int) -> None:
    small, large = (
        occupancy("9.0", threads, registers, shared),
        occupancy("9.0", threads, registers + more, shared),
    )
    assert small is None or 0 < small.share <= 1
    assert large is None or (small is not None and large.blocks <= small.blocks)
