"""Decoys: blocks of the candidate's that look like the others, and do not count.

Their inputs are the variants that the candidate was right on in the trials. A shortcut that is right for
drawn inputs only gives wrong results in them.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from kernelproof.verifier.referee.inputs.variants import Variant
from kernelproof.verifier.referee.timing.clock import Round
from kernelproof.verifier.referee.timing.stopping import StoppingRule

SHARE = 0.125
"""Chance of a decoy before each round."""
AT_LEAST = 2
"""Decoys of each pair of processes."""
DEAR_MS = 250.0
"""A block that takes longer is no decoy where no speedup can be claimed."""


class Decoys:
    """Says when a decoy comes, and which variants it holds."""

    def __init__(self, variants: Sequence[Variant], source: random.Random) -> None:
        """`source` chooses, in secret."""
        self._variants, self._random = list(variants), source
        self._next: list[Variant] = []
        self._made: list[int] = []
        """The calls of each decoy so far."""

    def comes_now(self) -> bool:
        """Whether the next block is a decoy: by chance."""
        return bool(self._variants) and self._random.random() < SHARE

    def are_missing(self, rounds: Sequence[Round], rule: StoppingRule) -> bool:
        """Whether there were too few decoys, or not each variant has been in one. One decoy is enough of a
        candidate that is clearly slower, or below the bar. None is needed of one that is far slower and holds
        the device long.
        """
        if self._made and (rule.is_clearly_slower(rounds) or rule.is_below_bar(rounds)):
            return False
        if rule.is_far_slower(rounds) and rounds[-1].host_ms > DEAR_MS:
            return False
        most = len(self._variants)
        return most > 0 and (len(self._made) < AT_LEAST or sum(self._made) < most)

    def take(self, count: int) -> list[Variant]:
        """The next `count` variants. Each has its turn, so that few decoys show all of them."""
        while len(self._next) < count:
            self._next += self._random.sample(self._variants, len(self._variants))
        taken, self._next = self._next[:count], self._next[count:]
        self._made.append(count)
        return taken
