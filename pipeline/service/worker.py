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

POLL_S = 0.05
"""Seconds between two looks into the queue while there are free places."""
_LOG = logging.getLogger("kernelproof.service")


def backends_here() -> tuple[str, ...]:
    """The backends whose candidates this machine can run."""
    return tuple(name for name in backends.names() if device_for(name) is not None)


@dataclass
class Worker:
    """One engine, and the evaluations that it has. `run` returns when `stop` is set."""

    store: Store
    engine: Engine
    backends: tuple[str, ...]
    places: int = field(default_factory=places)
    """Evaluations between build and verdict at once."""
    lease_s: float = LEASE_S
    stop: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.owner = new_owner()
        self.done = 0
        self._held: dict[str, tuple[Taken, Future[None]]] = {}
        self._threads = ThreadPoolExecutor(self.places, thread_name_prefix="evaluation")
        self._renewed = 0.0

    def run(self) -> None:
        """Works until `stop` is set; then what it has goes back into the queue. Raises StoreError."""
        try:
            while not self.stop.is_set():
                self._collect()
                self._renew()
                if not self._take():
                    self.stop.wait(POLL_S)
        finally:
            self.stop.set()
            self.engine.close()  # ends what the threads wait for
            self._threads.shutdown(wait=True, cancel_futures=True)
            self.store.service.evaluations.give_back(self.owner)
            self.store.service.workers.end(self.owner)

    def _take(self) -> bool:
        """Whether there was anything to take."""
        free = self.places - len(self._held)
        if free <= 0 or not self.store.service.evaluations.has_work(self.backends):
            return False
        taken = self.store.service.evaluations.take(self.owner, free, self.backends, self.lease_s)
        for each in taken:
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
        if now - self._renewed < self.lease_s / 6:
            return
        self._renewed = now
        held = {number: taken.token for number, (taken, _) in self._held.items()}
        lost = self.store.service.evaluations.renew(self.owner, held, self.lease_s)
        for number in lost & {number for number, (_, future) in self._held.items() if not future.done()}:
            _LOG.warning("kernelproof: evaluation %s was cancelled, or its lease was lost", number)
        facts = {"places": self.places, "running": len(held), "done": self.done}
        device = ", ".join(sorted({device_for(name) or "" for name in self.backends}))
        self.store.service.workers.report(self.owner, backend=",".join(self.backends), device=device, **facts)

    def _one(self, taken: Taken) -> None:
        """Verifies one, and stores how it ended, unless the worker stops."""
        result = self._result(taken)
        if result is None:
            return
        if self.store.service.evaluations.finish(taken.id, taken.token, result):
            self.done += 1
        else:
            _LOG.warning("kernelproof: the verdict on %s came too late and is not stored", taken.id)

    def _result(self, taken: Taken) -> Finished | NoResult | None:
        """None where the worker was stopped before there was a verdict."""
        given = given_text(taken.id, taken.text, taken.problem)
        try:
            done = verify_given(given, taken.settings, self.engine, verify=verify_persistently)
        except UsageError as error:
            return NoResult(str(error), infrastructure=False)
        except MachineError as error:
            return None if self.stop.is_set() else NoResult(str(error), infrastructure=True)
        except Exception:
            if self.stop.is_set():  # the engine was closed under it
                return None
            raise
        run = run_of(taken.settings, taken.label)
        return Finished(run, given.problem, given.response, done.extraction, done.verification, done.status)
