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

    def goes_on(self, *, begun: bool) -> bool:
        return True

    def do(self, job: LeasedJob, stop: Stop) -> bool | None:
        with stop.by(self.stopped[job.id].set):
            self.begun[job.id].set()
            self.stopped[job.id].wait()
        return None

    def close(self) -> None:
        for each in list(self.stopped.values()):
            each.set()


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
