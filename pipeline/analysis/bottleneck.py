"""What bounds a correct program: memory, compute, launches or latency; and the occupancy of its kernels.

The formula of occupancy is that of NVIDIA's occupancy calculator, the figures those of "Technical
Specifications per Compute Capability" in the CUDA C++ Programming Guide.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from kernelproof.types import Environment, FrozenRecord, Kernels, Measurement

REGISTERS = 65_536
"""Of an SM, on every architecture below."""
REGISTER_UNIT = 256
"""Registers are given to warps in units of so many."""
WARP_UNIT = 4
"""Warps that registers suffice for are counted in steps of so many: an SM has four schedulers."""
AMPERE = 8
"""From this major compute capability on shared memory is given in units of 128 bytes, not 256, and CUDA takes
RESERVED bytes of it for each block."""
RESERVED = 1024
WARP = 32
MOST_THREADS = 1024


class _Sm(NamedTuple):
    warps: int
    blocks: int
    shared_kib: int


_SMS = {
    "7.0": _Sm(64, 32, 96),
    "7.5": _Sm(32, 16, 64),
    "8.0": _Sm(64, 32, 164),
    "8.6": _Sm(48, 16, 100),
    "8.7": _Sm(48, 16, 164),
    "8.9": _Sm(48, 24, 100),
    "9.0": _Sm(64, 32, 228),
    "10.0": _Sm(64, 32, 228),
    "10.3": _Sm(64, 32, 228),
    "12.0": _Sm(48, 24, 100),
    "12.1": _Sm(48, 24, 100),
}


class Occupancy(FrozenRecord):
    """The part of an SM that a kernel can fill."""

    share: float
    """Warps that fit over warps that an SM holds."""
    blocks: int
    limited_by: str
    """The resource that runs out first: `registers`, `shared memory`, `warps` or `blocks`."""


def occupancy(capability: str, threads: int, registers: int, shared_bytes: int) -> Occupancy | None:
    """The occupancy of blocks of `threads`, with `registers` for each thread and `shared_bytes` a block.

    None for a compute capability that is not in the table, and for a block that cannot run.
    """
    sm = _SMS.get(capability)
    if sm is None or not 0 < threads <= MOST_THREADS:
        return None
    warps = -(-threads // WARP)
    fits = {"warps": sm.warps // warps, "blocks": sm.blocks}
    if registers > 0:
        of_warp = _up(registers * WARP, REGISTER_UNIT)
        fits["registers"] = REGISTERS // of_warp // WARP_UNIT * WARP_UNIT // warps
    unit, reserved = (128, RESERVED) if int(capability.partition(".")[0]) >= AMPERE else (256, 0)
    if shared_bytes + reserved > 0:
        fits["shared memory"] = (sm.shared_kib << 10) // _up(shared_bytes + reserved, unit)
    limit = min(fits, key=lambda name: fits[name])
    if fits[limit] < 1:
        return None
    return Occupancy(share=fits[limit] * warps / sm.warps, blocks=fits[limit], limited_by=limit)


def _up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


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
