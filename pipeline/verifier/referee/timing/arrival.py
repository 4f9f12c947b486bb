"""Whether the results of a block were there when its contestant said so: some elements are read at the reply.

A candidate that replies before its device is done has work of its calls off the clock, and by the time that
outputs are compared, all is there. So a few elements of a few places, others in each block, are read while
the clock still runs, for both sides alike. When all is done they must be what they were.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import torch

from kernelproof.verifier.workers.shared_memory import in_memory

PLACES, ELEMENTS = 4, 16
"""Places that are looked at in a block, and elements of each output there. A candidate that leaves two of
sixteen results for later is found with a chance of 45 % in each block."""


class Arrival:
    """What is looked at in one block. Made before its clock starts."""

    def __init__(self, places: Sequence[Sequence[torch.Tensor]], source: random.Random) -> None:
        """`places`: the output tensors of each call's place; `source` chooses, in secret."""
        chosen = source.sample(list(places), min(PLACES, len(places)))
        self._memory = [in_memory(output) for outputs in chosen for output in outputs if output.numel()]
        self._where = [
            torch.tensor([source.randrange(len(flat)) for _ in range(ELEMENTS)], device=flat.device)
            for flat in self._memory
        ]
        self._seen: list[torch.Tensor] = []

    def look(self) -> None:
        """Reads the elements as they are now. The caller waits for the device."""
        self._seen = [flat[where] for flat, where in zip(self._memory, self._where, strict=True)]

    def changed(self) -> bool:
        """Whether one of them is no longer what it was."""
        now = [flat[where] for flat, where in zip(self._memory, self._where, strict=True)]
        return not all(map(torch.equal, now, self._seen))
