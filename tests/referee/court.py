"""A referee process for tests: started once, and again after a candidate that took it down."""

from __future__ import annotations

from pathlib import Path

import psutil

from pipeline.build import learn_toolchain
from pipeline.execution.devices import chosen_gpu
from pipeline.execution.referee_process import RefereeLost, RefereeProcess
from pipeline.nouns import Verification
from pipeline.referee.request import VerifyRequest


class Court:
    """Judges requests; `scratch` is the temporary directory its processes were started with."""

    def __init__(self, cache: Path, scratch: Path) -> None:
        self._cache, self._scratch = cache, scratch
        self._toolchain = learn_toolchain(cache)
        self._referee: RefereeProcess | None = None
        self._ahead = False

    def __enter__(self) -> Court:
        return self

    def __exit__(self, *_: object) -> None:
        self._dismiss()

    def judge(self, request: VerifyRequest, *, ahead: bool = False) -> Verification:
        """The verdict. `ahead`: processes for the next request come up meanwhile, and `left_over` names them.

        Raises RefereeLost.
        """
        if self._ahead and not ahead:
            self._dismiss()
        self._ahead = ahead
        if self._referee is None:
            self._referee = RefereeProcess(self._cache, chosen_gpu())
        try:
            return self._referee.verify(request, self._toolchain, more=ahead)
        except RefereeLost:
            self._dismiss()
            raise

    def _dismiss(self) -> None:
        """Ends the referee and what it keeps ready."""
        if self._referee is not None:
            self._referee.close()
        self._referee = None

    def left_over(self) -> list[str]:
        """Files, and processes of contestants, that are still there. Empty when all is as it should be."""
        files = [str(path) for path in self._scratch.iterdir()]
        return files + [f"process {p.pid}" for p in psutil.process_iter() if self._lives_in_scratch(p)]

    def _lives_in_scratch(self, process: psutil.Process) -> bool:
        try:
            return process.environ().get("HOME", "").startswith(str(self._scratch))
        except psutil.Error:  # gone meanwhile, or another user's
            return False
