"""The keys of a block's calls, as a referee gives them to a loop in this process."""

from __future__ import annotations

import os
from collections.abc import Sequence

from kernelproof.verifier.contestant import arena, loop
from kernelproof.verifier.contestant.between_calls import Release
from kernelproof.verifier.workers.client import KeyPage

_ARENAS = list[arena.Arena]()
"""Pinned as long as the process lives: the same addresses could not be pinned again."""


class Keys:
    def __init__(self, release: Release, keys: Sequence[int]) -> None:
        self._page, self._keys = KeyPage(), iter(keys)
        self._arena = arena.attach_shared(arena.KEYS, self._page.descriptor)
        os.close(self._page.descriptor)
        _ARENAS.append(self._arena)
        release.listen(self._arena.data)

    def ask(self, _: loop.Fixed | None) -> tuple[int, None]:
        """What a loop calls for the next call."""
        self._page.call += 1
        self._page.write(next(self._keys))
        return self._page.call, None
