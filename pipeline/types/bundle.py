"""One attempt as a bundle carries it: everything that somebody else needs to doubt it."""

from __future__ import annotations

from kernelproof.types.base import FrozenRecord
from kernelproof.types.candidate import Extraction
from kernelproof.types.exchange import Prompt, Response
from kernelproof.types.problem import Problem
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
