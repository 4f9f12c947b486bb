"""What libraries do for the reference: one call of it, traced as the candidate's is."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any

import torch

from kernelproof.types import VerifySettings
from kernelproof.verifier.contestant.profiling import Watched
from kernelproof.verifier.referee.inputs.problem import LoadedProblem, ProblemError
from kernelproof.verifier.referee.provenance.kernels import TRACE_SECONDS
from kernelproof.verifier.referee.provenance.origins import Evidence
from kernelproof.verifier.referee.provenance.replaced import Works
from kernelproof.verifier.referee.provenance.reports import read_report
from kernelproof.verifier.workers.client import Contestant, ContestantFailed, ContestantGone
from kernelproof.verifier.workers.shared_memory import SharedSlot


class ReferenceTrace:
    """The work of libraries in the reference's call, traced when it is first asked for.

    Kernels on a GPU are traced in the baseline's process, while the candidate's is traced: CUPTI slows the
    process that it is attached to, and must not stay in the referee. Where there is no baseline, and on a
    CPU, the operators are traced here.
    """

    def __init__(
        self,
        loaded: LoadedProblem,
        model: torch.nn.Module,
        settings: VerifySettings,
        baseline: Callable[[], Contestant] | None,
        requests: Executor,
    ) -> None:
        """`baseline`: the process that is asked in `requests`, one request after the other."""
        self._loaded, self._model, self._settings = loaded, model, settings
        self._baseline, self._requests = baseline, requests
        self._works: Works | None = None

    def begin(self, slot: SharedSlot, arguments: list[Any], seed: int) -> Callable[[], Works | None]:
        """Begins to trace a call on these arguments, which the slot holds too. The function that it returns
        waits for the result: None where there is none."""
        if self._works is not None:
            return lambda: self._works
        if self._baseline is not None:
            message = {"op": "profile", "seed": seed, "timed_next": True, **slot.message(baseline=True)}
            asked = self._requests.submit(self._asked, self._baseline, message)
            return lambda: self._keep(asked.result())
        watched = Watched(lambda: self._loaded.run(self._model, arguments, seed), torch.device("cpu"))
        try:
            watched()
        except (ProblemError, torch.OutOfMemoryError):  # it ran before; without it less is known
            return lambda: None
        return lambda: self._keep({"profile": watched.report})

    def _asked(self, baseline: Callable[[], Contestant], message: dict[str, Any]) -> dict[str, Any]:
        seconds = self._settings.call_seconds + TRACE_SECONDS
        try:
            return baseline().ask(message, seconds=seconds)
        except (ContestantFailed, ContestantGone):  # the timing against it finds out
            return {}

    def _keep(self, reply: dict[str, Any]) -> Works | None:
        self._works = read_report(reply, (), Evidence()).works
        return self._works
