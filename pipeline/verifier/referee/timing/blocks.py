"""Blocks of calls in one pair of processes: how many calls each holds, which side of a round comes first,
and which are decoys.

Example: where candidate and baseline take 2 ms each, a block on a GPU holds MAX_SLOTS calls. Where they take
20 ms each it holds three, since no block should be longer than the backend's `longest_block_ms`.

A block holds one of two numbers of calls, at random. A candidate that does not know how many calls come
cannot spread over them the time that it hides.

`Decoys` are blocks of the candidate's that look like the others, and do not count. Their inputs are the
variants that the candidate was right on in the trials. A shortcut that is right for drawn inputs only gives
wrong results in them.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from kernelproof.verifier.referee.inputs.variants import Variant
from kernelproof.verifier.referee.timing.clock import Round
from kernelproof.verifier.referee.timing.stopping import FAR_SLOWER, StoppingRule
from kernelproof.verifier.workers.shared_memory import MAX_SLOTS

ORDERS = ("BC", "CB")
"""Baseline first, or candidate first."""
FIRST_CALLS, WARM_CALLS = 2, 4
"""In the first block of the warm-up, and in the others. The fastest call of the last block tells how many a
block should hold: the time for loading a library or finding an algorithm once says nothing of later calls."""
FEWEST_CALLS = 3
"""Least calls of a block, so that numbers can differ and a block has more than its first call. One less for a
candidate that is far slower than the baseline: it would gain nothing by its first call."""
SHORT_BLOCK_MS = 8.0
"""A block holds MAX_SLOTS calls, or as many more as take this long in all, where there are slots. The error
of the referee's clock in a block is then a small part of a call, however short the call is."""
FEWEST_SHARE = 0.75
"""The smaller of the two numbers of calls is at least this share of the greater: each block tells as much."""
RECOUNTED = 2
"""The numbers of calls are chosen again when, by a round's times, so many times as many calls fit a block."""


class Blocks:
    """The two numbers of calls, and the plan of the next rounds."""

    def __init__(self, slots: int, longest_ms: float, source: random.Random) -> None:
        """`slots`: most calls of a block. `longest_ms`: blocks that would take longer hold fewer calls.
        `source` chooses, in secret.
        """
        self._slots, self._longest_ms, self._random = slots, longest_ms, source
        self._planned: list[tuple[int, str]] = []
        self.counts: tuple[int, int] = (1, min(MAX_SLOTS, slots))
        """The smaller number of calls and the greater."""

    @property
    def most(self) -> int:
        """The greater number of calls."""
        return self.counts[1]

    @property
    def between_pairs(self) -> bool:
        """Whether no round is planned that belongs to an earlier one."""
        return not self._planned

    def next(self) -> tuple[int, str]:
        """Number of calls and order of the next round; the same again until it is `done`.

        Rounds come by two, ABBA or BAAB: the side that comes first has the cooler device.
        """
        if not self._planned:
            counts, orders = self._random.sample(self.counts, 2), self._random.sample(ORDERS, 2)
            self._planned = list(zip(counts, orders, strict=True))
        return self._planned[-1]

    def done(self) -> None:
        """The next round was made, and counts."""
        self._planned.pop()

    def wanted(self, last: Round) -> int:
        """How many calls a block should hold, by the times in this round."""
        usual = min(MAX_SLOTS, self._slots)
        if any(map(math.isnan, (*last.baseline, *last.candidate))):  # a time was impossible
            return usual
        baseline, candidate = min(last.baseline), min(last.candidate)
        slowest = max(baseline, candidate)
        count = min(self._slots, max(usual, math.ceil(SHORT_BLOCK_MS / slowest)))
        fewest = FEWEST_CALLS if baseline > FAR_SLOWER * candidate else FEWEST_CALLS - 1
        return max(min(fewest, count), min(count, math.ceil(self._longest_ms / slowest)))

    def hold(self, many: int) -> None:
        """From now on blocks hold so many calls, or a secret number of fewer."""
        fewest = max(1, min(many - 1, math.ceil(FEWEST_SHARE * many)))
        self.counts = (self._random.randint(fewest, max(fewest, many - 1)), many)

    def recounted(self, last: Round) -> bool:
        """Whether, by this round, far more calls fit into a block than the warm-up showed: the candidate was
        slow only there. Blocks hold as many from now on, and planned rounds are dropped.
        """
        many = self.wanted(last)
        if many < RECOUNTED * self.most:
            return False
        self.hold(many)
        self._planned.clear()
        return True


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
        self._decoy_calls: list[int] = []
        """The calls of each decoy so far."""

    def comes_now(self) -> bool:
        """Whether the next block is a decoy: by chance."""
        return bool(self._variants) and self._random.random() < SHARE

    def are_missing(self, rounds: Sequence[Round], rule: StoppingRule) -> bool:
        """Whether there were too few decoys, or not each variant has been in one. One decoy is enough of a
        candidate that is clearly slower, or below the bar. None is needed of one that is far slower and holds
        the device long.
        """
        if self._decoy_calls and (rule.is_clearly_slower(rounds) or rule.is_below_bar(rounds)):
            return False
        if rule.is_far_slower(rounds) and rounds[-1].host_ms > DEAR_MS:
            return False
        most = len(self._variants)
        return most > 0 and (len(self._decoy_calls) < AT_LEAST or sum(self._decoy_calls) < most)

    def take(self, count: int) -> list[Variant]:
        """The next `count` variants. Each has its turn, so that few decoys show all of them."""
        while len(self._next) < count:
            self._next += self._random.sample(self._variants, len(self._variants))
        taken, self._next = self._next[:count], self._next[count:]
        self._decoy_calls.append(count)
        return taken
