"""Timing on a landscape as the referee's stopping rule has it: rounds until the interval is narrow, or lies
below the bar; and the seconds that the device is held.

A closed form of `pipeline/verifier/referee/timing/stopping.py`: the half-width of the median of n rounds is
taken as 1.96 x 1.2533 x their standard deviation / sqrt(n). The outer clock always agrees.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from statistics import median

from benchmarks.search.landscape import Landscape
from benchmarks.search.proposer import Program
from benchmarks.search.verdicts import Verifier, measurement
from kernelproof.choices import Rigor
from kernelproof.runs.strategies import Proposal, Result
from kernelproof.types import Interval, Measurement, Pace, Problem
from kernelproof.verifier.referee.timing.pace import CLEARLY_SLOWER
from kernelproof.verifier.referee.timing.stopping import StoppingRule

MEDIAN = 1.96 * 1.2533
"""Half-width of the median's 95 % interval, in standard deviations of one value over sqrt(n)."""


@dataclass(frozen=True)
class Machine:
    """What a device's times are like, and how long the stages of a verification hold it. In seconds."""

    name: str
    round_sd: float
    """Standard deviation of one round's log-ratio."""
    session_sd: float
    """The same of what another pair of processes changes."""
    share: float
    """What the interval has in it for that."""
    wrong_s: float
    """Until a wrong candidate is known to be wrong."""
    before_s: float
    """Until the timing of a correct one begins, and after it: start, trials, a traced call, conclusion."""
    probes_s: float
    pair_s: float
    """To start another pair of processes."""
    warm_s: float
    round_s: float


H200 = Machine("H200", 0.0035, 0.0007, 0.004, 0.71, 0.85, 0.07, 0.40, 0.2, 0.067)
"""docs/lab/throughput.md (`as in a batch`): 8 rounds, two decoys and five
blocks alone took 0.84 s, and were known to 0.3 %. docs/lab/records/coverage.json: ten verifications of one
program have a standard deviation of 0.07 % (median)."""
CORES = Machine("2 cores", 0.034, 0.01, 0.01, 1.35, 1.43, 0.06, 0.9, 0.2, 0.107)
"""The same page, as in a batch: 14 rounds, known to 2.2 %."""
MACHINES = {each.name: each for each in (H200, CORES)}


@dataclass(frozen=True)
class Timed:
    """One verification."""

    claimed: float
    speedup: float
    """As measured; 0 for what is not correct."""
    true: float
    seconds: float


class Stopwatch:
    """Times programs of one problem. Equal arguments give equal results."""

    def __init__(self, of: Problem, machine: Machine) -> None:
        self._of, self._machine = of, machine

    def time(self, true: float, name: str, rigor: Rigor, bar: float = 0.0) -> tuple[Measurement, float]:
        """The measurement of a program with this speedup, and the seconds for all of its verification."""
        machine, rng = self._machine, random.Random(f"{self._of.source}/{name}")
        spent, pairs = machine.before_s, []
        below = False
        for _ in range(rigor.sessions):
            pairs.append(self._pair(true, rng, rigor, bar))
            below = bar > 0 and pairs[-1][1].high < bar
            if below:
                break
        told = _told([found for _, found in pairs])
        if rigor is not Rigor.QUICK and len(pairs) == 1 and not below and _is_close(told):
            pairs.append(self._pair(true, rng, rigor, bar))
            told = _told([found for _, found in pairs])
        spent += sum(machine.warm_s + count * machine.round_s for count, _ in pairs)
        spent += machine.pair_s * (len(pairs) - 1) + (0.0 if below else machine.probes_s)
        return told, spent

    def _pair(self, true: float, rng: random.Random, rigor: Rigor, bar: float) -> tuple[float, Interval]:
        """Rounds' worth of blocks, those of decoys and of the baseline alone included; and the interval."""
        machine = self._machine
        centre = math.log(true) + rng.gauss(0.0, machine.session_sd)
        rounds: list[float] = []
        while True:
            rounds += [rng.gauss(centre, machine.round_sd) for _ in range(2)]
            if len(rounds) < StoppingRule.late_rounds:
                continue
            half = MEDIAN * machine.round_sd / math.sqrt(len(rounds))
            whole, middle = math.hypot(half, machine.share), median(rounds)
            slower = max(rounds) < math.log(CLEARLY_SLOWER)
            below = bar > 0 and middle + whole < math.log(bar)
            late = len(rounds) * machine.round_s > rigor.seconds
            narrow = len(rounds) >= StoppingRule.min_rounds and half < rigor.half_width
            if slower or below or narrow or late:
                decoys = 1 if slower or below else max(2.0, len(rounds) / 8)
                found = Interval(low=math.exp(middle - whole), high=math.exp(middle + whole))
                return len(rounds) + decoys + 2.5, found


def _told(intervals: list[Interval]) -> Measurement:
    low, high = min(each.low for each in intervals), max(each.high for each in intervals)
    return measurement(median(math.sqrt(each.low * each.high) for each in intervals), low, high)


def _is_close(told: Measurement) -> bool:
    if told.pace is Pace.FASTER:
        return math.log(told.speedup_interval.low) < StoppingRule.close_call
    return told.pace is Pace.SLOWER and math.log(told.speedup_interval.high) > -StoppingRule.close_call


class TimedVerifier(Verifier):
    """Verifies as a run of this rigor does, or screens as one that races, and counts the seconds."""

    def __init__(
        self, of: Problem, landscape: Landscape, machine: Machine, rigor: Rigor, *, races: bool
    ) -> None:
        super().__init__(of, landscape)
        self.stopwatch, self.machine, self.rigor = Stopwatch(of, machine), machine, rigor
        self._races, self._bar = races, 0.0
        self.made: list[Timed] = []
        """By question."""

    def result(self, program: Program, proposal: Proposal, turn: int, number: int) -> Result:
        """What came of the question with this number."""
        if turn == 1:  # another sample
            self._bar = 0.0
        count = len(self.made)
        found = super().result(program, proposal, turn, number)
        if len(self.made) == count:
            self.made.append(Timed(0.0, 0.0, 0.0, self.machine.wrong_s))
        self._bar = max(self._bar, self.made[-1].claimed)
        return found

    def _measured(self, program: Program, number: int) -> Measurement:
        true = self._landscape.speedup(program.point)
        rigor, bar = (Rigor.QUICK, self._bar) if self._races else (self.rigor, 0.0)
        measured, seconds = self.stopwatch.time(true, f"{number}/measured", rigor, bar)
        self.made.append(Timed(measured.claimed, measured.speedup, true, seconds))
        return measured
