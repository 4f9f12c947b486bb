"""The best attempt of a search so far, and when the search has gone on without a better one for too long."""

from __future__ import annotations

from collections.abc import Sequence

from kernelproof.runs.strategies.base import Proposal, Result, Task
from kernelproof.types import Stage, Status
from kernelproof.wording import counted

CLEARLY = 1.01
"""How much faster a program must be to count as an improvement: less is within the noise of most clocks."""


class BestSoFar:
    """Told of every result. It says which is best, and whether to stop."""

    def __init__(self, task: Task, patience: int) -> None:
        """`patience`: attempts without an improvement, after a correct one, that end the search."""
        self._timed, self._patience = task.timed, patience
        self.best: Result | None = None
        """The correct result with the highest lower end of its interval; of equal ones the first."""
        self.since = 0
        """Attempts since the last improvement."""
        self._mark = 0.0

    def tell(self, results: Sequence[Result]) -> None:
        """Takes up the results of a round."""
        for result in results:
            self.since += self.best is not None
            if result.correct and (self.best is None or result.speedup > self.best.speedup):
                if self.best is None or result.speedup > self._mark * CLEARLY:
                    self.since, self._mark = 0, result.speedup
                self.best = result

    @property
    def note(self) -> str:
        """Why the search is over; empty when it is not."""
        if self.best is None:
            return ""
        if not self._timed:
            return "a correct program is there, and nothing is timed"
        if self.since >= self._patience:
            return f"no improvement in {counted(self.since, 'attempt')}"
        return ""


class Search:
    """A strategy that looks for a fast program: it ends when it gets no better."""

    template = "basic-v4"
    races = True

    def __init__(self, task: Task, patience: int) -> None:
        """`patience`: as `BestSoFar` has it."""
        self._best_so_far = BestSoFar(task, patience)

    @property
    def note(self) -> str:
        """Why it is over; empty when it is not."""
        return self._best_so_far.note

    @property
    def _base(self) -> Proposal:
        """The question about the best program; the problem's first one where there is none."""
        best = self._best_so_far.best
        return Proposal(best.turn, history=False) if best else Proposal()


def closeness(result: Result) -> int:
    """How far an attempt came: the higher, the less is left to repair."""
    if result.status in _ALMOST:
        return 5
    return _REACHED[result.status.stage]


_ALMOST = (Status.WRONG_OUTPUT, Status.NONDETERMINISTIC, Status.MUTATED_INPUT)
_REACHED = {
    Stage.PROVIDER: 0,
    Stage.EXTRACTION: 0,
    Stage.TIMING: 1,  # a cheat: what it does has to go
    Stage.POLICY: 2,
    Stage.BUILD: 3,
    Stage.CORRECTNESS: 4,
    Stage.DONE: 6,
}
