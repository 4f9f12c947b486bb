"""What a referee keeps from one verification to the next: the warm pool, canaries, the deferred cleanup, and
the lease of the device for as long as the cleanup lasts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch

from kernelproof.types import CoreShares, VerifySettings
from kernelproof.verifier.devices import gpu_health, locks
from kernelproof.verifier.referee.sides import starting
from kernelproof.verifier.workers.pool import DeferredCleanup, WarmPool


class Lease:
    """A device that is still held when the verification is over. The first to come takes it: the next
    verification, or the work that lets go of it."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._left: locks.Hold | None = None
        self._times = 0

    def leave(self, hold: locks.Hold) -> Callable[[], None]:
        """What lets go of it, unless it was taken meanwhile (and maybe left again)."""
        with self._guard:
            self._left = hold
            self._times += 1
            this = self._times

        def free() -> None:
            if (left := self.reclaim(this)) is not None:
                left.release()

        return free

    def reclaim(self, this: int | None = None) -> locks.Hold | None:
        """The hold that was left (that `this` time), if it is still there."""
        with self._guard:
            if this not in (None, self._times):
                return None
            left, self._left = self._left, None
        return left


@dataclass(frozen=True)
class WarmState:
    """Processes and locks that last from one verification to the next."""

    pool: WarmPool = field(default_factory=WarmPool)
    canaries: gpu_health.Reserve = field(default_factory=gpu_health.Reserve)
    cleanup: DeferredCleanup = field(default_factory=DeferredCleanup)
    lease: Lease = field(default_factory=Lease)

    @contextmanager
    def alone(self, device_key: str, on_wait: Callable[[str], None]) -> Iterator[str | None]:
        """Holds a device as `locks.held` does, and beyond the block until what it left behind is done:
        the GPU memory of large inputs is given back there, and other processes would miss it.

        Where the next block comes before that, and no process waits, the device is not let go in between.
        """
        hold = self.lease.reclaim()
        if hold is not None and (hold.key != device_key or locks.wanted(hold)):
            try:
                self.cleanup.wait()
            finally:
                hold.release()
            hold = None
        if hold is None:
            hold = locks.take(device_key, on_wait)
        try:
            yield hold.note
        finally:
            self.cleanup.later(self.lease.leave(hold))

    def share(self, shares: CoreShares) -> None:
        """From now on these cores are kept for what is measured."""
        if shares != self.pool.shares:
            self.cleanup.wait()
            self.pool.share(shares)

    def prepare(self, settings: VerifySettings, device: torch.device) -> None:
        """Lets what is in reserve do on the device what it can before it is wanted, while nothing is timed:
        until `settle`."""
        starting.greet_ahead(self.pool, settings, device)
        self.canaries.prepare()

    def settle(self) -> None:
        """Returns when nothing of all this takes time from a measurement."""
        self.pool.enough()  # requests that were begun end while we wait for the rest
        self.cleanup.wait()
        self.pool.settle()
        self.canaries.settle()

    def close(self) -> None:
        """Ends all of it. It can be used again."""
        self.cleanup.wait()
        self.pool.close()
        self.canaries.close()
