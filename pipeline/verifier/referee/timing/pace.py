"""The verdict of a timing: faster, slower, the same, or unresolved, and why.

`claim.conclude` calls `pace_of_rounds`. `pace_of` reads the interval of the speedup; what the rounds give
reason to doubt is unresolved, whatever the interval says (`pace_unless`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median

from kernelproof.types import Interval, Measurement, Pace, Rigor
from kernelproof.verifier.referee.timing import clock, stats
from kernelproof.verifier.referee.timing.clock import Alone, Round

CLAIM_FLOOR = 0.01
"""No difference below 1 % is claimed, however quiet the machine seems."""
CLAIM_SPREADS = 3
"""No difference below so many times the spread of A against A is claimed."""
SAME_WITHIN = 0.05
"""Beyond 5 % nothing is called the same, however little the machine can tell apart: it is unresolved, or
slower."""
WIDEST = {Rigor.QUICK: 0.25, Rigor.STANDARD: 0.15, Rigor.PUBLISH: 0.10}
"""Half-width of the log-ratio's interval beyond which a measurement of this rigor decides nothing."""
MUCH_SLOWED = 0.5
"""A baseline that is slower by more than this in every pair of processes was disturbed: `unresolved`."""
SLOWED_MS = 0.03
"""And by more than this: launches may take so much longer right after a process continues."""
MODES_APART, MODE_SHARE, MODE_WIDTHS = 0.05, 0.2, 6.0
"""The baseline has two modes when its blocks fall into two groups, each at least this share of them, whose
medians are this fraction and so many times their own spread apart."""
CLEARLY_SLOWER = 0.5
"""Below this speedup the last per cent does not matter: the fewest rounds are enough, however wide, and modes
of the baseline or what disturbed it decide nothing. Blocks of one call and of two may look like modes."""


def pace_of_rounds(
    rounds: Sequence[Round],
    alone: Mapping[int, Sequence[Alone]],
    logs: Interval,
    resolution: float,
    highest: float,
    rigor: Rigor,
) -> tuple[Pace, str]:
    """The pace, and why it is unresolved; empty for any other.

    `rounds`: as they were measured; `alone`: the baseline's blocks alone, by the number of the
    pair; `logs`: the interval of the log-ratio; `resolution` and `highest`: as `pace_of` takes them.
    """
    doubts = doubts_about(rounds, alone, stats.exponential(logs))
    return pace_unless(doubts, logs, resolution, highest, rigor)


def pace_unless(
    doubts: Sequence[str], logs: Interval, resolution: float, highest: float, rigor: Rigor
) -> tuple[Pace, str]:
    """As `pace_of_rounds`, of an interval of the log-ratio, with what there is to doubt about its rounds."""
    interval, width = stats.exponential(logs), stats.half_width(logs)
    widest = math.inf if surely_slower(resolution, highest) else WIDEST[rigor]
    if width > widest:
        wide = f"half of its interval is {100 * width:.3g} % wide, {100 * widest:.3g} % is allowed"
        doubts = [*doubts, wide]
    because = "; ".join(filter(None, (unresolved_because(interval, resolution, highest), *doubts)))
    return Pace.UNRESOLVED if doubts else pace_of(interval, resolution, highest), because


def resolution_of(*spreads: float) -> float:
    """Smallest relative difference that is claimed: max(1 %, 3 times every A/A spread)."""
    return max(CLAIM_FLOOR, *(CLAIM_SPREADS * spread for spread in spreads))


def pace_of(interval: Interval, resolution: float, highest: float | None = None) -> Pace:
    """What an interval of the speedup allows to say. `resolution`: of `resolution_of`. `highest`: the upper
    end by either clock; the interval's where that is None.

    What neither clock shows as fast as what may be `same` is `slower`, however great the A/A spread is: that
    earns nothing, so the promise of the intervals is enough. All else has to exceed the A/A spread.
    """
    if interval.low > 1 + resolution:
        return Pace.FASTER
    if interval.high < 1 / (1 + resolution) or surely_slower(resolution, highest or interval.high):
        return Pace.SLOWER
    near = min(resolution, SAME_WITHIN)
    inside = interval.low >= 1 / (1 + near) and interval.high <= 1 + near
    return Pace.SAME if inside else Pace.UNRESOLVED


def surely_slower(resolution: float, highest: float) -> bool:
    """Whether a speedup of at most `highest` is below 1 and all that may be `same`."""
    return highest < 1 / (1 + min(resolution, SAME_WITHIN))


def unresolved_because(interval: Interval, resolution: float, highest: float | None = None) -> str:
    """Why `pace_of` calls this interval unresolved; empty where it does not."""
    if pace_of(interval, resolution, highest) is not Pace.UNRESOLVED:
        return ""
    if interval.low <= 1 <= interval.high:
        return "its interval holds 1"
    if math.isinf(resolution):
        return "there are too few rounds to know the A/A spread"
    claimed = resolution
    if interval.high < 1 and not surely_slower(resolution, interval.high):
        claimed = min(resolution, SAME_WITHIN)
    why = f": the A/A spread is {100 * resolution / CLAIM_SPREADS:.3g} %" if resolution > CLAIM_FLOOR else ""
    return f"no difference below {100 * claimed:.3g} % is claimed{why}"


def doubts_about(
    rounds: Sequence[Round], alone: Mapping[int, Sequence[Alone]], interval: Interval
) -> list[str]:
    """Why these rounds tell no pace, whatever their `interval` of the speedup says."""
    if interval.high <= CLEARLY_SLOWER:
        return []
    found = ["the baseline's blocks fall into two groups"] if two_modes(rounds) else []
    if much_slowed(rounds, alone):
        found.append("the baseline was much slower beside it than alone")
    return found


def two_modes(rounds: Sequence[Round]) -> bool:
    """Whether the baseline's blocks fall into two groups, so that a ratio to it says little.

    They are parted where their sorted times are furthest apart.
    """
    logs = sorted(math.log(clock.call_ms(r.baseline)) for r in rounds)
    least = max(2, math.ceil(MODE_SHARE * len(logs)))
    if len(logs) < 2 * least:
        return False
    cut = max(range(least, len(logs) - least + 1), key=lambda n: logs[n] - logs[n - 1])
    lower, upper = logs[:cut], logs[cut:]
    spread = max(stats.deviation(lower), stats.deviation(upper))
    apart = median(upper) - median(lower)
    return apart > max(MODES_APART, MODE_WIDTHS * spread)


def undecided(measurement: Measurement) -> bool:
    """Whether only the rounds' own A/A spread forbids to claim a difference: more of them make it less."""
    shown = pace_of(measurement.speedup_interval, CLAIM_FLOOR)
    return shown in (Pace.FASTER, Pace.SLOWER) and measurement.pace is not shown


def much_slowed(rounds: Sequence[Round], alone: Mapping[int, Sequence[Alone]]) -> bool:
    """Whether even the fastest quarter of the baseline's blocks was much slower beside the candidate than
    after it was gone, in every pair of processes after which the baseline was measured alone.

    The candidate may be the cause, or other work on the machine, so this is no accusation.
    """
    slowed = [
        slowed_by([r for r in rounds if r.session == n], found, rank=0.25) for n, found in alone.items()
    ]
    return bool(slowed) and min(slowed) > MUCH_SLOWED


def slowed_by(rounds: Sequence[Round], alone: Sequence[Alone], *, rank: float = 0.5) -> float:
    """How much slower the baseline was beside the candidate than alone, as a fraction; 0 or more.

    The median of the rounds is compared, as it enters the ratio. A verdict on honesty uses another `rank`: an
    occasional disturbance leaves the fastest quarter (0.25) as it was, a candidate that always disturbs does
    not.
    """
    if not alone:
        return 0.0
    times = sorted(clock.call_ms(r.baseline) for r in rounds)
    beside, known = times[int(rank * len(times))], median(clock.call_ms(block.calls) for block in alone)
    return max(0.0, beside / known - 1) if beside - known > SLOWED_MS else 0.0
