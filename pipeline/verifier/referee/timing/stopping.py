"""When measuring ends: the rounds of one pair of processes, the pairs of one candidate.

`StoppingRule` makes these decisions, and holds their numbers with the reasons for them. Rounds end when their
interval is narrow enough to say what it shows and both clocks agree, or when time is up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from kernelproof.types import Measurement, Pace, Rigor, VerifySettings
from kernelproof.verifier.referee.timing import claim, clock, pace, stats

FAR_SLOWER = 0.1
"""A speedup below this. Blocks hold fewer calls then, and steps are left out that only a claim would need:
decoys, another look at the kernels, probes. Such calls are long, and hold the device."""


class Stop(StrEnum):
    """Why no more rounds are made."""

    CLEARLY_SLOWER = "the candidate is clearly slower in every round"
    BELOW_BAR = "the candidate is surely slower than the best of its search"
    HIDES_WORK = "the candidate hides far more than is allowed in every round"
    RESOLVED = "the interval is narrow, and the outer clock bears it out"
    REFUTED = "the outer clock surely falls short of the inner one"
    TIME_UP = "the time is up"
    MOST_ROUNDS = "there are as many rounds as may be"


@dataclass(frozen=True)
class StoppingRule:
    """Decides for one candidate and its settings. All numbers but the first six are the same for all."""

    backend: str
    half_width: float
    """Aimed at: half the width of the speedup's 95 % interval, as a fraction."""
    most_seconds: float
    """Allowed for the timed rounds of one pair of processes."""
    pairs: int
    """Pairs of processes that are measured, at least."""
    confirms: bool
    """Whether a close call is confirmed by one more pair."""
    trusted: bool = False
    """Whether the inner clock is believed: the candidate is a baseline of ours."""
    bar: float = 0.0
    """A speedup that is surely below this needs not be known further: a search has found a better one."""
    min_rounds: int = 8
    """The fewest rounds. With fewer than eight the outer clock's bound errs more often than it promises."""
    late_rounds: int = 4
    """When time is up, so few are. They also show that a candidate is clearly slower."""
    most_rounds: int = 200
    """Measuring ends after so many rounds, however much time is left."""
    sure_rounds: int = 24
    """Where the outer clock refutes the inner one, so many are measured: hidden work is well known then."""
    patience_seconds: float = 20.0
    """The outer clock may take this much longer than was allowed to reach what the inner one shows."""
    patience_share: float = 1.0
    """The further time is at most this share of the time allowed. It is also spent where only the rounds' own
    spread forbids a claim: at its power cap a GPU changes its clock from call to call."""
    spread_widths: float = 2.0
    """Where nothing is claimed, the baseline's blocks may be so many half-widths apart. An interval that is
    narrow beside a greater spread may be narrow by chance, and `same` would say little."""
    close_call: float = 0.1
    """A claim whose interval begins closer to 1 than this log-ratio must be confirmed by a second pair of
    processes: of 160 pairs of the same code on an H200 two were 5 and 9 % apart for as long as they lived
    (docs/rationale/measurement.md). A larger claim may change its figure with such a pair, in 5 % of the
    cases at most, and not its pace."""

    @classmethod
    def of(cls, settings: VerifySettings, *, trusted: bool = False) -> StoppingRule:
        """The rule that these settings ask for."""
        return cls(
            backend=settings.backend,
            half_width=settings.half_width,
            most_seconds=settings.most_seconds,
            pairs=settings.rigor.sessions,
            confirms=settings.rigor is not Rigor.QUICK,
            trusted=trusted,
            bar=0.0 if trusted else settings.bar or 0.0,
        )

    def decide(self, rounds: Sequence[clock.Round], seconds: float) -> Stop | None:
        """Why to stop after these rounds, all of one pair of processes, which took `seconds`; None: go on.

        Where the outer clock falls short of the inner one by more than the half-width aimed at, and more
        rounds may bring it there, more time is used: a speedup that it does not reach is not claimed.
        """
        late = seconds > self.most_seconds
        if self.is_clearly_slower(rounds):
            return Stop.CLEARLY_SLOWER
        if self.is_below_bar(rounds):
            return Stop.BELOW_BAR
        if len(rounds) < (self.late_rounds if late else self.min_rounds):
            return None
        if not self.trusted and clock.flagrant(rounds) and clock.hides_work(rounds):
            return Stop.HIDES_WORK
        if self._needs_proof(rounds, seconds):
            return None
        narrow = stats.half_width(stats.bootstrap_median(clock.log_ratios(rounds))) < self.half_width
        if narrow or late:
            stop = self._agreed(rounds, seconds, late)
            if stop is not None:
                return stop
        return Stop.MOST_ROUNDS if len(rounds) >= self.most_rounds else None

    def may_stop_after(self, rounds: int) -> bool:
        """Whether so many may be enough where time is not up, and the candidate not clearly slower."""
        return rounds >= self.min_rounds

    def _agreed(self, rounds: Sequence[clock.Round], seconds: float, late: bool) -> Stop | None:
        """Why to stop once the interval is narrow or the time is up, by both clocks; None: go on."""
        out_of_patience = seconds > self.most_seconds + min(
            self.patience_seconds, self.most_seconds * self.patience_share
        )
        reach = claim.reached(rounds, self.backend)
        measured = claim.conclude(rounds, backend=self.backend, trusted=self.trusted, reach=reach)
        if not out_of_patience and pace.undecided(measured):
            return None
        if not late and self._says_little(measured):
            return None
        if self.trusted or reach.shortfall <= self.half_width:
            return Stop.TIME_UP if late else Stop.RESOLVED
        if out_of_patience:
            return Stop.TIME_UP
        return Stop.REFUTED if reach.refuted and len(rounds) >= self.sure_rounds else None

    def _needs_proof(self, rounds: Sequence[clock.Round], seconds: float) -> bool:
        """Whether most rounds show that work is hidden, and more of them may prove it.

        On a busy machine time is up after few rounds, some of them disturbed. More rounds are then
        needed to prove it.
        """
        if self.trusted or len(rounds) >= self.sure_rounds:
            return False
        if seconds > self.most_seconds + self.patience_seconds:
            return False
        return clock.mostly_flagrant(rounds) and not clock.hides_work(rounds)

    def is_clearly_slower(self, rounds: Sequence[clock.Round]) -> bool:
        """Whether every round, by the candidate's own clock, shows a speedup far below 1."""
        if len(rounds) < self.late_rounds:
            return False
        return max(clock.log_ratios(rounds)) < math.log(pace.CLEARLY_SLOWER)

    def is_below_bar(self, rounds: Sequence[clock.Round]) -> bool:
        """Whether the speedup's interval, by the candidate's own clock, lies below the bar.

        With as few rounds as `late_rounds` it reaches from the lowest to the highest of them, and further.
        """
        if not self.bar or len(rounds) < self.late_rounds:
            return False
        return claim.reached(rounds, self.backend).inner_interval.high < math.log(self.bar)

    def is_far_slower(self, rounds: Sequence[clock.Round]) -> bool:
        """Whether every round shows so small a speedup that no saving of the candidate would make a claim."""
        return bool(rounds) and max(clock.log_ratios(rounds)) < math.log(FAR_SLOWER)

    def wants_pair(self, number: int, rounds: Sequence[clock.Round]) -> bool:
        """Whether a pair of processes of this number, counted from 0, should follow the pairs that made these
        rounds: the rigor asks for it, or the first pair was a close call."""
        if self.is_below_bar(rounds):
            return False
        if number < self.pairs:
            return True
        return number <= 1 and self.confirms and self.is_close_call(rounds)

    def is_close_call(self, rounds: Sequence[clock.Round]) -> bool:
        """Whether these rounds show a difference so small that another pair of processes must confirm it."""
        measurement = claim.conclude(rounds, backend=self.backend)
        if measurement.pace is Pace.FASTER:
            return math.log(measurement.speedup_interval.low) < self.close_call
        return (
            measurement.pace is Pace.SLOWER and math.log(measurement.speedup_interval.high) > -self.close_call
        )

    def _says_little(self, measurement: Measurement) -> bool:
        """Whether no difference is shown by rounds that could not show much of one."""
        wide = measurement.aa_spread > self.spread_widths * self.half_width
        return measurement.pace in (Pace.SAME, Pace.UNRESOLVED) and wide
