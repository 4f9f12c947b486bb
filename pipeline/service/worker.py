"""The work of workers, judges and builders.

A worker builds and judges. A builder compiles candidates and publishes them, a failed build, too, and
gives no verdict. A judge takes what builders have built, or what has not to be built.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass

from kernelproof import backends
from kernelproof.choices import Role
from kernelproof.db.attempts import Finished
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
_LOG = logging.getLogger("kernelproof.service")


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
