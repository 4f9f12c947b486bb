"""What may be claimed of a candidate's speed, whatever it did to its own clock.

**Theorem.** Let a round's outer time be its candidate's call over its baseline's, both by the outer clock
(`clock.outer_call_ms`), and the truth the ratio of the work that both do. Assume that (1) all of a block's
work is done between its request and the delivery of its results: its inputs are new, and the candidate is
held still at other times; (2) the outer clock's error in it is independent from round to round and symmetric
about zero: it is the difference between two blocks of processes that are alike, and where other programs want
the core, they stretch both blocks by the share that they stretch the baseline's calls by (`clock.stretch`);
(3) the baseline's blocks exceed those that it has alone by no more than `bounded` lets through. Then whatever
the candidate does in a round (hide work, do it in the first call, idle, report any times) leaves the outer
time alone or makes it longer. So it makes none of the rounds' order statistics and Walsh averages smaller,
and the bound that the sign test and Wilcoxon's signed-rank test leave above the truth's time is below it with
a chance of `RISK` at most (`stats.sure_centre`). The claim is at most `REACH` times its inverse: beyond
`REACH` times the truth it lies with no more than that chance at each look. Of fewer than eight rounds the
worst is the bound, which errs with a chance of 2^-n: so few are kept only of a candidate that is clearly
slower, or where time was up. Nothing else is assumed of how errors are distributed, and corrections are never
sums of separate statistics, so there is no mixture that several of them each forgive.

The inner clock sharpens the claim: within what the outer clock reaches, the median of its ratios is the
estimate, with a bootstrap interval. Where the outer clock does not reach that, its own bound is the claim.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from kernelproof import backends
from kernelproof.backends import Timing
from kernelproof.types import Interval, Measurement, Rigor
from kernelproof.verifier.referee.timing import clock, stats
from kernelproof.verifier.referee.timing.clock import Alone, Round
from kernelproof.verifier.referee.timing.pace import pace_of_rounds, resolution_of

REACH = 1.015
"""A claim is at most so many times what the outer clock alone surely shows."""
RISK = 0.01
"""Chance that the outer clock's bound is beyond the truth, at one look. A measurement is looked at several
times; simulated over all looks it is below 0.025 (tests/referee/timing/test_mixtures.py)."""
SINGLE_SHARE, SINGLE_MS = 0.15, 0.3
"""A call that is alone in its block may take this share of the baseline's call, and so many milliseconds,
longer than one among others: it comes to cold caches."""
_LEAST = 1e-6
"""Of a baseline's call: no candidate takes less."""
LAUNCH_BOUND_MS = 0.02
"""Below this, launching a kernel takes about as long as the kernel."""


def timing_of(backend: str) -> Timing:
    """How the times of this backend are taken and judged."""
    return backends.backend(backend).timing


@dataclass(frozen=True)
class Reached:
    """What both clocks say of the log-ratio, of all pairs of processes together."""

    inner: float
    """The median by the inner clock."""
    inner_interval: Interval
    outer: Interval
    """Where the outer clock alone surely has it."""

    @property
    def bound(self) -> float:
        """The most that may be claimed."""
        return self.outer.low + math.log(REACH)

    @property
    def shortfall(self) -> float:
        """By how much the outer clock falls short of the inner one's estimate; 0 or more."""
        return max(0.0, self.inner - self.bound)

    @property
    def refuted(self) -> bool:
        """Whether it surely falls short, however long one measures."""
        return self.outer.high + math.log(REACH) < self.inner

    @property
    def estimate(self) -> float:
        """The claim."""
        return min(self.inner, self.bound)

    @property
    def interval(self) -> Interval:
        """Of the claim: the inner clock's, down to what may be claimed at most if that is less, and up to the
        outer clock's where that refutes the other."""
        high = self.outer.high if self.refuted else self.inner_interval.high
        return Interval(low=min(self.inner_interval.low, self.bound), high=max(high, self.estimate))


def bounded(rounds: Sequence[Round], alone: Mapping[int, Sequence[Alone]], backend: str) -> list[Round]:
    """The rounds, with the baseline in each no slower than it is alone, apart from the slack.

    `alone`: its blocks after a pair's candidate was gone, by the pair's number. A call counts with
    the backend's `alone_slack` times the median alone at most, and what a call costs its loop besides with
    `loop_slack` times: alone that is a tenth less, beside honest candidates too. A candidate that is held can
    have the device's copy engines work on, which slows the loop and leaves the calls alone.
    """
    return [_bounded(r, alone.get(r.session) or (), timing_of(backend)) for r in rounds]


def _bounded(r: Round, alone: Sequence[Alone], timing: Timing) -> Round:
    if not alone:
        return r
    most = timing.alone_slack * median(clock.call_ms(block.calls) for block in alone)
    calls = [min(1.0, most / clock.call_ms(r.baseline)) * ms for ms in r.baseline]
    loop = r.baseline_host_ms - sum(r.baseline)
    if timing.loop_slack is not None:
        loop = min(loop, timing.loop_slack * median(block.beside_ms for block in alone) * len(calls))
    return replace(r, baseline=calls, baseline_host_ms=loop + sum(calls))


def reached(rounds: Sequence[Round], backend: str, device_spread: float = 0.0) -> Reached:
    """What both clocks say. `device_spread`: today's A/A spread of the device, a fraction.

    Of several pairs of processes the interval reaches from the lowest end to the highest, so that pairs that
    disagree decide nothing; and the outer clock has to reach a claim in each of them.
    """
    ratios = clock.log_ratios(rounds)
    found = clock.pairs(rounds)
    spread = _session_spread(rounds, backend, device_spread)
    inner = []
    for own in map(clock.log_ratios, found):
        inner.append(stats.widened(stats.bootstrap_median(own), median(own), spread))
    outer = [_outer(own) for own in found]
    return Reached(
        inner=median(ratios),
        inner_interval=_hull(inner),
        outer=_hull(outer),
    )


def within_single(reach: Reached, single: Sequence[Round]) -> Reached:
    """The reach where calls that share no work bear the claim out, else no more than they surely show.

    `single`: rounds of one call each. On a CPU all inputs of a block lie readable at its first call, so all
    results can be computed at once, and a weight is read once for all.
    """
    for own in clock.pairs(single):
        shown, baseline = _times(own), clock.baseline_ms(own)
        assert shown is not None
        if shown.low > math.exp(-reach.estimate) + SINGLE_SHARE + SINGLE_MS / baseline:
            outer = Interval(low=-math.log(shown.high), high=max(reach.outer.high, -math.log(shown.low)))
            reach = replace(reach, outer=outer)
    return reach


def _outer(rounds: Sequence[Round]) -> Interval:
    """Where the log-ratio surely is by the outer clock. Its error is symmetric in times, not in ratios.

    A candidate that leaves work on the device behind makes the baseline's block longer that follows its own.
    Where those rounds surely show less time than the others, only the others count.
    """
    before, behind = (_times([r for r in rounds if r.order == order]) for order in ("BC", "CB"))
    apart = before is not None and behind is not None and before.low > behind.high
    times = before if apart else _times(rounds)
    assert times is not None
    return Interval(low=-math.log(max(_LEAST, times.high)), high=-math.log(max(_LEAST, times.low)))


def _times(rounds: Sequence[Round]) -> Interval | None:
    """Where the candidate's call surely is, in the baseline's; None without rounds."""
    found = [clock.outer_call_ms(r) / clock.call_ms(r.baseline) for r in rounds]
    return stats.sure_centre(found, RISK) if found else None


def _session_spread(rounds: Sequence[Round], backend: str, device_spread: float) -> float:
    timing = timing_of(backend)
    least = max(timing.session_least, timing.session_device_spreads * device_spread)
    return least + timing.session_ms / clock.inside_ms(rounds)


def _hull(intervals: Sequence[Interval]) -> Interval:
    return Interval(low=min(i.low for i in intervals), high=max(i.high for i in intervals))


def conclude(
    rounds: Sequence[Round],
    *,
    backend: str,
    alone: Mapping[int, Sequence[Alone]] | None = None,
    single: Sequence[Round] = (),
    device_spread: float = 0.0,
    rigor: Rigor = Rigor.QUICK,
    trusted: bool = False,
    reach: Reached | None = None,
) -> Measurement:
    """The measurement that complete, believable rounds give, with what `single` ones of one call each show.

    `trusted`: the candidate is a baseline of ours, whose own clock is believed. `reach`: what `reached` says
    of these rounds where that is known, without `alone`, which changes them, and without `device_spread`.
    """
    fair = bounded(rounds, alone or {}, backend)
    reach = within_single(reach or reached(fair, backend, device_spread), single)
    if trusted:
        reach = replace(reach, outer=Interval(low=reach.inner, high=reach.inner_interval.high))
    logs, inner = reach.interval, reach.inner_interval.high
    if fair != list(rounds):
        # A host that was busy meanwhile slows both sides alike. So the bound may take a claim away, but it
        # does not show that the candidate is slower: the baseline as it was beside the candidate counts too.
        beside = reached(rounds, backend, device_spread)
        logs = Interval(low=logs.low, high=max(logs.high, beside.interval.high))
        inner = max(inner, beside.inner_interval.high)
    interval = stats.exponential(logs)
    spread = stats.aa_spread([(len(r.baseline), math.log(clock.call_ms(r.baseline))) for r in rounds])
    resolution = resolution_of(spread, device_spread)
    # The outer clock may show too little where other programs want the core, so the inner one counts as well.
    highest = stats.exponential(Interval(low=logs.low, high=max(logs.high, inner))).high
    pace, because = pace_of_rounds(rounds, alone or {}, logs, resolution, highest, rigor)
    baseline, inside = clock.baseline_ms(fair), clock.inside_ms(rounds)
    candidate = baseline * math.exp(-reach.estimate)
    return Measurement(
        candidate_ms=candidate,
        baseline_ms=baseline,
        speedup=math.exp(reach.estimate),
        speedup_interval=interval,
        pace=pace,
        unresolved_because=because or None,
        resolution=resolution,
        aa_spread=spread,
        host_ms=median(map(clock.outer_call_ms, fair)),
        inside_ms=inside,
        unseen_ms=max(0.0, candidate - inside),
        overhead_ms=clock.loop_cost_ms(rounds),
        flush_bytes=0,
        slots=max(len(r.candidate) for r in rounds),
        candidate_samples_ms=tuple(tuple(r.candidate) for r in rounds),
        baseline_samples_ms=tuple(tuple(r.baseline) for r in rounds),
        host_samples_ms=tuple((r.host_ms, r.baseline_host_ms) for r in rounds),
        order=tuple(r.order for r in rounds),
        sessions=tuple(r.session for r in rounds),
        calls=tuple(len(r.candidate) for r in rounds),
        launch_bound=timing_of(backend).launches and inside < LAUNCH_BOUND_MS,
    )
