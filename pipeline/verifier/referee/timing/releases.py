"""The calls of a block on a GPU, released one after the other, and the digests that a contestant named.

Before a block every slot's inputs are masked, each with a secret key of its own. When the contestant waits
for a call, the referee makes that call's inputs readable and empties the cache, in its own process, and lets
the contestant's go on. It gives a key with that, under which the contestant has to name the digest of its
results. So a result that is computed later, all calls' at once say, is not the one that was named, and before
its call nothing is known of the inputs, nor of its seed. None of this needs a word of the loop's: see
`contestant.between_calls` for masks and digests.

A few calls of a decoy are queued a while before their inputs are readable. Work on a stream that does not
wait for the caller's reads what is masked then. In other calls it only begins some 10 us early, when the
device goes on with the contestant's process.
"""

from __future__ import annotations

import functools
import math
import secrets
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from kernelproof.verifier.contestant.between_calls import Digests, Release, compiled
from kernelproof.verifier.contestant.call_page import CallPage
from kernelproof.verifier.referee import sides
from kernelproof.verifier.referee.timing.clock import call_ms
from kernelproof.verifier.workers.shared_memory import SharedSlot

AWAKE_SECONDS, NAP_SECONDS = 0.02, 5e-5
"""So long the referee waits awake for a call's results, and then looks again each time after so long: the
error is small beside such a call."""

EARLY_SECONDS = 0.001
"""So long before the referee's work on the device an early call may be queued."""
LOOKS = 32
"""So many looks at the page for one at the contestant's messages, which takes longer."""


class Kernels:
    """What the referee's device does around calls."""

    def __init__(self, device: torch.device) -> None:
        self.release: Release | None = None
        """None on a CPU: there all inputs lie readable."""
        self.digests: Digests | None = None
        if cubin := compiled(device):
            self.release, self.digests = Release(device, cubin, _flushed(device)), Digests(device, cubin)

    def of(self, page: CallPage | None) -> AbstractContextManager[None]:
        """While a block of the contestant's with this page runs."""
        return nullcontext() if self.release is None or page is None else self.release.of(page)


@functools.cache
def _flushed(device: torch.device) -> torch.Tensor:
    return torch.empty(sides.flush_bytes(device), dtype=torch.uint8, device=device)


class Releases:
    """Of one block."""

    def __init__(
        self,
        kernels: Kernels,
        inputs: Sequence[Sequence[torch.Tensor]] = (),
        seeds: Sequence[int] | None = None,
        page: CallPage | None = None,
        early: Collection[int] = (),
    ) -> None:
        """Masks the `inputs` of each call, where that side has them. `seeds`: of torch's generators. `page`:
        that side's. `early`: calls that are queued while their inputs are masked. Their times say nothing."""
        self._kernels, self._inputs, self._seeds, self._page = kernels, inputs, seeds, page
        self._early = early
        self._keys: list[int] = []
        """Of the masks."""
        self._named: list[tuple[int, bytes]] = []
        """The key and the digest that was named under it, for each call, by the contestant's word."""
        self._ended = self._told = False
        """Whether it knows the places, and whether it was told of a call that is not released yet."""
        self._began_ns: int | None = None
        """When the call was released whose digest is awaited."""
        self._key = 0
        """For that digest."""
        self._calls_ms: list[float] = []
        """From the release of each call to its digest, by the referee's clock."""
        self._ours_ms: list[float] = []
        """What masks and flush took of that, by the referee's device."""
        if kernels.release is not None and page is not None:
            for views in inputs:
                self._keys.append(secrets.randbits(128))
                kernels.release.mask(views, self._keys[-1])

    def next_call(self, _: dict[str, Any]) -> dict[str, Any] | None:
        """The answer to a request for the next call; None when there is none."""
        call = len(self._named)
        waits = self._told or self._began_ns is not None  # for the one before
        if self._ended or waits or self._page is None or call >= len(self._keys):
            return None
        self._page.call += 1
        self._told = True
        return {"call": self._page.call}

    def serve(self, over: Callable[[], bool]) -> None:
        """Releases the call that was just told of, and waits for its digest, until it is `over`. May be
        called again, for what is still awaited then."""
        if self._told:
            self._told = False
            self._release()
        page = self._page
        if page is None or self._began_ns is None:
            return
        digest = _named_on(page, over)
        if digest is not None:
            self._calls_ms.append((time.perf_counter_ns() - self._began_ns) / 1e6)
            self._ours_ms.append(self._kernels.release.took_ms if self._kernels.release is not None else 0.0)
            self._named.append((self._key, digest))
            self._began_ns = None

    def _release(self) -> None:
        page, release, call = self._page, self._kernels.release, len(self._named)
        assert page is not None and release is not None
        self._key, seed = secrets.randbits(128), None if self._seeds is None else self._seeds[call]
        release.flush()
        release.settle()
        if call in self._early:
            page.tell(seed)
            time.sleep(EARLY_SECONDS)
        self._began_ns = time.perf_counter_ns()
        release.mark(0)
        release.mask(self._inputs[call], self._keys[call])
        release.flush()
        release.mark(1)
        release.go(page.call, self._key)
        if call not in self._early:
            page.tell(seed)

    def end(self) -> bool:
        """For a request for the places: nobody who knows them gets another call. False if they are known."""
        first = not self._ended
        self._ended = True
        return first

    @property
    def complete(self) -> bool:
        """Whether all calls were released, and a digest was named for each."""
        return len(self._named) == len(self._keys)

    @property
    def ours_ms(self) -> float:
        """What masks and flush took in a call, the median."""
        return call_ms(self._ours_ms) if self._ours_ms else 0.0

    def outer_ms(self, most: float = math.inf) -> float | None:
        """Milliseconds of a call from its release to its digest; None where they are not released one by one.

        What masks and flush took is taken off, `most` of it: it differs from call to call by as much as a
        short call takes. More than they take is other work, of a process whose turn it was not. All of a
        call's work lies in the rest, so none can be moved to another call. So the median is fair, and it
        leaves out the calls in which other programs wanted the core.
        """
        if not self._calls_ms or not self.complete:
            return None
        pairs = zip(self._calls_ms, self._ours_ms, strict=True)
        return call_ms([whole - min(ours, most) for whole, ours in pairs])

    def is_another(self, call: int, place: SharedSlot) -> bool:
        """Whether the result of a call is not the one that was named for it. Where a call of the block has no
        digest, none of them counts: nothing says when it was over."""
        if self._kernels.digests is None:
            return False
        if not self.complete:
            return True
        key, digest = self._named[call]
        return digest != self._kernels.digests.digest(place.outputs, key)


def _named_on(page: CallPage, over: Callable[[], bool]) -> bytes | None:
    """The digest of the page's call, as it was when it was said to be there; None when it is over before."""
    awake_until, looks = time.monotonic() + AWAKE_SECONDS, 0
    while (digest := page.digest) is None:
        looks += 1
        if looks % LOOKS:
            continue
        if over():
            return page.digest
        if time.monotonic() > awake_until:
            time.sleep(NAP_SECONDS)
    return digest
