"""Models repeat themselves: which earlier attempt held the same program."""

from __future__ import annotations

from collections.abc import Iterable

from kernelproof.runs.likeness import likeness
from kernelproof.runs.stages import Judged


def repeated(source: str, earlier: Iterable[Judged]) -> Judged | None:
    """The earlier attempt with this very program, else with one that differs in comments and blanks alone.

    The first of several; None where there is none.
    """
    with_program = [each for each in earlier if each.verification is not None and each.source is not None]
    same = next((each for each in with_program if each.source == source), None)
    if same is not None or not with_program:
        return same
    ours = likeness(source)
    return next((each for each in with_program if each.likeness == ours), None)
