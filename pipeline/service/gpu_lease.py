"""The one GPU of a judge: the lease on it in the database, and what the driver says of it.

Beneath it stays the host's lock (`verifier.devices.locks`), which every kernelproof process on the
machine takes to measure. The lease tells judges of the whole cluster apart that see the same GPU; the look
through NVML shows programs that know of neither.
"""

from __future__ import annotations

import platform
import threading
import time
from collections.abc import Callable

from kernelproof.db.evaluations import LEASE_S
from kernelproof.db.gpus import LeasedGpu, StoredGpu
from kernelproof.db.leases import new_owner
from kernelproof.db.store import Store
from kernelproof.verifier.devices import gpu_health, locks
from kernelproof.verifier.devices.discovery import Gpu, environment_for, known_against, restore
from kernelproof.verifier.devices.gpu_watch import GpuWatch, Stranger

LOOK_S = 1.0
"""Seconds between two looks at the GPU."""


class GpuLease:
    """The GPU that a judge holds or waits for. Used by one thread, but for `disturbed_since` and `is_fit`."""

    def __init__(self, store: Store, gpu: Gpu, lease_s: float = LEASE_S) -> None:
        self.gpu, self.owner = gpu, new_owner()
        self.held: LeasedGpu | None = None
        """None before the GPU is held, and after it was lost."""
        self.waits: str | None = None
        """Why the judge takes no evaluations now."""
        self.bad = False
        """Whether the GPU was set aside while the judge held it."""
        self._store, self._lease_s = store, lease_s
        self._watch = GpuWatch(gpu.uuid)
        self._looked = self._renewed = 0.0
        self._strangers: tuple[Stranger, ...] = ()
        self._disturbed = 0.0

    def enter(self, stop: threading.Event, say: Callable[[str], None]) -> bool:
        """Waits until this judge holds the GPU, and nothing is known against it. False when `stop` is set.

        `say` gets a sentence whenever there is another reason to wait.
        """
        while not stop.is_set():
            waits = self._entered(stop)
            if waits is None:
                self.waits, self.bad, self._strangers, self._looked = None, False, (), 0.0
                return True
            if waits != self.waits:
                say(f"waiting for {self.gpu}: {waits}")
                self.waits = waits
            self._store.service.workers.report(
                self.owner,
                role="judge",
                gpu=self.gpu.uuid,
                waits=waits,
                backend="",
                device="",
                places=0,
                running=0,
                done=0,
            )
            stop.wait(LOOK_S)
        return False

    def look(self, *, begun: bool) -> bool:
        """Renews the lease, and looks at the GPU, each when it is time. Whether the judge still has the GPU.

        `begun`: whether the judge may have processes on it. Afterwards `waits` says whether to take work.
        """
        if time.monotonic() - self._looked < LOOK_S:
            return self.held is not None
        self._look(begun)
        if self.held is not None and time.monotonic() - self._renewed >= self._lease_s / 6:
            self._renewed = time.monotonic()
            if not self._store.service.gpus.renew(self.held, self._lease_s):
                self.held = None
        return self.held is not None

    def leave(self) -> None:
        if self.held is not None:
            self._store.service.gpus.give_back(self.held)
            self.held = None
        self._watch.close()

    def disturbed_since(self, moment: float) -> bool:
        """Whether a foreign process was seen on the GPU after `moment` (`time.monotonic()`)."""
        return self._disturbed >= moment

    @property
    def is_fit(self) -> bool:
        """Whether this host knows nothing against the GPU."""
        return known_against(self.gpu.uuid) is None

    def _look(self, begun: bool) -> None:
        record = known_against(self.gpu.uuid)
        fault = record.reason if record is not None else self._watch.fault()
        if fault is not None:
            self._set_aside(fault)
        seen = self._watch.strangers(alone=not begun)
        self._looked = time.monotonic()
        if seen:
            self._disturbed = self._looked
        # A process of ours that is about to end may have lost its parent: the next look does not see it.
        known, self._strangers = self._strangers, seen
        strangers = [str(each) for each in seen if not begun or each in known]
        self.waits = f"{', '.join(strangers)} computes on {self.gpu.uuid}" if strangers else None

    def _set_aside(self, reason: str) -> None:
        self._store.service.gpus.set_aside(self.gpu.uuid, reason)
        self.held, self.bad = None, True

    def _entered(self, stop: threading.Event) -> str | None:
        """None once the GPU is held; else why it is not."""
        took = self._store.service.gpus.take(
            self.gpu.uuid, self.owner, name=self.gpu.name, host=platform.node(), lease_s=self._lease_s
        )
        if isinstance(took, StoredGpu):
            return _why(took)
        self.held, self._renewed = took, time.monotonic()
        self._watch.close()  # a GPU that was reset needs a new handle
        record = known_against(self.gpu.uuid)
        if not took.unproven and record is not None:
            self._set_aside(record.reason)
            return f"it is set aside: {record.reason}"
        fault = self._watch.fault() or (self._unproven(took, stop) if took.unproven else None)
        if fault is not None:
            self._set_aside(fault)
            return f"it is set aside: {fault}"
        return None

    def _unproven(self, lease: LeasedGpu, stop: threading.Event) -> str | None:
        """Asks the canary, while the lease is renewed; None when all is right, or when the judge stops."""
        found: list[str | None] = []

        def ask() -> None:
            with locks.held(self.gpu.uuid):
                found.append(gpu_health.check("cuda:0", environment=environment_for(self.gpu)))

        asking = threading.Thread(target=ask, name="canary", daemon=True)
        asking.start()
        while asking.is_alive() and not stop.is_set():
            asking.join(LOOK_S)
            self._store.service.gpus.renew(lease, self._lease_s)
        if not found:
            return None if stop.is_set() else "the canary could not be asked after it was put back"
        trouble = found[0]
        if trouble is not None:
            return f"it failed the canary after it was put back: {trouble}"
        trouble = restore(self.gpu.uuid)
        if trouble is None:
            self._store.service.gpus.prove(lease)
        return trouble


def _why(gpu: StoredGpu) -> str:
    if gpu.state == "set aside":
        return f"it is set aside: {gpu.reason}"
    process = (gpu.owner or "").split(":")[1:2]
    return f"process {''.join(process)} on {gpu.host} has it"
