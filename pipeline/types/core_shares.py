"""The processor cores that are kept for measurements, and the others."""

from __future__ import annotations

from kernelproof.types.base import FrozenRecord


class CoreShares(FrozenRecord):
    """The cores of one GPU's measurements, and those of everything else. Empty: all share all."""

    measured: tuple[int, ...] = ()
    """Cores of the process that is timed, and of the referee while it times. Nothing else starts on them."""
    others: tuple[int, ...] = ()
    """Cores of compilers, imports, and the processes that start for the next candidate."""
