"""A reproduction: a stored result held against a new one."""

from __future__ import annotations

from enum import StrEnum

from kernelproof.types.base import FrozenRecord
from kernelproof.types.verification import Verification


class ReproductionFinding(StrEnum):
    """What a reproduction found."""

    SAME = "same"
    FASTER = "faster"
    SLOWER = "slower"
    AMBIGUOUS = "ambiguous"
    NOW_WRONG = "now_wrong"
    NOW_RIGHT = "now_right"
    OTHER_FAILURE = "other_failure"
    NOT_COMPARABLE = "not_comparable"
    ALTERED = "altered"

    @property
    def confirms(self) -> bool:
        """Whether the stored result stands."""
        return self in (ReproductionFinding.SAME, ReproductionFinding.FASTER)


class Reproduction(FrozenRecord):
    """The comparison of a stored result with a new one."""

    attempt_id: int
    finding: ReproductionFinding
    reason: str
    alterations: tuple[str, ...]
    """What was changed in the store since it was written; then nothing was run."""
    differences: dict[str, tuple[object, object]]
    """Environment fields that differ: (then, now)."""
    then: Verification | None
    now: Verification | None
    verification_id: int | None
    """The new verification's id in the store."""
