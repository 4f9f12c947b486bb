"""Results to hold against ours: what somebody reported of an imported program, which is never a verdict, an
attempt in a bundle, and what a stored result came to when it was verified again.
"""

from __future__ import annotations

from enum import StrEnum
from math import isfinite
from typing import Any

from pydantic import Field

from kernelproof.types.exchange import Extraction, Prompt, Response
from kernelproof.types.problem import Problem
from kernelproof.types.record import FrozenRecord
from kernelproof.types.run import RunSettings
from kernelproof.types.verification import Verification


def ratio(baseline_ms: float | None, runtime_ms: float | None) -> float | None:
    """The speedup that two times amount to; None where one is missing, or the result is no number."""
    if baseline_ms is None or runtime_ms is None:
        return None
    speedup = baseline_ms / runtime_ms
    return speedup if isfinite(speedup) and speedup > 0 else None


class ReportedFigures(FrozenRecord):
    """The figures reported of a program; None where nothing is said."""

    compiled: bool | None = None
    correct: bool | None = None
    runtime_ms: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Milliseconds of one call of the candidate."""
    baseline_ms: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Milliseconds of one call of the reference."""
    speedup: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """As reported, else baseline over runtime."""
    device: str | None = None
    """What it was measured on, in the reporter's words."""


class ReportedResult(ReportedFigures):
    """Where an imported program came from, with the result reported of it."""

    source: str
    """The file below the folder that was imported, or the line of a file of lines."""
    said_in: str | None = None
    """The file that reports it; None: nothing is reported."""
    raw: dict[str, Any] | None = None
    """The report as it was written, whole."""

    @property
    def has_claim(self) -> bool:
        """Whether anything is reported of the program."""
        return self.said_in is not None


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
