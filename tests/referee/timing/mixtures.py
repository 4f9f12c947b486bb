"""Rounds as a candidate of any mixture of tricks would make them, with the noise of real machines.

Noise as measured on an H200 (16 references of level 1 against themselves, 24 November 2026): by the outer
clock two blocks of the same work differ by 0.04 to 0.45 ms in the median, now and then by far more, always
upwards; calls by the inner clock by 0.1 to 0.5 %. Where other programs want the cores, they interrupt calls
and loops at random (`waits_ms`): a side that works longer is interrupted more often.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from kernelproof.types import Measurement, VerifySettings
from kernelproof.verifier.referee.timing import claim
from kernelproof.verifier.referee.timing.clock import Alone, Round
from kernelproof.verifier.referee.timing.stopping import StoppingRule

LOOP_MS = 0.6
"""What the loop costs a call on an H200: flush, marks, waiting for the device, copying out."""
TRICKS = ("honest", "hide", "first", "slow baseline", "idle", "lie")


@dataclass(frozen=True)
class Noise:
    """Of a machine."""

    call: float = 0.003
    """Relative, of a call of both clocks."""
    block_ms: float = 0.3
    """Of a block, by the outer clock alone."""
    outliers: float = 0.05
    """Share of blocks that are far off."""
    common: float = 0.0
    """Relative, of all calls of a round: clocks that drift."""
    waits_ms: float = 0.0
    """Other programs interrupt a side at random, for so long in the mean."""
    runs_ms: float = 4.0
    """How long it runs between two interruptions, in the mean: a scheduler's slice."""
    cold_ms: float = 0.0
    """How much longer the first call of a block takes."""


@dataclass(frozen=True)
class Candidate:
    """How a candidate behaves: in each block one trick, drawn by these weights."""

    weights: dict[str, float]
    hidden: float = 0.7
    """Share of its work that "hide" keeps from its own clock."""
    leaves_ms: float = 0.0
    """What it leaves on the device, for the baseline's block to wait for, and hides of its own."""
    slows: float = 1.5
    """How many times as long the baseline takes in "slow baseline"."""
    idles: float = 1.0
    """Most calls' worth of time that "idle" waits beside the calls."""
    by_count: bool = False
    """Whether it hides in the long blocks only, and idles in short ones."""
    speedup: float = 1.0
    """The truth."""
    names: Sequence[str] = field(default=TRICKS)


class Machine:
    """Measures one candidate as the stopwatch would."""

    def __init__(self, candidate: Candidate, noise: Noise, *, call_ms: float, calls: int, seed: int) -> None:
        self._candidate, self._noise = candidate, noise
        self._call_ms, self._calls = call_ms, calls
        self._random = random.Random(seed)

    def rounds(self, count: int) -> list[Round]:
        """So many rounds, in pairs of two numbers of calls, as the stopwatch would make them."""
        few = max(1, -(-3 * self._calls // 4))
        return [self.round(calls) for _ in range(count // 2) for calls in (few, self._calls)]

    def measured(self, settings: VerifySettings, round_seconds: float = 0.12) -> Measurement:
        """Rounds until the stopping rule says so, and what they come to."""
        rounds: list[Round] = []
        rule = StoppingRule.of(settings)
        few = self._random.randint(max(1, -(-3 * self._calls // 4)), max(1, self._calls - 1))
        while rule.decide(rounds, len(rounds) * round_seconds) is None:
            for calls in self._random.sample((few, self._calls), 2):
                rounds.append(self.round(calls))
        alone = {0: [Alone(*self._baseline(calls, 1.0, 1.0)) for calls in (few, self._calls) * 5]}
        return claim.conclude(rounds, backend=settings.backend, alone=alone, rigor=settings.rigor)

    def round(self, calls: int) -> Round:
        """One round with so many calls."""
        trick = self._trick(calls)
        drift = 1 + self._random.gauss(0, self._noise.common)
        slow = self._candidate.slows if trick == "slow baseline" else 1.0
        baseline, baseline_host = self._baseline(calls, slow, drift)
        work = self._call_ms / self._candidate.speedup * drift
        true = self._calls_of(work, calls)
        host = self._host(sum(true), calls)
        told = true
        if trick == "hide":
            told = [ms * (1 - self._candidate.hidden) for ms in true]
        elif trick == "first":
            told = [sum(true), *[1e-5] * (calls - 1)]
        elif trick == "idle":
            host += self._random.uniform(0, self._candidate.idles) * calls * work
        elif trick == "lie":
            told = [ms * self._random.choice((0.1, 10.0)) for ms in true]
        order = self._random.choice(("BC", "CB"))
        if self._candidate.leaves_ms:
            told = [ms - self._candidate.leaves_ms / calls for ms in told]
            baseline_host += self._candidate.leaves_ms if order == "CB" else 0.0
        return Round(order, baseline, told, host, baseline_host)

    def _trick(self, calls: int) -> str:
        if self._candidate.by_count:
            return "hide" if calls == self._calls else "idle"
        weights = self._candidate.weights
        return self._random.choices(list(weights), list(weights.values()))[0]

    def _baseline(self, calls: int, slow: float, drift: float) -> tuple[list[float], float]:
        work = self._call_ms * slow * drift
        times = self._calls_of(work, calls)
        return times, self._host(sum(times), calls)

    def _calls_of(self, work_ms: float, calls: int) -> list[float]:
        """Times of a block's calls."""
        true = [work_ms * (1 + self._random.gauss(0, self._noise.call)) for _ in range(calls)]
        true[0] += self._noise.cold_ms
        return [self._beside_others(ms) for ms in true]

    def _beside_others(self, work_ms: float) -> float:
        """How long so much work takes where other programs want the core: it is interrupted at random."""
        if not self._noise.waits_ms:
            return work_ms
        waits, ran = 0.0, self._random.expovariate(1 / self._noise.runs_ms)
        while ran < work_ms:
            waits += self._random.expovariate(1 / self._noise.waits_ms)
            ran += self._random.expovariate(1 / self._noise.runs_ms)
        return work_ms + waits

    def _host(self, work_ms: float, calls: int) -> float:
        noise = abs(self._random.gauss(0, self._noise.block_ms))
        if self._random.random() < self._noise.outliers:
            noise *= 10
        return work_ms + self._beside_others(LOOP_MS * calls + 2.0) + noise
