"""The bottleneck is named by the roofline and by how long kernels run."""

from __future__ import annotations

import pytest

from kernelproof.analysis.bottleneck import Limit, bottleneck
from kernelproof.types import GpuInfo, Kernels, Launch, Measurement, Origin, Pace
from tests.db import samples
from tests.prompting.material import measurement, roofline

GPU = GpuInfo(
    index=0,
    name="H100",
    uuid="",
    capability="9.0",
    memory_bytes=1,
    sm_count=132,
    l2_bytes=1,
    max_sm_clock_mhz=1980,
)
HERE = samples.environment().model_copy(update={"gpu": GPU})


def measured(memory_ms: float, operations: int = 0, **changes: object) -> Measurement:
    """A call of 1 ms."""
    roof = roofline(
        bytes_read=1_000_000_000,
        bytes_written=500_000_000,
        operations=operations,
        memory_ms=memory_ms,
        compute_ms=operations / 1e12,
    )
    return measurement(2.0, Pace.FASTER).model_copy(update={"candidate_ms": 1.0, "roofline": roof, **changes})


def ran(ms: float) -> Kernels:
    return Kernels(launches=(Launch(name="k", origin=Origin.OWN, count=1, ms=ms),))


@pytest.mark.parametrize(
    ("m", "kernels", "limit"),
    [
        (measured(0.8), ran(0.9), Limit.MEMORY),
        (measured(0.1, operations=50_000_000_000), ran(0.9), Limit.COMPUTE),
        (measured(0.1, operations=1_000_000), ran(0.9), Limit.LATENCY),
        (measured(0.1), ran(0.2), Limit.LAUNCHES),
        (measured(0.8, launch_bound=True), None, Limit.LAUNCHES),
        (measured(0.8), None, Limit.MEMORY),
    ],
)
def test_it_is_named(m: Measurement, kernels: Kernels | None, limit: Limit) -> None:
    found = bottleneck(m, kernels, HERE)
    assert found is not None and found.limit is limit
    assert limit.meaning and found.achieved_bytes_per_s == pytest.approx(1.5e12)


def test_float32_units_are_not_those_of_tensor_cores() -> None:
    """50 GFLOP in 1 ms are 75 % of the float32 units' 67 TFLOP/s, and 5 % of the fastest product's."""
    found = bottleneck(measured(0.1, operations=50_000_000_000), None, HERE)
    assert found is not None and found.compute_share == pytest.approx(50 / 66.9, rel=0.01)
    faster = bottleneck(measured(0.1, operations=500_000_000_000), None, HERE)
    assert faster is not None and faster.compute_share == pytest.approx(0.5)


def test_without_a_roofline_only_launches_are_named() -> None:
    assert bottleneck(measured(0.8, roofline=None), ran(0.9), HERE) is None
    found = bottleneck(measured(0.8, roofline=None), ran(0.1), HERE)
    assert found is not None and found.limit is Limit.LAUNCHES and found.device_share == pytest.approx(0.1)
