"""An attempt in a bundle, and a stored result held against a new one."""

from __future__ import annotations

from enum import StrEnum

from kernelproof.types.exchange import Extraction, Prompt, Response
from kernelproof.types.problem import Problem
from kernelproof.types.record import FrozenRecord
from kernelproof.types.run import RunSettings
from kernelproof.types.verification import Verification


class Bundled(FrozenRecord):
    """An attempt with the verification that is claimed of it."""

    number: int
    """The attempt's number where it was bundled."""
    run: RunSettings
    sample: int
    turn: int
    problem: Problem
    prompt: Prompt | None
    """None for a candidate that was given as a file."""
    response: Response
    base: str | None
    """The program that the question showed, where the answer is a diff of it; None elsewhere."""
    extraction: Extraction
    """With the candidate's source."""
    verification: Verification
    """The claim."""


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
