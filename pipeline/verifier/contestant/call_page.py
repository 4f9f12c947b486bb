"""The page of memory through which the referee and a contestant on a GPU agree about each call.

Both map it, and both devices write to it: nothing on the clock waits for a message. An example, one call: the
contestant says that it waits, and is told the call's number. The referee queues its own work on the device,
and writes a seed, and the number in `TOLD`: now the contestant queues the call. When the inputs are readable,
the referee's device writes a secret key, and the number in `GO`. The contestant's device answers with a
digest of the results under that key, and the number in `DIGESTED`.

Whoever maps the page may write anything to it. So a digest is believed only when the results that are
delivered later have it, under a key that was not there before the inputs were readable. It ends the clock.
"""

from __future__ import annotations

import ctypes
import mmap

from kernelproof.verifier.contestant.wire import sealed_file

GO, SEED, TOLD, KEY, DIGEST, DIGESTED = 0, 1, 4, 8, 24, 32
"""Where they lie, in words of 32 bits. A seed has three: whether there is one, and its halves."""


class CallPage:
    def __init__(self, descriptor: int | None = None) -> None:
        """`descriptor`: of the other side's; a page is made without."""
        self.descriptor = sealed_file("calls", mmap.PAGESIZE) if descriptor is None else descriptor
        self._words = (ctypes.c_uint32 * 64).from_buffer(mmap.mmap(self.descriptor, mmap.PAGESIZE))
        self.address, self.nbytes = ctypes.addressof(self._words), mmap.PAGESIZE
        self.call = 0
        """The number of the last call."""

    def tell(self, seed: int | None) -> None:
        """Says that the call may be queued. `seed`: of torch's generators; None where the reference draws no
        random numbers."""
        known = seed is not None
        self._words[SEED : SEED + 3] = [known, (seed or 0) & 0xFFFFFFFF, (seed or 0) >> 32]
        self._words[TOLD] = self.call  # last: the contestant waits for it

    def wait(self) -> int | None:
        """Waits until the call may be queued. Returns its seed."""
        words, call = self._words, self.call
        while words[TOLD] != call:
            pass
        known, low, high = words[SEED : SEED + 3]
        return low | high << 32 if known else None

    @property
    def digest(self) -> bytes | None:
        """The 32 bytes that were named for this call; None until then."""
        if self._words[DIGESTED] != self.call:
            return None
        return ctypes.string_at(self.address + 4 * DIGEST, 32)
