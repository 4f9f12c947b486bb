"""What the rounds of a measurement gave."""

from __future__ import annotations

from dataclasses import dataclass, field

from kernelproof.types import ErrorStatistics
from kernelproof.verifier.referee.environment import Readings
from kernelproof.verifier.referee.timing.clock import Alone, Round
from kernelproof.verifier.referee.timing.stopping import Stop


@dataclass
class Timed:
    """What the rounds gave; `failure` names the check that ended them early."""

    rounds: list[Round] = field(default_factory=list)
    disturbed: list[str] = field(default_factory=list)
    """Why rounds were thrown away."""
    notes: list[str] = field(default_factory=list)
    """Notes of the watch over the blocks that made no block worthless: things seen, and things it cannot
    see."""
    power_capped: int = 0
    """Rounds after which the power cap limited the clocks."""
    checked_calls: int = 0
    stop: Stop | None = None
    """Why no more rounds were made; None where a check failed."""
    failure: str | None = None
    bad: ErrorStatistics | None = None
    alone: dict[int, list[Alone]] = field(default_factory=dict)
    """The baseline's blocks after a pair's candidate was gone, by the pair's number."""
    before: Readings = field(default_factory=dict)
    after: Readings = field(default_factory=dict)

    def found(self, bad: ErrorStatistics | None) -> None:
        """Takes down an output that is wrong, if it is the first failure."""
        if bad is not None and self.failure is None:
            self.failure, self.bad = "timed_outputs", bad
