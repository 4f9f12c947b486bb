"""A referee process for tests: started once, and again after a candidate that took it down."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from kernelproof.problems import open_suite
from kernelproof.types import Problem, Verification, VerifySettings
from kernelproof.types.verification import VerifyRequest
from kernelproof.verifier.build import learn_toolchain
from kernelproof.verifier.engine.referee_process import RefereeLost, RefereeProcess
from kernelproof.verifier.engine.referees import Referees


class Court:
    """Judges requests. `scratch` is the temporary directory of its processes, and of nobody else's."""

    def __init__(self, cache: Path, scratch: Path) -> None:
        self._cache, self._scratch = cache, scratch
        self._toolchain = learn_toolchain(cache)
        self._referees = Referees(cache)
        self._ahead: RefereeProcess | None = None

    def __enter__(self) -> Court:
        return self

    def __exit__(self, *_: object) -> None:
        self._referees.close()

    @property
    def others(self) -> tuple[int, ...]:
        """The cores for all that is not timed; empty: all."""
        return self._referees.others

    def judge(self, request: VerifyRequest, *, ahead: bool = False) -> Verification:
        """The verdict. `ahead`: processes for the next request come up meanwhile, and `left_over` names them.

        Raises RefereeLost.
        """
        if self._ahead is not None and not ahead:
            self._referees.replace(self._ahead)
            self._ahead = None
        with self._own_folder(), self._referees.reserved(request.device) as referee:
            cores = self._referees.shares_of(referee, request.device)
            self._ahead = referee if ahead else None
            try:
                return referee.verify(request, self._toolchain, more=ahead, cores=cores)
            except RefereeLost:
                self._referees.replace(referee)
                self._ahead = None
                raise

    def verdict(self, source: str, problem: Problem | str, **settings: Any) -> Verification:
        """The verdict on a source for a problem, or a packaged one's id: one trial on a CPU, not timed."""
        chosen = open_suite().find(problem) if isinstance(problem, str) else problem
        plain = {
            "backend": "cpp",
            "size": "small" if "small" in chosen.sizes else "full",
            "trials": 1,
            "own_kernel": False,
            "measure": False,
            "threads": 1,
        }
        wanted = VerifySettings.model_validate(plain | settings)
        return self.judge(VerifyRequest(problem=chosen, source=source, settings=wanted, device="cpu"))

    @contextmanager
    def _own_folder(self) -> Iterator[None]:
        """Only meanwhile: processes that other tests start have files of their own."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TMPDIR", str(self._scratch))
            yield

    def left_over(self) -> list[str]:
        """Files, and processes of contestants, that are still there. Empty when all is as it should be."""
        files = [str(path) for path in self._scratch.iterdir()]
        return files + [f"process {p.pid}" for p in psutil.process_iter() if self._lives_in_scratch(p)]

    def _lives_in_scratch(self, process: psutil.Process) -> bool:
        try:
            return process.environ().get("HOME", "").startswith(str(self._scratch))
        except psutil.Error:  # gone meanwhile, or another user's
            return False
