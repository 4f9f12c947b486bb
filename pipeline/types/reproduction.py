"""A reproduction: a stored result held against a new one."""

from __future__ import annotations

from enum import StrEnum

from kernelproof.types.base import FrozenRecord
from kernelproof.types.verification import Verification


class ReproductionFinding(StrEnum):
    """The finding of a reproduction."""

    SAME = "same"
    FASTER = "faster"
    SLOWER = "slower"
    AMBIGUOUS = "ambiguous"
    NOW_WRONG = "now_wrong"
    NOW_RIGHT = "now_right"
    OTHER_FAILURE = "other_failure"
    NOT_COMPARABLE = "not_comparable"
    TAMPERED = "tampered"

    @property
    def confirms(self) -> bool:
        """Whether the stored result stands."""
        return self in (ReproductionFinding.SAME, ReproductionFinding.FASTER)

    @property
    def refutes(self) -> bool:
        """Whether the stored result does not hold. Neither is so where nothing can be said."""
        undecided = (ReproductionFinding.AMBIGUOUS, ReproductionFinding.NOT_COMPARABLE)
        return not self.confirms and self not in undecided


class Reproduction(FrozenRecord):
    """The comparison of a stored result with a new one."""

    attempt_id: int
    finding: ReproductionFinding
    reason: str
    alterations: tuple[str, ...]
    """Changes since it was written, in the store or in a bundle; then nothing was run."""
    differences: dict[str, tuple[object, object]]
    """Environment fields that differ: (then, now)."""
    then: Verification | None
    now: Verification | None
    verification_id: int | None
    """The new verification's id in the store; None where nothing is kept, as of a bundle."""
