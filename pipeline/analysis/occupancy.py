"""How many warps of a kernel an SM can hold at a time: the theoretical occupancy.

The formula is that of NVIDIA's occupancy calculator, the figures those of "Technical Specifications per
Compute Capability" in the CUDA C++ Programming Guide.
"""

from __future__ import annotations

from typing import NamedTuple

from kernelproof.types import FrozenRecord

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
    """Blocks that fit."""
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
