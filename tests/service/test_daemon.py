"""A daemon and what it holds: a real queue, and work that lasts until it is stopped."""

from __future__ import annotations

import threading
from collections import defaultdict
from dataclasses import dataclass, field

from kernelproof import backends
from kernelproof.choices import Role
from kernelproof.db.queue import LeasedJob, WorkerCapabilities
from kernelproof.db.store import Store
from kernelproof.service.worker import Daemon
from kernelproof.verifier.engine.stop import Stop
from tests.db.test_queue import item
from tests.service.test_launchers import until

LIMIT_S = 60.0
"""For what takes well under a second."""


@dataclass
class UntilStopped:
    """Work on an evaluation that ends only when it is asked to."""

    capabilities: WorkerCapabilities = field(
        default_factory=lambda: WorkerCapabilities(Role.ALL, tuple(backends.names()))
    )
    device: str = "cpu"
    owner: str = "a daemon"
    gpu: str | None = None
    bad_gpu: bool = False
    waits: str | None = None
    begun: defaultdict[str, threading.Event] = field(default_factory=lambda: defaultdict(threading.Event))
    """By the evaluation's id."""
    stopped: defaultdict[str, threading.Event] = field(default_factory=lambda: defaultdict(threading.Event))
    closed: bool = False

    def goes_on(self, *, begun: bool) -> bool:
        return True

    def do(self, job: LeasedJob, stop: Stop) -> bool | None:
        with stop.by(self.stopped[job.id].set):
            self.begun[job.id].set()
            while not (self.closed or self.stopped[job.id].wait(0.01)):
                pass
        return None

    def close(self) -> None:
        self.closed = True  # for those, too, that have not begun yet


def test_what_is_cancelled_is_stopped_and_its_place_is_free_again(store: Store) -> None:
    evaluations = store.service.evaluations
    [first] = evaluations.submit("ana", [item()], most=10)
    work = UntilStopped()
    daemon = Daemon(store, work, places=1, lease_s=0.6)
    thread = threading.Thread(target=daemon.run)
    thread.start()
    try:
        assert work.begun[first.id].wait(LIMIT_S)
        evaluations.cancel(first.id)
        assert work.stopped[first.id].wait(LIMIT_S), "nobody told the work that its evaluation was cancelled"
        [second] = evaluations.submit("ana", [item()], most=10)
        assert work.begun[second.id].wait(LIMIT_S), "the place is not free again"
    finally:
        daemon.stop.set()
        thread.join(LIMIT_S)
    assert not thread.is_alive()
    ended, back = evaluations.get(first.id), evaluations.get(second.id)
    assert ended is not None and ended.state == "cancelled"
    assert back is not None and (back.state, back.losses) == ("queued", 0), "its end in order was a loss"


@dataclass
class OneDevice(UntilStopped):
    """Work that waits for the device, which has one evaluation at a time."""

    given: list[str] = field(default_factory=list)
    device_lock: threading.Lock = field(default_factory=threading.Lock)

    def do(self, job: LeasedJob, stop: Stop) -> bool | None:
        self.given.append(job.id)
        while not self.device_lock.acquire(timeout=0.01):
            if stop.requested:
                return None
        try:
            stop.begin()
            return super().do(job, stop)
        finally:
            self.device_lock.release()


def test_a_judge_with_nothing_left_gets_what_another_has_not_begun(store: Store) -> None:
    store.service.evaluations.submit("ana", [item() for _ in range(4)], most=10)
    works = [OneDevice(owner="busy"), OneDevice(owner="idle")]
    daemons = [Daemon(store, work, places=4) for work in works]
    threads = [threading.Thread(target=daemon.run) for daemon in daemons]
    busy, idle = works
    try:
        threads[0].start()
        until(lambda: len(busy.given) == 4 and busy.begun, "it has not all, or none is on its device")
        [first] = busy.begun
        threads[1].start()
        until(lambda: len(idle.given) == 2, "it did not get two of them")
        assert first not in idle.given and set(idle.given) < set(busy.given)
        assert not busy.stopped[first].is_set(), "what was on its device was given up"
        assert len(busy.given) == 4, "it took back what it had given up"
    finally:
        for daemon, thread in zip(daemons, threads, strict=True):
            daemon.stop.set()
            thread.join(LIMIT_S)
    assert not any(thread.is_alive() for thread in threads)
