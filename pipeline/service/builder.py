"""The work of builders: candidates are compiled and published, so that judges need only measure.

A builder gives no verdict. A failed build is published as well, and a judge says what it means.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass

from kernelproof import backends
from kernelproof.choices import Role
from kernelproof.db.evaluation_records import Taken, Wanted, split
from kernelproof.db.owners import new_owner
from kernelproof.db.store import Store
from kernelproof.errors import MachineError
from kernelproof.jobs.judge import RETRIES
from kernelproof.runs.candidates import given_text
from kernelproof.service.artefact_store import ArtefactStore
from kernelproof.service.artefacts import NoArtefact, build_key, is_published, publish
from kernelproof.types import BuildState
from kernelproof.verifier.build import Toolchain
from kernelproof.verifier.engine.engine import Engine
from kernelproof.verifier.engine.prebuild import Prebuilt
from kernelproof.verifier.engine.referee_process import RefereeLost
from kernelproof.verifier.engine.stop import Stop, Stopped

PAUSE_S, PAUSES_S = 2.0, 60.0
"""Seconds for which a builder takes nothing after a failure of its machine, at first; it doubles up to the
second."""
_LOG = logging.getLogger("kernelproof.service")


def buildable(toolchain: Toolchain) -> tuple[str, ...]:
    """The backends whose candidates are built before they run, and for which there is a compiler here."""
    builds, _ = split(backends.names())
    return tuple(name for name in builds if toolchain.lacks(cuda=backends.backend(name).needs_nvcc) is None)


@dataclass
class Building:
    """Builds evaluations and publishes what came of it."""

    store: Store
    engine: Engine
    backends: tuple[str, ...]
    artefacts: ArtefactStore
    stop: threading.Event

    def __post_init__(self) -> None:
        self.wanted = Wanted(Role.BUILD, self.backends)
        self.device, self.bad_gpu = "", False
        self.gpu: str | None = None
        self.owner = new_owner()
        self._pause, self._paused_until, self._trouble = PAUSE_S, 0.0, ""

    def goes_on(self, *, begun: bool) -> bool:
        """Always."""
        return True

    @property
    def waits(self) -> str | None:
        """The failure of its machine, for a while: others may have a better one."""
        return self._trouble if time.monotonic() < self._paused_until else None

    def close(self) -> None:
        """Ends the compilers."""
        self.engine.close()

    def do(self, taken: Taken, stop: Stop) -> bool | None:
        """Builds one and publishes it, unless `stop` is asked, the daemon stops or its machine fails."""
        try:
            artefact = self._artefact(taken, stop)
        except (MachineError, NoArtefact) as error:
            if not self.stop.is_set():
                _LOG.warning("kernelproof: %s goes back into the queue: %s", taken.id, error)
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
        return self.store.service.takings.built(taken.id, taken.token, artefact)

    def _artefact(self, taken: Taken, stop: Stop) -> str | None:
        """The key of the judge's artefact; None where there is none. Raises as `made_for_others` does."""
        candidate = given_text(taken.id, taken.text, taken.problem).extraction.candidate
        if candidate is None:
            return None
        toolchain = self.engine.builds.toolchain
        key = build_key(candidate.source, taken.problem, taken.settings, toolchain)
        if is_published(key, self.artefacts):
            return key
        prebuilt = self._prebuilt(candidate.source, taken, stop)
        if prebuilt is None or not publish(prebuilt, key, toolchain, self.artefacts):
            return None
        return key

    def _prebuilt(self, source: str, taken: Taken, stop: Stop) -> Prebuilt | None:
        """The build stage, again where our side failed."""
        for _ in range(RETRIES + 1):
            result = self.engine.builds.made_for_others(source, taken.problem, taken.settings, stop)
            if result is None or self.stop.is_set():
                break
            builds = (*result.builds, *result.contents.values())
            if not any(build.state is BuildState.INFRASTRUCTURE for build in builds):
                break
        return result
