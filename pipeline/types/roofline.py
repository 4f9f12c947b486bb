"""A roofline: the least time that moving the data, or doing the reference's arithmetic, can take here."""

from __future__ import annotations

from kernelproof.types.base import FrozenRecord


class Ceilings(FrozenRecord):
    """What a device did at best, measured once (docs/rationale/roofline.md says how)."""

    bytes_per_s: float
    """The fastest of copying, reading and writing device memory, read and written bytes counted."""
    operations_per_s: float
    """The fastest dense matrix product of any dtype, 2 operations for a multiply-add."""
    cache_bytes: int
    """Written bytes that may still lie in the last-level cache when a call ends."""
    aa_spread: float
    """How far two processes that run the same thing were apart: a fraction, 95 % of the pairs."""
    measured: str
    """UTC, ISO 8601."""


class Roofline(FrozenRecord):
    """One problem's least time on one device, and how close the candidate came."""

    bytes_read: int
    """Bytes of inputs and weights that the reference reads at least once (indexed reads: what is taken)."""
    bytes_written: int
    """Bytes of the outputs."""
    bytes_needed: int
    """Bytes of the inputs that no program can do without; docs/rationale/roofline.md says which are not."""
    operations: int
    """Operations of the reference's matrix products, convolutions and attention."""
    memory_ms: float
    """Least time for the bytes: writes that fit the last-level cache left out."""
    compute_ms: float
    """Least time for the operations."""
    needed_ms: float
    """Least time for the needed bytes and the same writes: a call that is clearly faster is impossible."""
    fraction: float
    """max(memory_ms, compute_ms) / candidate's time: 1 is the roofline itself."""
    ceilings: Ceilings
