"""A daemon of the evaluation service: takes evaluations under leases, works on several, and renews.

It may be killed at any moment: what it had is taken by another daemon when its lease ends.
"""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Protocol

from kernelproof.db.evaluations import LEASE_S
from kernelproof.db.queue import LeasedJob, WorkerCapabilities
from kernelproof.db.store import Store
from kernelproof.verifier.engine.stop import Stop

LOOK_S = 1.0
"""Seconds between two looks into the queue without a notification, and between two looks for lost leases."""
STOP_S = 0.2
"""Seconds after which a daemon without a free place notices that it has to stop."""
_LOG = logging.getLogger("kernelproof.service")


class Work(Protocol):
    """The work on evaluations that a daemon takes. `do` is called from several threads."""

    capabilities: WorkerCapabilities
    device: str

    owner: str

    @property
    def gpu(self) -> str | None:
        """The UUID of the one GPU that it holds."""

    @property
    def bad_gpu(self) -> bool:
        """Whether its GPU was set aside."""

    @property
    def waits(self) -> str | None:
        """Why it begins no other one now. Asked before each taking."""

    def goes_on(self, *, begun: bool) -> bool:
        """Whether it still has what it needs; else the daemon ends. Asked often. `begun`: whether it has ever
        taken an evaluation."""

    def do(self, job: LeasedJob, stop: Stop) -> bool | None:
        """Works on one until it is over; whether the queue accepted the end.

        None where it was stopped before: the evaluation goes back. `stop` is asked when the evaluation is
        cancelled or its lease lost. Raises StoreError.
        """

    def close(self) -> None:
        """Ends what `do` waits for, in any thread."""


@dataclass(frozen=True)
class _Running:
    job: LeasedJob
    stop: Stop
    future: Future[bool | None]


@dataclass
class Daemon:
    """Evaluations in the hands of one process. `run` returns when `stop` is set, or its work cannot go on."""

    store: Store
    work: Work
    places: int
    lease_s: float = LEASE_S
    stop: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.owner = self.work.owner
        self.done = 0
        self._begun = False
        self._told: str | None = None
        """Of `Work.waits`, what its last sign of life said."""
        self._held: dict[str, _Running] = {}
        self._threads = ThreadPoolExecutor(self.places, thread_name_prefix="evaluation")
        self._moved = threading.Event()
        """One of those that it has is over."""
        self._next_renewal = self._next_recovery = 0.0

    def run(self) -> None:
        """Works until `stop` is set, or its work cannot go on; then what it has goes back into the queue.
        Raises StoreError."""
        queue, workers = self.store.service.queue, self.store.service.workers
        listener = queue.listener()
        try:
            while not self.stop.is_set() and self.work.goes_on(begun=self._begun):
                self._moved.clear()
                self._collect()
                self._renew()
                self._recover()
                if self._is_full or self.work.waits is not None:
                    self._moved.wait(STOP_S)
                elif not queue.has_work(self.work.capabilities):
                    listener.wait(min(LOOK_S, self.lease_s / 6), self.stop)
                elif not self._take():  # the rest is the part of others
                    self._moved.wait(STOP_S)
        finally:
            listener.close()
            self.work.close()
            self._threads.shutdown(wait=True, cancel_futures=True)
            queue.release_all(self.owner, bad_gpu=self.work.bad_gpu)
            workers.end(self.owner)

    @property
    def _is_full(self) -> bool:
        return len(self._held) >= self.places or any(each.job.alone for each in self._held.values())

    def _take(self) -> bool:
        queue, free = self.store.service.queue, self.places - len(self._held)
        jobs = queue.take(self.owner, free, self.work.capabilities, self.lease_s, busy=bool(self._held))
        for each in jobs:
            self._begun = True
            stop = Stop()
            future = self._threads.submit(self.work.do, each, stop)
            self._held[each.id] = _Running(each, stop, future)
            future.add_done_callback(lambda _: self._moved.set())
        return bool(jobs)

    def _collect(self) -> None:
        """Forgets what is over. Raises what a thread raised: a mistake of ours, or a lost database."""
        for number, held in list(self._held.items()):
            if not held.future.done():
                continue
            del self._held[number]
            job, accepted = held.job, held.future.result()
            self.done += bool(accepted)
            if accepted is None:
                self.store.service.queue.release(job.id, job.token)
            elif not accepted:
                _LOG.warning("kernelproof: the work on %s came too late and is not stored", job.id)

    def _renew(self) -> None:
        now = time.monotonic()
        waits = self.work.waits
        if now < self._next_renewal and waits == self._told:
            return
        self._told = waits
        self._next_renewal = now + self.lease_s / 6
        held = {number: each.job.token for number, each in self._held.items()}
        lost = self.store.service.queue.renew(self.owner, held, self.lease_s)
        for number in lost:
            each = self._held[number]
            if not each.future.done() and not each.stop.requested:
                _LOG.warning("kernelproof: evaluation %s was cancelled, or its lease was lost", number)
                each.stop.ask()
        self.store.service.workers.report(
            self.owner,
            role=str(self.work.capabilities.role),
            backend=",".join(self.work.capabilities.backends),
            device=self.work.device,
            places=self.places,
            running=len(held),
            done=self.done,
            gpu=self.work.gpu,
            waits=waits,
        )

    def _recover(self) -> None:
        now = time.monotonic()
        if now >= self._next_recovery:
            self._next_recovery = now + LOOK_S
            self.store.service.queue.recover()
