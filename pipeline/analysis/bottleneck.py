"""The bottleneck of a correct program: memory, compute, launches, or latency."""

from __future__ import annotations

from enum import StrEnum

from kernelproof.types import Environment, FrozenRecord, Kernels, Measurement

NEAR = 0.6
"""A kernel that reaches less than this of what memory and arithmetic can do waits for something else: the
rule of Nsight Compute's section "GPU Speed Of Light"."""
MOSTLY_IDLE = 0.5
"""A GPU that computes for less than this part of a call waits for launches."""
FP32_LANES = {
    "7.0": 64,
    "7.5": 64,
    "8.0": 64,
    "8.6": 128,
    "8.7": 128,
    "8.9": 128,
    "9.0": 128,
    "10.0": 128,
    "10.3": 128,
    "12.0": 128,
    "12.1": 128,
}
"""Float32 multiply-adds that an SM does a cycle: "Arithmetic Instructions" in the CUDA C++ Programming
Guide."""


class Limit(StrEnum):
    """The part of a call that takes most of its time."""

    MEMORY = "memory"
    COMPUTE = "compute"
    LAUNCHES = "launches"
    LATENCY = "latency"

    @property
    def meaning(self) -> str:
        """A sentence for people and models."""
        return {
            Limit.MEMORY: "The bytes that must be moved take most of the time.",
            Limit.COMPUTE: "The arithmetic takes most of the time.",
            Limit.LAUNCHES: "The device waits for launches most of the time: fewer of them would help most.",
            Limit.LATENCY: "Neither memory nor arithmetic is near its limit: threads wait for one another, "
            "for loads on their way, or for bytes that are moved in vain.",
        }[self]


class Bottleneck(FrozenRecord):
    """The named bottleneck, with the figures that it was named by."""

    limit: Limit
    memory_share: float | None
    """The least time that the bytes need, over the call's time."""
    achieved_bytes_per_s: float | None
    """Bytes that must be moved over the call's time."""
    compute_share: float | None
    """The least time that the reference's products and convolutions need, over the call's time."""
    device_share: float | None
    """Part of the call's time in which kernels ran; None where they were not timed."""


def bottleneck(
    measurement: Measurement, kernels: Kernels | None, environment: Environment | None
) -> Bottleneck | None:
    """None where nothing is known of the roofline, and launches do not explain the time."""
    busy = _device_share(measurement, kernels) if environment is not None and environment.gpu else None
    launches = measurement.launch_bound or (busy is not None and busy < MOSTLY_IDLE)
    roofline, seconds = measurement.roofline, measurement.candidate_ms / 1e3
    if roofline is None or seconds <= 0:
        if not launches:
            return None
        return Bottleneck(
            limit=Limit.LAUNCHES,
            memory_share=None,
            achieved_bytes_per_s=None,
            compute_share=None,
            device_share=busy,
        )
    memory = min(roofline.memory_ms / 1e3 / seconds, 1.0)
    compute = _compute_share(roofline.operations / seconds, roofline.ceilings.operations_per_s, environment)
    limit = Limit.LATENCY
    if launches:
        limit = Limit.LAUNCHES
    elif max(memory, compute) >= NEAR:
        limit = Limit.MEMORY if memory >= compute else Limit.COMPUTE
    return Bottleneck(
        limit=limit,
        memory_share=memory,
        achieved_bytes_per_s=(roofline.bytes_read + roofline.bytes_written) / seconds,
        compute_share=compute if roofline.operations else None,
        device_share=busy,
    )


def _device_share(measurement: Measurement, kernels: Kernels | None) -> float | None:
    times = [launch.ms for launch in kernels.launches] if kernels is not None else []
    if not times or None in times or measurement.candidate_ms <= 0:
        return None
    return min(sum(ms or 0.0 for ms in times) / measurement.candidate_ms, 1.0)


def _compute_share(operations_per_s: float, ceiling: float, environment: Environment | None) -> float:
    """The rate over the peak of the float32 units; over the device's best where it exceeds that peak."""
    gpu = environment.gpu if environment is not None else None
    if gpu is not None and gpu.max_sm_clock_mhz and gpu.capability in FP32_LANES:
        plain = 2 * FP32_LANES[gpu.capability] * gpu.sm_count * gpu.max_sm_clock_mhz * 1e6
        if operations_per_s <= plain:
            return operations_per_s / plain
    return min(operations_per_s / ceiling, 1.0) if ceiling > 0 else 0.0
