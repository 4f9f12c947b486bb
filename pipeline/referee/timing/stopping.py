"""When a measurement has rounds enough: narrow enough to say what it shows, or late, and the clocks agree."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pipeline.referee.timing import claim, clock, stats
from pipeline.types import Measurement, Pace, VerifySettings

MIN_ROUNDS, LATE_ROUNDS = 8, 4
"""Fewer rounds are never enough; when time is up, the second."""
SURE_ROUNDS = 24
"""Where the outer clock refutes the inner one, so many are measured, so that what is hidden is well known."""
PATIENCE_SECONDS = 20.0
"""The outer clock may take this much longer to reach what the inner one shows than was allowed."""
PATIENCE_SHARE = 1.0
"""But no more than this share of what was allowed. As long is waited for a difference that only the rounds'
own spread forbids to claim: at its power cap a GPU changes its clock from call to call."""
FAR_SLOWER = 0.1
"""Below this its blocks hold fewer calls, too, and what only a claim would need is left out: decoys, another
look at its kernels, probes. Such calls are long, and hold the device."""
SPREAD_WIDTHS = 2.0
"""So many half-widths the baseline's blocks may be apart, where nothing is claimed. An interval that is
narrow beside more than that may be so by chance, and to call the two sides the same would say little."""


def enough(
    rounds: Sequence[clock.Round], settings: VerifySettings, seconds: float, *, trusted: bool = False
) -> bool:
    """Whether to stop after these rounds, all of one pair of processes, which took `seconds`.

    Where the outer clock falls short of what the inner one shows by more than the half-width aimed at, and
    more rounds may bring it there, more time is used: what it does not reach is not claimed. `trusted`: the
    inner clock is believed.
    """
    most, half_width = settings.most_seconds, settings.half_width
    longer = most + min(PATIENCE_SECONDS, most * PATIENCE_SHARE)
    late = seconds > most
    if clearly_slower(rounds):
        return True
    if len(rounds) < (LATE_ROUNDS if late else MIN_ROUNDS):
        return False
    if not trusted and clock.flagrant(rounds) and clock.hides_work(rounds):
        return True
    narrow = stats.half_width(stats.bootstrap_median(clock.log_ratios(rounds))) < half_width
    if not (narrow or late):
        return False
    told = claim.reached(rounds, settings.backend)
    measured = claim.conclude(rounds, backend=settings.backend, trusted=trusted, told=told)
    if seconds <= longer and claim.undecided(measured):
        return False
    if not late and _says_little(measured, half_width):
        return False
    if trusted or told.shortfall <= half_width or seconds > longer:
        return True
    return told.refuted and len(rounds) >= SURE_ROUNDS


def clearly_slower(rounds: Sequence[clock.Round]) -> bool:
    """Whether every round, by the candidate's own clock, shows a speedup far below 1."""
    return len(rounds) >= LATE_ROUNDS and max(clock.log_ratios(rounds)) < math.log(claim.CLEARLY_SLOWER)


def far_slower(rounds: Sequence[clock.Round]) -> bool:
    """Whether every round shows so small a speedup that nothing a candidate could save would make a claim."""
    return bool(rounds) and max(clock.log_ratios(rounds)) < math.log(FAR_SLOWER)


def _says_little(told: Measurement, half_width: float) -> bool:
    """Whether no difference is shown by rounds that could not show much of one."""
    return told.pace in (Pace.SAME, Pace.UNRESOLVED) and told.aa_spread > SPREAD_WIDTHS * half_width
