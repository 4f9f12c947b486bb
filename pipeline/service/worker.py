"""The work of workers and judges: an evaluation's verdict.

A worker builds and judges. A judge takes what builders have built, or what has not to be built.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass

from kernelproof import backends
from kernelproof.choices import Role
from kernelproof.db.evaluation_records import NoResult, Taken, Wanted
from kernelproof.db.finished import Finished
from kernelproof.db.owners import new_owner
from kernelproof.db.store import Store
from kernelproof.errors import MachineError, UsageError
from kernelproof.jobs import Job, Judge
from kernelproof.jobs.job import files_run
from kernelproof.runs.candidates import given_text
from kernelproof.service.artefact_store import ArtefactStore, StoreAway
from kernelproof.service.artefacts import NoArtefact, fetch
from kernelproof.service.held_gpu import HeldGpu
from kernelproof.types import Status
from kernelproof.verifier.devices.discovery import device_for
from kernelproof.verifier.engine.engine import Engine
from kernelproof.verifier.engine.prebuild import Prebuilt
from kernelproof.verifier.engine.stop import Stop, Stopped

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
class Judging:
    """Verifies evaluations and stores the verdicts; what is published in the artefact store is not built."""

    store: Store
    engine: Engine
    backends: tuple[str, ...]
    held_gpu: HeldGpu | None
    """The GPU that it measures on, which it holds."""
    artefacts: ArtefactStore | None
    stop: threading.Event
    role: Role = Role.ALL

    def __post_init__(self) -> None:
        self.wanted = Wanted(self.role, self.backends)
        self.device = ", ".join(sorted({device_for(name) or "" for name in self.backends}))
        self.owner = self.held_gpu.owner if self.held_gpu is not None else new_owner()
        self._over = threading.Event()

    def goes_on(self, *, begun: bool) -> bool:
        """Whether it still has its GPU; it needs none where it holds none."""
        return self.held_gpu is None or self.held_gpu.look(begun=begun)

    @property
    def waits(self) -> str | None:
        """Why it takes no evaluations now."""
        return None if self.held_gpu is None else self.held_gpu.waits

    @property
    def gpu(self) -> str | None:
        """The UUID of its GPU."""
        return None if self.held_gpu is None else self.held_gpu.gpu.uuid

    @property
    def bad_gpu(self) -> bool:
        """Whether its GPU was set aside."""
        return self.held_gpu is not None and self.held_gpu.bad

    def close(self) -> None:
        """Ends referees, and with them every verification."""
        self._over.set()
        self.engine.close()

    def do(self, taken: Taken, stop: Stop) -> bool | None:
        """Verifies one, and stores how it ended, unless it is stopped or the GPU is lost."""
        takings, began = self.store.service.takings, time.monotonic()
        try:
            prebuilt = self._prebuilt(taken)
        except MachineError as error:
            result: Finished | NoResult | None = self._trouble(error)
        else:
            result = self._result(taken, prebuilt, stop)
        if result is None:
            return None
        if self._disturbed(result, began):
            _LOG.warning("kernelproof: %s was timed beside a foreign process; it is judged again", taken.id)
            return None
        gpu = None if self.held_gpu is None else self.held_gpu.lease
        if self.held_gpu is not None and gpu is None:
            return None
        return takings.finish(taken.id, taken.token, result, gpu)

    def _disturbed(self, result: Finished | NoResult, began: float) -> bool:
        """Whether it was timed on a GPU on which a foreign process computed meanwhile."""
        if self.held_gpu is None or isinstance(result, NoResult) or result.verification is None:
            return False
        on_gpu = backends.backend(result.verification.settings.backend).on_gpu
        return on_gpu and result.verification.measurement is not None and self.held_gpu.disturbed_since(began)

    @property
    def _is_over(self) -> bool:
        """Whether failures now come from the daemon's end, or from its GPU."""
        return (
            self._over.is_set()
            or self.stop.is_set()
            or (self.held_gpu is not None and not self.held_gpu.is_fit)
        )

    def _prebuilt(self, taken: Taken) -> Prebuilt | None:
        """The published build; None where there is none of use, so that it is built here. Raises
        MachineError."""
        if taken.artefact is None or self.artefacts is None:
            return None
        ends = time.monotonic() + STORE_PATIENCE_S
        while True:
            try:
                return fetch(taken.artefact, taken.settings.backend, self.engine.builds, self.artefacts)
            except StoreAway as error:
                why: Exception = error
                if time.monotonic() < ends and not self._over.wait(AGAIN_S):
                    continue
            except NoArtefact as error:
                why = error
            _LOG.warning("kernelproof: evaluation %s is built here: %s", taken.id, why)
            return None

    def _result(self, taken: Taken, prebuilt: Prebuilt | None, stop: Stop) -> Finished | NoResult | None:
        """None where it was stopped, or the GPU was lost, before there was a verdict."""
        given = given_text(taken.id, taken.text, taken.problem)
        job = Job(given.problem, given.extraction, taken.settings)
        try:
            done = Judge(self.engine).judge(job, stop=stop, prebuilt=prebuilt)
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
        run = files_run(taken.settings, taken.label)
        return Finished(run, given.problem, given.response, done.extraction, done.verification, done.status)

    def _trouble(self, error: MachineError) -> NoResult | None:
        return None if self._is_over else NoResult(str(error), infrastructure=True)
