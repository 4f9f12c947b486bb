"""The page of memory through which the referee and a contestant on a GPU agree about each call.

Both map it, and both devices read and write it: nothing on the clock waits for a message. An example, one
call: the contestant says that it waits, and is told the call's number. The referee's device writes that
number to `GO` when the inputs are readable. The contestant's device writes it to `READY` when the results are
there. The referee then writes a secret key and the number to `KEYED`, and the contestant's device answers
with the digest of the results under that key, and the number in `DIGESTED`.

Whoever maps the page may write anything to it. So a digest is believed only when the results that are
delivered later have it, and it ends the clock: nobody can name it sooner than the results are there.
"""

from __future__ import annotations

import ctypes
import mmap

from kernelproof.verifier.contestant.wire import sealed_file

GO, SEED, KEY, KEYED, READY, DIGEST, DIGESTED = 0, 1, 8, 12, 16, 24, 32
"""Where they lie, in words of 32 bits. A seed has three: whether there is one, and its halves."""


class CallPage:
    def __init__(self, descriptor: int | None = None) -> None:
        """`descriptor`: of the other side's; a page is made without."""
        self.descriptor = sealed_file("calls", mmap.PAGESIZE) if descriptor is None else descriptor
        self._words = (ctypes.c_uint32 * 64).from_buffer(mmap.mmap(self.descriptor, mmap.PAGESIZE))
        self.address, self.nbytes = ctypes.addressof(self._words), mmap.PAGESIZE
        self.call = 0
        """The number of the last call."""

    def give_seed(self, seed: int | None) -> None:
        """Of torch's generators, for the next call; None where the reference draws no random numbers."""
        known = seed is not None
        self._words[SEED : SEED + 3] = [known, (seed or 0) & 0xFFFFFFFF, (seed or 0) >> 32]

    def wait(self) -> int | None:
        """Waits until the call's inputs are readable. Returns its seed."""
        words, call = self._words, self.call
        while words[GO] != call:
            pass
        known, low, high = words[SEED : SEED + 3]
        return low | high << 32 if known else None

    @property
    def is_ready(self) -> bool:
        """Whether the contestant says that the results are there."""
        return bool(self._words[READY] == self.call)

    def give_key(self, key: int) -> None:
        """128 bits for the digest of the results."""
        self._words[KEY : KEY + 4] = [key >> shift & 0xFFFFFFFF for shift in (0, 32, 64, 96)]
        self._words[KEYED] = self.call  # last: the device waits for it

    @property
    def digest(self) -> bytes | None:
        """The 32 bytes that were named for this call; None until then."""
        if self._words[DIGESTED] != self.call:
            return None
        return ctypes.string_at(self.address + 4 * DIGEST, 32)
