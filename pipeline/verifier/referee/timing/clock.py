"""What the two clocks saw of a round: `kernelproof.verifier.referee.timing.rounds` makes the rounds.

The inner clock is the contestant's own: it times each call (events on a GPU), and a candidate may have bent
it. The outer clock is the referee's: it times whole blocks, from the request until all results are
delivered. Candidate and baseline run the same loop in the same kind of process on the same inputs, so the
difference of their blocks by the outer clock is the difference of their work, whoever reported what:

    outer call of the candidate = call of the baseline + (its block - the baseline's block) / calls

Where its block is the shorter one, what it saves is divided by what other programs stretched the baseline's
calls by (`stretch`). This needs no word of the candidate's. What `timing.claim` makes of
it is the result.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median

from kernelproof.verifier.referee.timing import stats

SHORTEST_MS, LONGEST_MS = 1e-6, 1e9
"""A time of one call outside these (a nanosecond, eleven days) is no time."""
HOST_RELATIVE = 0.10
HOST_ABSOLUTE_MS = 0.1
"""Certainly unseen time of more than 10 % of a call and of the loop's own cost, plus 0.1 ms, is hidden work.

Launches of a forward that wait for the device to go on with its process are honest and unseen: up to 0.1 ms.
"""
BLOCK_COST_MS = 1.0
"""A block may take so many milliseconds beside its calls before it counts as hidden work: waking up,
messages. On two cores the median of honest blocks was 0.37 at most. Only the accusation leaves it out; the
claim counts it."""
FLAGRANT = 3.0
"""A candidate that hides more than so many times the bound in every round is `cheating` after few rounds."""
CONVICTION = 0.004
"""The chance, at most, that noise alone shows more than the bound in the rounds of an honest candidate."""


@dataclass
class Round:
    """One round's times in milliseconds."""

    order: str
    baseline: list[float]
    candidate: list[float]
    host_ms: float
    """The outer clock around the candidate's block, without the referee's own work, and `held_ms`."""
    baseline_host_ms: float
    """The same around the baseline's."""
    session: int = 0
    waited_ms: float = 0.0
    """How long, at most, the candidate's block was kept waiting for a core: see `Watch`."""
    held_ms: float = 0.0
    """Processor time that the candidate used while it was held, from before its inputs were there: by all its
    threads, so that it saved no more than that in its block."""


@dataclass(frozen=True)
class Alone:
    """A block of the baseline's after the candidate was gone, in milliseconds."""

    calls: list[float]
    host_ms: float

    @property
    def beside_ms(self) -> float:
        """What each call costs the loop besides its own time."""
        return (self.host_ms - sum(self.calls)) / len(self.calls)


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
    the median, and the ratio of the two sides would depend on their number. A candidate may do work in it
    for the calls that follow: the outer clock's time holds that work.
    """
    return median(_settled(times))


def stretch(times: Sequence[float]) -> float:
    """How many times as long as undisturbed the calls of a block took: their mean over their median, 1 at
    least.

    Other programs that want the core interrupt some calls. The median leaves them out, the block has all of
    them. The first call is left out here as in `call_ms`: it is cold on both sides, without other programs.
    """
    return max(1.0, fmean(_settled(times)) / call_ms(times))


def _settled(times: Sequence[float]) -> Sequence[float]:
    """All calls of a block but the first; of a single call that one."""
    return times[1:] or times


def log_ratios(rounds: Sequence[Round]) -> list[float]:
    """log(baseline / candidate) of each round by the inner clock; above 0 the candidate is faster."""
    return [math.log(call_ms(r.baseline) / call_ms(r.candidate)) for r in rounds]


def outer_call_ms(r: Round) -> float:
    """One call of the candidate by the outer clock alone: the baseline's, and what its block took longer.

    Waiting for a core stretches a block by a share of its length, and so the difference of two blocks too.
    The baseline's call is a median without waits. So what a shorter block saves is brought to the same
    measure: it is divided by `stretch`. The surplus of a longer block is not. By its error the result may be
    below zero, where calls are short.
    """
    longer = (r.host_ms - r.baseline_host_ms) / len(r.baseline)
    return call_ms(r.baseline) + (longer if longer > 0 else longer / stretch(r.baseline))


def inside_ms(rounds: Sequence[Round]) -> float:
    """One call by the contestant's clock: the median of the blocks'."""
    return median(call_ms(r.candidate) for r in rounds)


def baseline_ms(rounds: Sequence[Round]) -> float:
    """One call of the baseline: the median of the blocks'."""
    return median(call_ms(r.baseline) for r in rounds)


OTHER_TIMES, OTHER_MS = 3.0, 0.05
"""While they are watched, kernels of one stream take at most so many times as long as the call that is timed,
and so much more: a stream runs them one after the other. Clocks that fell make up for a factor of two."""


def other_work(busy: object, calls: int, rounds: Sequence[Round]) -> str:
    """What shows that kernels which a candidate ran while it was watched are not those that were timed.

    `busy`: milliseconds of its busiest stream in a block of so many calls, by its own word."""
    if not rounds:
        return ""
    watched, timed = believable_times([busy], 1)[0] / calls, inside_ms(rounds)
    if not watched > OTHER_TIMES * timed + OTHER_MS:
        return ""
    return f"its kernels took {watched:.3g} ms while they were watched, and a timed call {timed:.3g} ms"


def loop_cost_ms(rounds: Sequence[Round]) -> float:
    """What the loop itself costs for one call (flush, marks, copying out), seen around the baseline."""
    return median((r.baseline_host_ms - sum(r.baseline)) / len(r.baseline) for r in rounds)


def uneven_ms(rounds: Sequence[Round]) -> float:
    """By how much the mean of a block's calls exceeds `call_ms`, the baseline's excess off: the median.

    A call that does the work of the others, the first too, leaves the median of a block alone and shows here.
    """

    def uneven(r: Round) -> float:
        return (fmean(r.candidate) - call_ms(r.candidate)) - (fmean(r.baseline) - call_ms(r.baseline))

    return median(map(uneven, rounds))


def pairs(rounds: Sequence[Round]) -> list[list[Round]]:
    """The rounds of each pair of processes."""
    return [[r for r in rounds if r.session == session] for session in sorted({r.session for r in rounds})]


def _unseen(r: Round) -> float:
    """What one call has on the outer clock beyond the times that were reported for it, and the baseline's
    has not. The accusation leaves out the time in which others had its core, its own threads too, and what it
    used while it was held; the claim counts both."""
    beyond = (r.host_ms - r.waited_ms - r.held_ms - sum(r.candidate)) - (r.baseline_host_ms - sum(r.baseline))
    return (beyond - BLOCK_COST_MS) / len(r.candidate)


def certainly_unseen_ms(rounds: Sequence[Round]) -> float:
    """Time of a call, in most of the blocks, that is certainly on the outer clock and not on the candidate's;
    0 or more. For a verdict on honesty: `BLOCK_COST_MS` of a block is forgiven. Of rounds all of which are
    flagrant it is the least that any of them shows; of others too few for `CONVICTION` nothing is certain."""
    found = [_unseen(r) for r in rounds]
    if flagrant(rounds):
        return min(found)
    return max(0.0, stats.sure_low(found, CONVICTION)) if stats.sure_rank(len(found), CONVICTION) else 0.0


def allowed_unseen_ms(inside_ms: float, loop_ms: float) -> float:
    """Most of such time that is taken for launch, scheduling and copying rather than for hidden work."""
    return (inside_ms + max(0.0, loop_ms)) * HOST_RELATIVE + HOST_ABSOLUTE_MS


def hides_work(rounds: Sequence[Round]) -> bool:
    """Whether, by these rounds, work was certainly hidden."""
    return certainly_unseen_ms(rounds) > allowed_unseen_ms(inside_ms(rounds), loop_cost_ms(rounds))


def mostly_flagrant(rounds: Sequence[Round]) -> bool:
    """Whether most rounds show far more than is allowed. It is no proof: some of them may be disturbed."""
    most = FLAGRANT * allowed_unseen_ms(inside_ms(rounds), loop_cost_ms(rounds))
    return median(map(_unseen, rounds)) > most


def flagrant(rounds: Sequence[Round]) -> bool:
    """Whether each single round shows far more than is allowed: no noise is in all of them, and more of them
    would say the same."""
    most = FLAGRANT * allowed_unseen_ms(inside_ms(rounds), loop_cost_ms(rounds))
    return all(_unseen(r) > most for r in rounds)
