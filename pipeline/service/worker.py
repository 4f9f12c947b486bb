"""Workers of the evaluation service: the daemon that each is, and the work of its role.

A daemon takes evaluations under leases, works on several, and renews. It may be killed at any moment: what it
had is taken by another daemon when its lease ends. A worker of the role `all` builds and judges. A builder
compiles candidates and publishes them, a failed build, too, and gives no verdict. A judge takes what builders
have built, or what has not to be built.
"""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Protocol

from kernelproof import backends
from kernelproof.choices import Role
from kernelproof.db.attempts import Finished
from kernelproof.db.evaluations import LEASE_S
from kernelproof.db.leases import new_owner
from kernelproof.db.queue import LeasedJob, NoResult, WorkerCapabilities, split_by_build
from kernelproof.db.store import Store
from kernelproof.errors import MachineError, UsageError
from kernelproof.jobs import Job, Judge
from kernelproof.jobs.judge import RETRIES, files_run
from kernelproof.runs.candidates import candidate_from_text
from kernelproof.service.artefacts import (
    ArtefactStore,
    NoArtefact,
    StoreAway,
    build_key,
    fetch,
    is_published,
    publish,
)
from kernelproof.service.gpu_lease import GpuLease
from kernelproof.types import BuildState, Status
from kernelproof.verifier.build import Toolchain
from kernelproof.verifier.devices.discovery import device_for
from kernelproof.verifier.engine.build_stage import Prebuilt
from kernelproof.verifier.engine.engine import Engine
from kernelproof.verifier.engine.referee_process import RefereeLost
from kernelproof.verifier.engine.stop import Stop, Stopped

LOOK_S = 1.0
"""Seconds between two looks into the queue without a notification, and between two looks for lost leases."""
SHARE_S = 0.2
"""Seconds between two looks whether another daemon has next to nothing left, while this one has several."""
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
        self._next_renewal = self._next_recovery = self._next_sharing = 0.0

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
                self._give_up_surplus()
                if self._is_full or self.work.waits is not None:
                    self._moved.wait(STOP_S)
                elif not queue.has_work(self.work.capabilities):
                    look = SHARE_S if self._has_several else LOOK_S
                    listener.wait(min(look, self.lease_s / 6), self.stop)
                elif not self._take():  # the rest is the part of others
                    self._moved.wait(STOP_S)
        finally:
            listener.close()
            self.work.close()
            self._threads.shutdown(wait=True, cancel_futures=True)
            queue.release_all(self.owner, bad_gpu=self.work.bad_gpu)
            workers.end(self.owner)

    @property
    def _has_several(self) -> bool:
        """Whether it has evaluations that another could have."""
        return len(self._held) > 1 and self.work.capabilities.role is not Role.BUILD

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

    def _give_up_surplus(self) -> None:
        """Lets a judge that has nothing left have what no device has begun here, the last one first."""
        now = time.monotonic()
        if not self._has_several or now < self._next_sharing:
            return
        self._next_sharing = now + SHARE_S
        many = self.store.service.queue.surplus(self.owner, self.work.capabilities)
        for each in reversed(self._held.values()):
            if many <= 0:
                break
            each.stop.ask(unless_begun=True)
            many -= each.stop.requested


PAUSE_S, PAUSES_S = 2.0, 60.0
"""Seconds for which a builder takes nothing after a failure of its machine, at first; it doubles up to the
second."""


def buildable(toolchain: Toolchain) -> tuple[str, ...]:
    """The backends whose candidates are built before they run, and for which there is a compiler here."""
    builds, _ = split_by_build(backends.names())
    return tuple(name for name in builds if toolchain.lacks(cuda=backends.backend(name).needs_nvcc) is None)


@dataclass
class BuildWorker:
    """Builds evaluations and publishes what came of it."""

    store: Store
    engine: Engine
    backends: tuple[str, ...]
    artefacts: ArtefactStore
    stop: threading.Event

    def __post_init__(self) -> None:
        self.capabilities = WorkerCapabilities(Role.BUILD, self.backends)
        self.device, self.bad_gpu = "", False
        self.gpu: str | None = None
        self.owner = new_owner()
        self._pause, self._paused_until, self._trouble = PAUSE_S, 0.0, ""

    def goes_on(self, *, begun: bool) -> bool:
        return True

    @property
    def waits(self) -> str | None:
        """The failure of its machine, for a while: others may have a better one."""
        return self._trouble if time.monotonic() < self._paused_until else None

    def close(self) -> None:
        self.engine.close()

    def do(self, job: LeasedJob, stop: Stop) -> bool | None:
        """Builds one and publishes it, unless `stop` is asked, the daemon stops or its machine fails."""
        try:
            artefact = self._artefact(job, stop)
        except (MachineError, NoArtefact) as error:
            if not self.stop.is_set():
                _LOG.warning("kernelproof: %s goes back into the queue: %s", job.id, error)
                self._trouble = str(error)
                self._paused_until = time.monotonic() + self._pause
                self._pause = min(PAUSES_S, 2 * self._pause)
            return None
        except (RefereeLost, Stopped):
            return None
        except Exception:
            if self.stop.is_set():  # the engine was closed under it
                return None
            raise
        self._pause = PAUSE_S
        if self.stop.is_set():  # the engine may have been closed under it
            return None
        return self.store.service.queue.finish_build(job.id, job.token, artefact)

    def _artefact(self, job: LeasedJob, stop: Stop) -> str | None:
        """The key of the judge's artefact; None where there is none. Raises as `build_for_others` does."""
        candidate = candidate_from_text(job.id, job.text, job.problem).extraction.candidate
        if candidate is None:
            return None
        toolchain = self.engine.builds.toolchain
        key = build_key(candidate.source, job.problem, job.settings, toolchain)
        if is_published(key, self.artefacts):
            return key
        prebuilt = self._prebuilt(candidate.source, job, stop)
        if prebuilt is None or not publish(prebuilt, key, toolchain, self.artefacts):
            return None
        return key

    def _prebuilt(self, source: str, job: LeasedJob, stop: Stop) -> Prebuilt | None:
        """The build stage, again where our side failed."""
        for _ in range(RETRIES + 1):
            result = self.engine.builds.build_for_others(source, job.problem, job.settings, stop)
            if result is None or self.stop.is_set():
                break
            builds = (*result.builds, *result.contents.values())
            if not any(build.state is BuildState.INFRASTRUCTURE for build in builds):
                break
        return result


STORE_PATIENCE_S = 60.0
"""Seconds for which a judge waits for an artefact store that is away, before it builds by itself."""
AGAIN_S = 2.0
"""Between two attempts to reach it."""


def backends_here() -> tuple[str, ...]:
    """The backends whose candidates this machine can run."""
    installed = (name for name in backends.names() if backends.backend(name).is_installed)
    return tuple(name for name in installed if device_for(name) is not None)


@dataclass
class JudgeWorker:
    """Verifies evaluations and stores the verdicts; what is published in the artefact store is not built."""

    store: Store
    engine: Engine
    backends: tuple[str, ...]
    gpu_lease: GpuLease | None
    artefacts: ArtefactStore | None
    stop: threading.Event
    role: Role = Role.ALL

    def __post_init__(self) -> None:
        self.capabilities = WorkerCapabilities(self.role, self.backends)
        self.device = ", ".join(sorted({device_for(name) or "" for name in self.backends}))
        self.owner = self.gpu_lease.owner if self.gpu_lease is not None else new_owner()
        self._over = threading.Event()

    def goes_on(self, *, begun: bool) -> bool:
        """Whether it still has its GPU; it needs none where it holds none."""
        return self.gpu_lease is None or self.gpu_lease.look(begun=begun)

    @property
    def waits(self) -> str | None:
        """Why it takes no evaluations now."""
        return None if self.gpu_lease is None else self.gpu_lease.waits

    @property
    def gpu(self) -> str | None:
        """The UUID of its GPU."""
        return None if self.gpu_lease is None else self.gpu_lease.gpu.uuid

    @property
    def bad_gpu(self) -> bool:
        return self.gpu_lease is not None and self.gpu_lease.bad

    def close(self) -> None:
        """Ends referees, and with them every verification."""
        self._over.set()
        self.engine.close()

    def do(self, job: LeasedJob, stop: Stop) -> bool | None:
        """Verifies one, and stores how it ended, unless it is stopped or the GPU is lost."""
        queue, began = self.store.service.queue, time.monotonic()
        try:
            prebuilt = self._prebuilt(job)
        except MachineError as error:
            result: Finished | NoResult | None = self._trouble(error)
        else:
            result = self._result(job, prebuilt, stop)
        if result is None:
            return None
        if self._disturbed(result, began):
            _LOG.warning("kernelproof: %s was timed beside a foreign process; it is judged again", job.id)
            return None
        gpu = None if self.gpu_lease is None else self.gpu_lease.held
        if self.gpu_lease is not None and gpu is None:
            return None
        return queue.finish(job.id, job.token, result, gpu)

    def _disturbed(self, result: Finished | NoResult, began: float) -> bool:
        """Whether it was timed on a GPU on which a foreign process computed meanwhile."""
        if self.gpu_lease is None or isinstance(result, NoResult) or result.verification is None:
            return False
        on_gpu = backends.backend(result.verification.settings.backend).on_gpu
        return (
            on_gpu and result.verification.measurement is not None and self.gpu_lease.disturbed_since(began)
        )

    @property
    def _is_over(self) -> bool:
        """Whether failures now come from the daemon's end, or from its GPU."""
        return (
            self._over.is_set()
            or self.stop.is_set()
            or (self.gpu_lease is not None and not self.gpu_lease.is_fit)
        )

    def _prebuilt(self, job: LeasedJob) -> Prebuilt | None:
        """The published build; None where there is none of use, so that it is built here. Raises
        MachineError."""
        if job.artefact is None or self.artefacts is None:
            return None
        ends = time.monotonic() + STORE_PATIENCE_S
        while True:
            try:
                return fetch(job.artefact, job.settings.backend, self.engine.builds, self.artefacts)
            except StoreAway as error:
                why: Exception = error
                if time.monotonic() < ends and not self._over.wait(AGAIN_S):
                    continue
            except NoArtefact as error:
                why = error
            _LOG.warning("kernelproof: evaluation %s is built here: %s", job.id, why)
            return None

    def _result(self, job: LeasedJob, prebuilt: Prebuilt | None, stop: Stop) -> Finished | NoResult | None:
        """None where it was stopped, or the GPU was lost, before there was a verdict."""
        given = candidate_from_text(job.id, job.text, job.problem)
        judged = Job(given.problem, given.extraction, job.settings)
        try:
            done = Judge(self.engine).judge(judged, stop=stop, prebuilt=prebuilt)
        except UsageError as error:
            return NoResult(str(error), infrastructure=False)
        except MachineError as error:
            return self._trouble(error)
        except Stopped:
            return None
        except Exception:
            if self._is_over:  # the engine was closed under it
                return None
            raise
        if done.status is Status.INFRASTRUCTURE_ERROR and self._is_over:
            return None
        run = files_run(job.settings, job.label)
        return Finished(run, given.problem, given.response, done.extraction, done.verification, done.status)

    def _trouble(self, error: MachineError) -> NoResult | None:
        return None if self._is_over else NoResult(str(error), infrastructure=True)
