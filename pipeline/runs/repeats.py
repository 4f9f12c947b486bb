"""Models repeat themselves: which earlier attempt held the same program, and what was found of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import anyio

from kernelproof.extraction.normalise import normalized_hash
from kernelproof.runs.run_context import Judged
from kernelproof.types import Verification


def repeated(source: str, earlier: Iterable[Judged]) -> Judged | None:
    """The earlier attempt with this very program, else with one that differs in comments and blanks alone.

    The first of several; None where there is none.
    """
    with_program = [each for each in earlier if each.verification is not None and each.source is not None]
    same = next((each for each in with_program if each.source == source), None)
    if same is not None or not with_program:
        return same
    ours = normalized_hash(source)
    return next((each for each in with_program if each.normalized_hash == ours), None)


class Verdicts:
    """The verifications of a sample's programs, so that none is made twice.

    Two answers of one round may hold the same program: `alone` lets one be verified, and the other one waits.
    """

    def __init__(self) -> None:
        self._kept: dict[str, tuple[int, Verification]] = {}
        self._locks: defaultdict[str, anyio.Lock] = defaultdict(anyio.Lock)

    def alone(self, source: str) -> anyio.Lock:
        """To be held while this very program is looked up, verified and kept."""
        return self._locks[source]

    def keep(self, source: str, attempt_id: int, verdict: Verification) -> None:
        """Keeps the verification of a program; its first attempt stays the one that others repeat."""
        self._kept.setdefault(source, (attempt_id, verdict))

    def of(self, source: str) -> tuple[int, Verification] | None:
        """The attempt that this very program was verified for, and its verification; None before that."""
        return self._kept.get(source)
