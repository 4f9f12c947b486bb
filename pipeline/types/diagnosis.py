"""One thing that `doctor` looked at."""

from __future__ import annotations

from kernelproof.types.base import FrozenRecord


class Diagnosis(FrozenRecord):
    """What was looked at, what was seen, and what to do about it."""

    name: str
    ok: bool
    seen: str
    remedy: str = ""
    """How to get it, when it is missing."""
    essential: bool = False
    """Without it nothing can be verified here."""
