"""What is known against a GPU."""

from __future__ import annotations

from kernelproof.types.base import FrozenRecord


class Quarantine(FrozenRecord):
    """A GPU that must not be used: it failed its canary. Kept as a file until the canary passes again."""

    uuid: str
    """The GPU, as the driver names it: `GPU-...`."""
    reason: str
    """What the canary saw, and after what it was run."""
    since: str
    """UTC, ISO 8601."""
    pid: int
    """The process that found out."""
