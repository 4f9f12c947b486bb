"""Which processor cores are kept for what."""

from __future__ import annotations

from kernelproof.types.base import FrozenRecord


class CoreShares(FrozenRecord):
    """The cores of one GPU's measurements, and those of everything else. Empty: all share all."""

    measured: tuple[int, ...] = ()
    """For the process that is timed, and the referee while it times. Nothing else is started on them."""
    others: tuple[int, ...] = ()
    """For compilers, imports, and processes that come up for the next candidate."""
