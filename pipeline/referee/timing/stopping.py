"""When a measurement has rounds enough: narrow enough to say what it shows, or late, and the clocks agree."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.nouns import Measurement, Pace, VerifySettings
from pipeline.referee.timing import clock

MIN_ROUNDS, LATE_ROUNDS = 8, 4
"""Fewer rounds are never enough; when time is up, the second."""
SURE_ROUNDS = 24
"""No candidate is said to hide work by fewer rounds than this, unless every one of them shows it."""
PATIENCE_SECONDS = 20.0
"""The outer clock may take this much longer to vouch for the inner one than was allowed."""
PATIENCE_SHARE = 1.5
"""With `SURE_ROUNDS` it may take only this share of what was allowed longer: what is doubtful then counts in
the claim, also in that of an honest one. As long is waited for a difference that only the rounds' own spread
forbids to claim: at its power cap a GPU changes its clock from call to call."""

SPREAD_WIDTHS = 2.0
"""So many half-widths the baseline's blocks may be apart, where nothing is claimed. An interval that is
narrow beside more than that may be so by chance, and to call the two sides the same would say little."""


def enough(rounds: Sequence[clock.Round], settings: VerifySettings, seconds: float) -> bool:
    """Whether to stop after these rounds, all of one pair of processes, which took `seconds`.

    Where the outer clock seems to see more than the inner one, or may see so much that the claim would
    suffer, the whole time is used: what is certain then convicts, and what is not is less.
    """
    most, half_width = settings.most_seconds, settings.half_width
    longer, longest = most * (1 + PATIENCE_SHARE), most + PATIENCE_SECONDS
    late = seconds > most
    if len(rounds) < (LATE_ROUNDS if late else MIN_ROUNDS):
        return False
    if len(rounds) >= MIN_ROUNDS and clock.flagrant(rounds) and clock.hides_work(rounds):
        return True
    narrow = clock.narrow(rounds, half_width)
    if not (narrow or late):
        return False
    told = clock.conclude(rounds, backend=settings.backend)
    if seconds <= min(longer, longest) and clock.undecided(told):
        return False
    if not late and _says_little(told, half_width):
        return False
    if clock.vouched(rounds) or seconds > longest:
        return True
    if len(rounds) < SURE_ROUNDS:
        return False
    if seconds > longer:
        return True
    return narrow and not clock.suspicious(rounds) and clock.doubt(rounds) < half_width


def _says_little(told: Measurement, half_width: float) -> bool:
    """Whether no difference is shown by rounds that could not show much of one."""
    return told.pace in (Pace.SAME, Pace.UNRESOLVED) and told.aa_spread > SPREAD_WIDTHS * half_width
