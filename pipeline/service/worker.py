"""A worker of the evaluation service: takes evaluations from the queue, verifies them, stores the verdicts.

It may be killed at any moment: what it had is taken by another worker when its lease ends.
"""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

from kernelproof import backends
from kernelproof.db.evaluation_records import LEASE_S, NoResult, Taken
from kernelproof.db.finished import Finished
from kernelproof.db.owners import new_owner
from kernelproof.db.store import Store
from kernelproof.devices.discovery import device_for
from kernelproof.engine.engine import Engine
from kernelproof.errors import MachineError, UsageError
from kernelproof.runs.candidates import given_text
from kernelproof.runs.single import run_of, verify_given
from kernelproof.runs.stream import places, verify_persistently
from kernelproof.service.seat import Seat
from kernelproof.types import Status

POLL_S = 0.05
"""Seconds between two looks into the queue while there are free places."""
_LOG = logging.getLogger("kernelproof.service")


def backends_here() -> tuple[str, ...]:
    """The backends whose candidates this machine can run."""
    return tuple(name for name in backends.names() if device_for(name) is not None)


@dataclass
class Worker:
    """One engine, and the evaluations that it has. `run` returns when `stop` is set, or the GPU is lost."""

    store: Store
    engine: Engine
    backends: tuple[str, ...]
    places: int = field(default_factory=places)
    """Evaluations between build and verdict at once."""
    lease_s: float = LEASE_S
    stop: threading.Event = field(default_factory=threading.Event)
    seat: Seat | None = None
    """The GPU that it measures on, which it holds."""

    def __post_init__(self) -> None:
        self.owner = self.seat.owner if self.seat is not None else new_owner()
        self.done = 0
        self._begun = False
        self._over = threading.Event()
        self._device = ", ".join(sorted({device_for(name) or "" for name in self.backends}))
        self._held: dict[str, tuple[Taken, Future[None]]] = {}
        self._threads = ThreadPoolExecutor(self.places, thread_name_prefix="evaluation")
        self._renewed = 0.0
        self._told: str | None = None
        """Of `_waits`, what its last sign of life said."""

    def run(self) -> None:
        """Works until `stop` is set, or its GPU is lost or set aside; then what it has goes back into the
        queue. Raises StoreError."""
        try:
            while not self.stop.is_set() and self._has_gpu():
                self._collect()
                self._renew()
                if self._waits or not self._take():
                    self.stop.wait(POLL_S)
        finally:
            self._over.set()
            self.engine.close()  # ends what the threads wait for
            self._threads.shutdown(wait=True, cancel_futures=True)
            bad = self.seat is not None and self.seat.bad
            self.store.service.evaluations.give_back(self.owner, bad_gpu=bad)
            self.store.service.workers.end(self.owner)

    def _has_gpu(self) -> bool:
        """Whether it still has its GPU; it needs none where it has no seat."""
        return self.seat is None or self.seat.look(begun=self._begun)

    @property
    def _waits(self) -> str | None:
        """Why it takes no evaluations now."""
        return None if self.seat is None else self.seat.waits

    def _take(self) -> bool:
        """Whether there was anything to take."""
        free = self.places - len(self._held)
        if free <= 0 or not self.store.service.evaluations.has_work(self.backends):
            return False
        taken = self.store.service.evaluations.take(self.owner, free, self.backends, self.lease_s)
        for each in taken:
            self._begun = True
            self._held[each.id] = each, self._threads.submit(self._one, each)
        return bool(taken)

    def _collect(self) -> None:
        """Forgets what is over. Raises what a thread raised: a mistake of ours, or a lost database."""
        for number, (_, future) in list(self._held.items()):
            if future.done():
                del self._held[number]
                future.result()

    def _renew(self) -> None:
        now = time.monotonic()
        if now - self._renewed < self.lease_s / 6 and self._told == self._waits:
            return
        self._renewed, self._told = now, self._waits
        held = {number: taken.token for number, (taken, _) in self._held.items()}
        lost = self.store.service.evaluations.renew(self.owner, held, self.lease_s)
        for number in lost & {number for number, (_, future) in self._held.items() if not future.done()}:
            _LOG.warning("kernelproof: evaluation %s was cancelled, or its lease was lost", number)
        facts: dict[str, str | int | None] = {
            "backend": ",".join(self.backends),
            "device": self._device,
            "places": self.places,
            "running": len(held),
            "done": self.done,
        }
        if self.seat is not None:
            self.seat.report(**facts)
        else:
            self.store.service.workers.report(self.owner, **facts)

    def _one(self, taken: Taken) -> None:
        """Verifies one, and stores how it ended, unless the worker stops or loses its GPU."""
        began = time.monotonic()
        result = self._result(taken)
        if result is None:
            return
        if self._disturbed(result, began):
            _LOG.warning("kernelproof: %s was timed beside a foreign process; it is judged again", taken.id)
            self.store.service.evaluations.hand_back(taken.id, taken.token)
            return
        gpu = None if self.seat is None else self.seat.lease
        if self.seat is not None and gpu is None:
            return
        if self.store.service.evaluations.finish(taken.id, taken.token, result, gpu):
            self.done += 1
        else:
            _LOG.warning("kernelproof: the verdict on %s came too late and is not stored", taken.id)

    def _disturbed(self, result: Finished | NoResult, began: float) -> bool:
        """Whether it was timed on a GPU on which a foreign process computed meanwhile."""
        if self.seat is None or isinstance(result, NoResult) or result.verification is None:
            return False
        on_gpu = backends.backend(result.verification.settings.backend).on_gpu
        return on_gpu and result.verification.measurement is not None and self.seat.disturbed_since(began)

    @property
    def _is_over(self) -> bool:
        """Whether failures now come from the worker's end, or from its GPU."""
        return self._over.is_set() or self.stop.is_set() or (self.seat is not None and not self.seat.is_fit)

    def _result(self, taken: Taken) -> Finished | NoResult | None:
        """None where the worker was stopped, or lost its GPU, before there was a verdict."""
        given = given_text(taken.id, taken.text, taken.problem)
        try:
            done = verify_given(given, taken.settings, self.engine, verify=verify_persistently)
        except UsageError as error:
            return NoResult(str(error), infrastructure=False)
        except MachineError as error:
            return None if self._is_over else NoResult(str(error), infrastructure=True)
        except Exception:
            if self._is_over:  # the engine was closed under it
                return None
            raise
        if done.status is Status.INFRASTRUCTURE_ERROR and self._is_over:
            return None
        run = run_of(taken.settings, taken.label)
        return Finished(run, given.problem, given.response, done.extraction, done.verification, done.status)
