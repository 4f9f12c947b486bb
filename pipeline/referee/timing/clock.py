"""The figures of a measurement: what the rounds of `pipeline.referee.timing.rounds` say.

Two clocks see every call: the contestant's (events on a GPU), and the referee's around whole blocks of
secret, varying length. Both sides run the same loop in the same kind of process, so what a further call adds
to the referee's clock beyond the reported times must be the same for both; what it adds for the candidate
alone is work that its own clock did not see. The slower clock is the claim: what is certainly unseen is
added to the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from pipeline.nouns import Interval, Measurement, Pace
from pipeline.referee.timing import stats

SHORTEST_MS, LONGEST_MS = 1e-6, 1e9
"""A time of one call outside these (a nanosecond, eleven days) is no time."""
HOST_RELATIVE = 0.10
HOST_ABSOLUTE_MS = 0.1
"""Certainly unseen time of more than 10 % of a call and of the loop's own cost, plus 0.1 ms, is hidden work.

Launches of a forward that are queued while the cache is emptied are honest and unseen: up to about 0.06 ms.
"""
VOUCHED_RELATIVE, VOUCHED_MS = 0.5, 0.002
"""The outer clock vouches for a call's time when at most half of that may be unseen besides, or 2 µs."""
UNEVEN_RELATIVE, UNEVEN_ABSOLUTE_MS = 0.05, 0.002
"""By so much the mean of a block's calls may exceed one of them without being held against the claim."""
BLOCK_MS = 1.0
"""Most milliseconds that a block of the candidate's may take longer than one of the baseline's, calls apart:
waking up, messages. Of honest ones on two cores the median was 0.37 at most, but on a noisy machine a lower
bound makes the outer clock doubt for much longer. What is forgiven so is no speedup: see `forgiven_ms`."""
FLAGRANT = 3.0
"""Who hides more than so many times the bound in every single round is convicted by few of them."""
BLURRED = 3.0
"""Beyond so many times the bound, with nothing certain, the two clocks are of no use to each other."""
SESSION_SPREAD = {"cuda": (0.004, 0, 0.0002), "cpp": (0.01, stats.CLAIM_SPREADS, 0.002)}
"""What another pair of processes, other addresses and another minute change, by backend: at least this
fraction of the ratio, so many times the device's spread of today, and milliseconds of a call. How far pairs
are apart on a CPU depends on the machine and on who else uses it. Measured; see docs/measurement.md."""
SLOWED = {"cuda": 0.05, "cpp": 0.15}
"""A baseline that is faster by more than this fraction once the candidate is gone counts as fast as then."""
SLOWED_BY_FORCE = 0.5
"""A baseline faster by more than this was disturbed on purpose."""
SLOWED_MS = 0.03
"""And by more than this: launches alone may take so much longer right after a process was let go on."""
CLOSE_CALL = 0.2
"""A log-ratio smaller than this is claimed only when a second pair of processes agrees: of 160 pairs of the
same code on an H200 two were 5 and 9 % apart for as long as they lived (docs/measurement.md)."""
LAUNCH_BOUND_MS = 0.02
"""Below this, launching a kernel takes about as long as the kernel."""


@dataclass
class Round:
    """One round's times in milliseconds."""

    order: str
    baseline: list[float]
    candidate: list[float]
    host_ms: float
    """The referee's clock around the candidate's block."""
    baseline_host_ms: float
    """The same around the baseline's."""
    session: int = 0


def believable_times(value: object, count: int) -> list[float]:
    """The contestant's times as floats in milliseconds; times that cannot be become NaN, never a crash."""
    if not isinstance(value, list) or len(value) != count:
        return [math.nan] * count
    good = [isinstance(v, int | float) and SHORTEST_MS <= v <= LONGEST_MS for v in value]
    return [float(v) if ok else math.nan for v, ok in zip(value, good, strict=True)]


def call_ms(times: Sequence[float]) -> float:
    """One call of a block: the median of all but the first; of a single call that one.

    The first comes right after the process was let go on, with its caches cold, and takes longer to launch:
    by 0.03 to 0.16 ms on an H200 where nothing hides that. Where blocks hold few calls it would be much of
    the median, and the ratio of the two sides depend on how many there are. What a candidate does in it for
    the calls that follow shows in `uneven_ms`.
    """
    return median(times[1:] or times)


def log_ratios(rounds: Sequence[Round]) -> list[float]:
    """log(baseline / candidate) of each round's calls; 0 is equal, above 0 the candidate is faster."""
    return [math.log(call_ms(r.baseline) / call_ms(r.candidate)) for r in rounds]


def inside_ms(rounds: Sequence[Round]) -> float:
    """One call by the contestant's clock: the median of the blocks'."""
    return median(call_ms(r.candidate) for r in rounds)


def baseline_ms(rounds: Sequence[Round]) -> float:
    """One call of the baseline: the median of the blocks'."""
    return median(call_ms(r.baseline) for r in rounds)


def loop_cost_ms(rounds: Sequence[Round]) -> float:
    """What the loop itself costs for one call (flush, marks, copying out), seen around the baseline."""
    return _loop_cost(rounds)[0]


def _loop_cost(rounds: Sequence[Round]) -> tuple[float, Interval]:
    def cost(pair: Sequence[Round]) -> tuple[float, Interval]:
        totals = [(len(r.baseline), r.baseline_host_ms - sum(r.baseline)) for r in pair]
        return stats.two_level_slope(totals, stats.likelihood)

    return stats.mean_of(map(cost, _pairs(rounds)))


def _pairs(rounds: Sequence[Round]) -> list[list[Round]]:
    """The rounds of each pair of processes. What a block costs besides its calls differs from pair to pair,
    and so do the numbers of calls: a slope over the rounds of several would be neither's."""
    return [[r for r in rounds if r.session == session] for session in sorted({r.session for r in rounds})]


def unseen_ms(
    rounds: Sequence[Round], errors: Callable[[int], float] = stats.sureness
) -> tuple[float, Interval]:
    """Time of a call that is on the referee's clock and not on the candidate's, the loop's own cost off:
    estimate, and where it surely lies.

    What each further call adds; or, if that is more, what the longest blocks have beyond `BLOCK_MS`. Of
    several pairs of processes the mean.
    """
    return stats.mean_of(_unseen_of_pair(pair, errors) for pair in _pairs(rounds))


def forgiven_ms(rounds: Sequence[Round]) -> float:
    """What the longest blocks certainly have beside their calls, by call, beyond what is unseen for certain.

    Waking up, if it is honest; or work, by who knows how many calls come and idles in short blocks. So it
    counts in the interval's lower end. Of several pairs of processes the mean.
    """

    def beside(pair: Sequence[Round]) -> float:
        many = max(len(r.candidate) for r in pair)
        longest = [_beyond(r) for r in pair if len(r.candidate) == many]
        return max(0.0, stats.sure_median(longest, stats.likelihood).low / many)

    return max(0.0, fmean(map(beside, _pairs(rounds))) - certainly_unseen_ms(rounds))


def _unseen_of_pair(rounds: Sequence[Round], errors: Callable[[int], float]) -> tuple[float, Interval]:
    totals = [(len(r.candidate), _beyond(r)) for r in rounds]
    slope, sure = stats.two_level_slope(totals, errors)
    # Short blocks that idle until they take as long as long ones have no slope, but all the more beside it.
    many = max(count for count, _ in totals)
    longest = [total - BLOCK_MS for count, total in totals if count == many]
    level, ends = median(longest) / many, stats.sure_median(longest, errors)
    return max(slope, level), Interval(
        low=max(sure.low, ends.low / many), high=max(sure.high, ends.high / many)
    )


def _beyond(r: Round) -> float:
    """What the referee's clock saw of the candidate's block beyond its times, less that of the baseline's."""
    return (r.host_ms - sum(r.candidate)) - (r.baseline_host_ms - sum(r.baseline))


def certainly_unseen_ms(rounds: Sequence[Round]) -> float:
    """The lower end of `unseen_ms`, not below 0: what is added to the candidate's time."""
    return max(0.0, unseen_ms(rounds)[1].low)


def uneven_ms(rounds: Sequence[Round]) -> tuple[float, Interval]:
    """By how much the mean of a block's calls exceeds `call_ms`, the baseline's excess off: estimate, and
    where it surely lies.

    A call that does the work of the others, the first too, leaves that alone and shows here.
    """

    def uneven(r: Round) -> float:
        return (fmean(r.candidate) - call_ms(r.candidate)) - (fmean(r.baseline) - call_ms(r.baseline))

    found = [uneven(r) for r in rounds]
    return median(found), stats.sure_median(found)


def certainly_uneven_ms(rounds: Sequence[Round]) -> float:
    """The lower end of `uneven_ms`, not below 0: this too is added to the candidate's time."""
    return max(0.0, uneven_ms(rounds)[1].low)


def hidden_ms(rounds: Sequence[Round]) -> float:
    """All that certainly belongs to a call beyond its own clock's time."""
    return certainly_unseen_ms(rounds) + certainly_uneven_ms(rounds)


def doubtful_ms(rounds: Sequence[Round], errors: Callable[[int], float] = stats.likelihood) -> float:
    """What may well belong to a call beyond all that certainly does: the claim is as if it did.

    Where the outer clock vouches for the inner one nothing is unseen, else as much as there may be, by this
    many standard `errors`. Where the unevenness is within what honest calls show, nothing; else what its
    estimate is beyond the certain part.
    """
    inside, doubt = inside_ms(rounds), 0.0
    uneven = uneven_ms(rounds)[0]
    if not vouched(rounds):
        doubt += max(0.0, unseen_ms(rounds, errors)[1].high - certainly_unseen_ms(rounds))
    if uneven > UNEVEN_RELATIVE * inside + UNEVEN_ABSOLUTE_MS:
        doubt += max(0.0, uneven - certainly_uneven_ms(rounds))
    return doubt


def doubt(rounds: Sequence[Round], errors: Callable[[int], float] = stats.likelihood) -> float:
    """The same as a log-ratio: by so much it lowers the claim."""
    return math.log1p(doubtful_ms(rounds, errors) / (inside_ms(rounds) + hidden_ms(rounds)))


def allowed_unseen_ms(inside_ms: float, loop_ms: float) -> float:
    """Most of such time that is taken for launch, scheduling and copying rather than for hidden work."""
    return (inside_ms + max(0.0, loop_ms)) * HOST_RELATIVE + HOST_ABSOLUTE_MS


def blurred(rounds: Sequence[Round]) -> bool:
    """Whether the clocks are far apart, with nothing certain."""
    allowed = allowed_unseen_ms(inside_ms(rounds), loop_cost_ms(rounds))
    return unseen_ms(rounds)[0] > BLURRED * allowed


def sharp_around_baseline(rounds: Sequence[Round]) -> bool:
    """Whether the outer clock knows the baseline's blocks well, which alternate with the candidate's: then
    it is no busy machine that blurs it around these."""
    loop, sure = _loop_cost(rounds)
    return sure.high - loop <= allowed_unseen_ms(inside_ms(rounds), loop)


def vouched(rounds: Sequence[Round]) -> bool:
    """Whether the outer clock, as far as it can tell, shows no more than the inner one but what is allowed;
    of a short call no more than half as much again: else its time could be a tenth of the truth.

    Not whether its estimate does: measuring that ends when a noisy clock happens to agree believes whoever
    waits for that. Less than nothing is noise as well. More rounds make it less, and clear who was disturbed.
    """
    unseen, loop, inside = unseen_ms(rounds, stats.likelihood)[1], _loop_cost(rounds)[1], inside_ms(rounds)
    allowed = min(allowed_unseen_ms(inside, loop.low), max(VOUCHED_RELATIVE * inside, VOUCHED_MS))
    return max(unseen.high, -unseen.low) <= allowed


def suspicious(rounds: Sequence[Round]) -> bool:
    """Whether more than what is allowed seems unseen, and it is not certain yet."""
    unseen, sure = unseen_ms(rounds)
    allowed = allowed_unseen_ms(inside_ms(rounds), loop_cost_ms(rounds))
    return unseen > allowed >= sure.low


def hides_work(rounds: Sequence[Round]) -> bool:
    """Whether, by these rounds, work was certainly hidden."""
    return certainly_unseen_ms(rounds) > allowed_unseen_ms(inside_ms(rounds), loop_cost_ms(rounds))


def flagrant(rounds: Sequence[Round]) -> bool:
    """Whether each single round shows far more than is allowed: no noise is in all of them, and more of them
    would say the same."""
    most = FLAGRANT * allowed_unseen_ms(inside_ms(rounds), loop_cost_ms(rounds))
    return all(_beyond(r) - BLOCK_MS > most * len(r.candidate) for r in rounds)


def narrow(rounds: Sequence[Round], half_width: float) -> bool:
    """Whether the interval of the log-ratio is as narrow as was asked for."""
    return stats.half_width(stats.bootstrap_median(log_ratios(rounds))) < half_width


def undecided(told: Measurement) -> bool:
    """Whether only the rounds' own A/A spread forbids to claim a difference: more of them make it less."""
    shown = stats.pace(told.speedup_interval, stats.CLAIM_FLOOR)
    return shown in (Pace.FASTER, Pace.SLOWER) and told.pace is not shown


def close_call(rounds: Sequence[Round], backend: str) -> bool:
    """Whether these rounds show a difference so small that another pair of processes must confirm it."""
    told = conclude(rounds, backend=backend)
    small = abs(math.log(told.speedup)) < CLOSE_CALL
    return small and told.pace in (Pace.FASTER, Pace.SLOWER)


def slowed_by(rounds: Sequence[Round], alone_ms: Sequence[float]) -> float:
    """How much faster the baseline is without the candidate about, as a fraction; 0 or more.

    By the fastest quarter of the rounds: what disturbs now and then leaves that alone, a candidate that
    always disturbs does not.
    """
    if not alone_ms:
        return 0.0
    times, alone = sorted(call_ms(r.baseline) for r in rounds), median(alone_ms)
    beside = times[len(times) // 4]
    return max(0.0, beside / alone - 1) if beside - alone > SLOWED_MS else 0.0


def conclude(
    rounds: Sequence[Round], *, backend: str, alone_ms: Sequence[float] = (), device_spread: float = 0.0
) -> Measurement:
    """The measurement that complete, believable rounds give.

    What is doubtful counts in the claim; the interval reaches up to where it does not, and down to where all
    counts that there surely is at most.

    `alone_ms`: the baseline's blocks after the candidate was gone. `device_spread`: today's A/A spread
    of the device, a fraction.
    """
    ratios, inside, unseen = log_ratios(rounds), inside_ms(rounds), unseen_ms(rounds)
    hidden = hidden_ms(rounds)
    slowed = slowed_by(rounds, alone_ms)
    slowed = slowed if slowed > SLOWED[backend] else 0.0
    correction = math.log(inside / (inside + hidden)) - math.log1p(slowed)
    interval = _log_interval(rounds, backend, inside + hidden, device_spread)
    lowered = doubt(rounds)
    lowest = interval.low + correction - doubt(rounds, stats.sureness)
    lowest -= math.log1p(forgiven_ms(rounds) / (inside + hidden))
    interval = Interval(low=lowest, high=interval.high + correction)
    interval = stats.exponential(interval)
    spread = stats.aa_spread([(len(r.baseline), math.log(call_ms(r.baseline))) for r in rounds])
    smallest = stats.resolution(spread, device_spread)
    return Measurement(
        candidate_ms=(inside + hidden) * math.exp(lowered),
        baseline_ms=baseline_ms(rounds) / (1 + slowed),
        speedup=math.exp(median(ratios) + correction - lowered),
        speedup_interval=interval,
        pace=stats.pace(interval, smallest),
        resolution=smallest,
        aa_spread=spread,
        host_ms=inside + unseen[0],
        inside_ms=inside,
        unseen_ms=hidden,
        overhead_ms=loop_cost_ms(rounds),
        flush_bytes=0,
        slots=max(len(r.candidate) for r in rounds),
        candidate_samples_ms=tuple(tuple(r.candidate) for r in rounds),
        baseline_samples_ms=tuple(tuple(r.baseline) for r in rounds),
        order=tuple(r.order for r in rounds),
        sessions=tuple(r.session for r in rounds),
        calls=tuple(len(r.candidate) for r in rounds),
        launch_bound=backend == "cuda" and inside < LAUNCH_BOUND_MS,
    )


def _log_interval(
    rounds: Sequence[Round], backend: str, candidate_ms: float, device_spread: float
) -> Interval:
    """The interval of the log-ratio: of each pair of processes, widened by what another pair would change;
    of several pairs from the lowest end to the highest, so that pairs that disagree decide nothing."""
    least, times, absolute_ms = SESSION_SPREAD[backend]
    spread = max(least, times * device_spread) + absolute_ms / candidate_ms
    found = []
    for ratios in map(log_ratios, _pairs(rounds)):
        found.append(stats.widened(stats.bootstrap_median(ratios), median(ratios), spread))
    return Interval(low=min(each.low for each in found), high=max(each.high for each in found))
