"""The calls of a block on a GPU, released one after the other, and the digests that a contestant named.

Before a block every slot's inputs are masked, each with a secret key of its own, behind a time lock. The
contestant gets the key of a call, and its seed, when it has named the digest of the call before. So a call's
work lies between its key and its digest: a result that is computed later, all calls' at once say, is not the
one that was named, and before the key nothing is known of the inputs. None of this needs a word of the
loop's: see `contestant.between_calls` for locks, masks and digests.

With each digest comes the proof of the flushes so far, which the referee makes again. A wrong proof has two
causes. Work was left out: then it is that of an earlier step, or none. Or the numbers were overwritten: a
kernel that writes past the end of its result reaches memory of its own process, the flush's too. That is a
fault of an honest program, and no accusation.
"""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Sequence
from typing import Any

import torch

from kernelproof.verifier.contestant.between_calls import Flush, Release, compiled
from kernelproof.verifier.referee import sides
from kernelproof.verifier.referee.timing.clock import call_ms
from kernelproof.verifier.workers.shared_memory import SharedSlot

LEFT_OUT, OVERWRITTEN = "cache_emptied", "cache_overwritten"


class Kernels:
    """What the referee needs to do what a contestant's process has to do between calls."""

    def __init__(self, device: torch.device) -> None:
        cubin = compiled(device)
        self.flush = Flush(sides.flush_bytes(device), device, cubin)
        self.release = Release(device, cubin) if cubin else None
        """None on a CPU: there all inputs lie readable."""
        self._step_us = _step_us(self.release) if self.release is not None else math.inf

    def lock_steps(self, us: float) -> int:
        """The steps of a key's time lock that takes so many microseconds; none on a CPU."""
        return int(us / self._step_us)


_MEASURED_STEPS = 1000


def _step_us(release: Release) -> float:
    """Microseconds of a step, the least of three measurements: the clock may still rise."""
    found = []
    for _ in range(3):
        marks: list[Any] = [torch.cuda.Event(enable_timing=True) for _ in range(2)]  # type: ignore[no-untyped-call]
        marks[0].record()
        release.unlock([0], _MEASURED_STEPS)
        marks[1].record()
        marks[1].synchronize()
        found.append(1e3 * marks[0].elapsed_time(marks[1]) / _MEASURED_STEPS)
    return float(min(found))


class Releases:
    """Of one block."""

    def __init__(
        self,
        kernels: Kernels,
        inputs: Sequence[Sequence[torch.Tensor]],
        seeds: Sequence[int] | None,
        lock_steps: int = 0,
    ) -> None:
        """Masks the `inputs` of each call, where that side has them. `seeds`: of torch's generators.
        `lock_steps`: of the keys' time locks."""
        self._kernels, self._seeds, self._lock_steps = kernels, seeds, lock_steps
        self._keys: list[int] = []
        self._fixed: list[dict[str, Any]] = []
        """The digest and proof that were named for each call, by the contestant's word."""
        self._ended = False
        self._released_ns: int | None = None
        self._gaps_ms: list[float] = []
        """From each call's key to its digest, by the referee's clock."""
        if kernels.release is not None and inputs:
            self._keys = [secrets.randbits(128) for _ in inputs]
            for views, key in zip(inputs, kernels.release.unlock(self._keys, lock_steps), strict=True):
                kernels.release.mask(views, key)

    def next_call(self, request: dict[str, Any]) -> dict[str, Any] | None:
        """The answer to a request for the next call; None when there is none."""
        self._take(request)
        call = len(self._fixed)
        if self._ended or call >= len(self._keys):
            return None
        self._released_ns = time.perf_counter_ns()
        return {"key": self._keys[call], "seed": None if self._seeds is None else self._seeds[call]}

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

    def flush_failure(self, seed: int) -> str | None:
        """What is wrong with the proofs of the flushes from `seed`; None when all are right. `LEFT_OUT`: one
        is that of fewer flushes, or is no number, which only a runner that was tampered with sends. Else
        `OVERWRITTEN`."""
        if self._kernels.release is None or not self._keys:
            return None
        proofs = [fixed.get("proof") for fixed in self._fixed]
        if len(proofs) != len(self._keys):
            return LEFT_OUT
        right = []
        self._kernels.flush.begin(seed)
        keys = self._kernels.release.unlock(self._keys, self._lock_steps)
        for key, proof in zip(keys, proofs, strict=True):
            right.append(self._kernels.flush.proof)
            self._kernels.flush(key)
            if proof != self._kernels.flush.proof:
                return OVERWRITTEN if isinstance(proof, int) and proof not in right else LEFT_OUT
        return None
