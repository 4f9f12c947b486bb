"""The calls of a block on a GPU, released one after the other, and the digests that a contestant named.

Before a block every slot's inputs are masked, each with a secret key of its own. When the contestant has
named the digest of a call, it is told that another is next, and its seed. A moment later its key is written
to the page of its process. So a call's work lies between its key and its digest: a result that is computed
later, all calls' at once say, is not the one that was named, and before the key nothing is known of the
inputs. None of this needs a word of the loop's: see `contestant.between_calls` for masks and digests.

With each digest comes the proof of the flushes so far, which the referee makes again. A wrong proof has two
causes. Work was left out: then it is that of an earlier step, or none. Or it is a sum of other numbers or
inputs. A kernel that writes past the end of its result reaches memory of its own process, the flush's and
the next inputs' too: a fault of an honest program, and no accusation. A loop that empties the cache before
the inputs are readable ends so too.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from typing import Any

import torch

from kernelproof.verifier.contestant.arena import reset_persisting_lines
from kernelproof.verifier.contestant.between_calls import Flush, Release, compiled
from kernelproof.verifier.referee import sides
from kernelproof.verifier.referee.timing.clock import call_ms
from kernelproof.verifier.workers.client import KeyPage
from kernelproof.verifier.workers.shared_memory import SharedSlot

LEFT_OUT, OVERWRITTEN = "cache_emptied", "overwritten"


class Kernels:
    """What the referee needs to do what a contestant's process has to do between calls."""

    def __init__(self, device: torch.device) -> None:
        cubin = compiled(device)
        self.flush = Flush(sides.flush_numbers(device), device, cubin)
        self.release = Release(device, cubin) if cubin else None
        """None on a CPU: there all inputs lie readable."""


class Releases:
    """Of one block."""

    def __init__(
        self,
        kernels: Kernels,
        inputs: Sequence[Sequence[torch.Tensor]] = (),
        seeds: Sequence[int] | None = None,
        page: KeyPage | None = None,
        wait_us: float = 0.0,
    ) -> None:
        """Masks the `inputs` of each call, where that side has them. `seeds`: of torch's generators. `page`:
        where that side finds its keys, each so many microseconds after it was told that a call is next."""
        self._kernels, self._seeds, self._page = kernels, seeds, page
        self._wait_ns = 0.0 if seeds is not None else 1e3 * wait_us  # who has a seed may draw numbers by it
        self._keys: list[int] = []
        self._placed: list[int] = []
        """Where the keys are on the device, behind each the sum of its inputs."""
        self._fixed: list[dict[str, Any]] = []
        """The digest and proof that were named for each call, by the contestant's word."""
        self._ended = False
        self._told_ns: int | None = None
        """When it was told of the call whose key is not written yet."""
        self._released_ns: int | None = None
        self._gaps_ms: list[float] = []
        """From each call's key to its digest, by the referee's clock."""
        if kernels.release is not None and page is not None and inputs:
            self._keys = [secrets.randbits(128) for _ in inputs]
            self._placed = kernels.release.placed(self._keys)
            for views, key in zip(inputs, self._placed, strict=True):
                kernels.release.mask(views, key)

    def next_call(self, request: dict[str, Any]) -> dict[str, Any] | None:
        """The answer to a request for the next call; None when there is none."""
        self._take(request)
        call = len(self._fixed)
        if self._ended or self._page is None or call >= len(self._keys):
            return None
        self._page.call += 1
        self._told_ns = time.perf_counter_ns()
        return {"call": self._page.call, "seed": None if self._seeds is None else self._seeds[call]}

    def release(self) -> None:
        """Writes the key of a call that was just told of, when its time has come."""
        if self._told_ns is None or self._page is None:
            return
        if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
            reset_persisting_lines()  # whatever that side's loop does
        while time.perf_counter_ns() < self._told_ns + self._wait_ns:
            pass
        self._told_ns, self._released_ns = None, time.perf_counter_ns()
        self._page.write(self._keys[len(self._fixed)])

    def end(self, request: dict[str, Any]) -> bool:
        """For a request for the places: nobody who knows them gets another call. False if they are known."""
        first = not self._ended
        self._take(request)
        self._ended = True
        return first

    @property
    def outer_ms(self) -> float | None:
        """Milliseconds of a call from its key to its digest; None where calls are not released one by one.

        All of a call's work lies there, so none can be moved to another call. So the median is fair, and it
        leaves out the calls in which other programs wanted the core.
        """
        if not self._gaps_ms or len(self._gaps_ms) != len(self._keys):
            return None
        return call_ms(self._gaps_ms)

    def _take(self, request: dict[str, Any]) -> None:
        if self._released_ns is not None and not self._ended:
            self._gaps_ms.append((time.perf_counter_ns() - self._released_ns) / 1e6)
            self._released_ns = None
        if not self._ended and isinstance(fixed := request.get("fixed"), dict):
            self._fixed.append(fixed)

    def is_another(self, call: int, place: SharedSlot) -> bool:
        """Whether the result of a call is not the one that was named for it."""
        release = self._kernels.release
        if release is None:
            return False
        return call >= len(self._fixed) or self._fixed[call].get("digest") != release.digest(place.outputs)

    def flush_failure(self) -> str | None:
        """What is wrong with the proofs of the flushes; None when all are right. `LEFT_OUT`: one
        is that of fewer flushes, or is no number, which only a runner that was tampered with sends. Else
        `OVERWRITTEN`."""
        if self._kernels.release is None or not self._keys:
            return None
        proofs = [fixed.get("proof") for fixed in self._fixed]
        if len(proofs) != len(self._keys):
            return LEFT_OUT
        right = []
        self._kernels.flush.begin()
        for key, proof in zip(self._placed, proofs, strict=True):
            right.append(self._kernels.flush.proof)
            self._kernels.flush(key)
            if proof != self._kernels.flush.proof:
                return OVERWRITTEN if isinstance(proof, int) and proof not in right else LEFT_OUT
        return None
