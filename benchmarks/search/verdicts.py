"""What a strategy is told of a program: a verification of a landscape's point, with a measured speedup."""

from __future__ import annotations

import math
import random
from functools import cache

from benchmarks.search.landscape import Landscape
from benchmarks.search.proposer import Program
from kernelproof import backends
from kernelproof.hashing import sha256_text
from kernelproof.runs.strategies import Proposal, Result
from kernelproof.types import Interval, Measurement, Pace, Problem, Status, Verification, VerifySettings
from kernelproof.version import VERIFIER

RESOLUTION = 0.01
"""The smallest difference that a measurement claims."""


def problem(name: str, seed: int) -> Problem:
    """A landscape as the problem of a task: strategies draw their random choices from its hash."""
    text = f"{name}/{seed}"
    return Problem(id=name, suite="landscapes", name=name, source=text, sha256=sha256_text(text))


@cache
def settings() -> VerifySettings:
    """Of all verifications. The registry of backends looks through the installed packages: once is enough."""
    return VerifySettings(backend=backends.names()[0])


class Verifier:
    """Verifies programs of one landscape. The same program, verified twice, is measured twice."""

    def __init__(self, of: Problem, landscape: Landscape, noise: float | None = None) -> None:
        """`noise` takes the place of the landscape's own."""
        self._landscape = landscape
        self._noise = landscape.noise if noise is None else noise
        self._settings = settings()
        self._problem = of

    def result(self, program: Program, proposal: Proposal, turn: int, number: int) -> Result:
        """What came of the question with this number."""
        status = program.status(self._landscape)
        measured = self._measured(program, number) if status is Status.CORRECT else None
        roof = self._landscape.roof
        return Result(
            proposal,
            turn,
            status,
            self._verification(program, status, measured),
            program.source,
            interval=measured.claimed_interval if measured else None,
            roofline=measured.speedup / roof if measured and roof else None,
        )

    def _measured(self, program: Program, number: int) -> Measurement:
        off = random.Random(f"{self._problem.source}/{number}/measured").gauss(0.0, self._noise)
        speedup = self._landscape.speedup(program.point) * math.exp(off)
        half = math.exp(1.96 * self._noise)
        return measurement(speedup, speedup / half, speedup * half)

    def _verification(self, program: Program, status: Status, measured: Measurement | None) -> Verification:
        return Verification.model_construct(
            status=status,
            reason=status.meaning,
            problem_id=self._problem.id,
            problem_sha256=self._problem.sha256,
            candidate_sha256=sha256_text(program.source),
            settings=self._settings,
            measurement=measured,
            verifier=VERIFIER,
            created="",
        )


def measurement(speedup: float, low: float, high: float) -> Measurement:
    """Of a reference that takes 1 ms. Not validated: a comparison makes hundreds of thousands of them."""
    interval = Interval.model_construct(low=low, high=high)
    return Measurement.model_construct(
        candidate_ms=1.0 / speedup,
        baseline_ms=1.0,
        speedup=speedup,
        speedup_interval=interval,
        pace=pace(interval),
        resolution=RESOLUTION,
        aa_spread=RESOLUTION / 3,
        host_ms=1.0 / speedup,
        overhead_ms=0.0,
        flush_bytes=0,
        slots=1,
    )


def pace(interval: Interval) -> Pace:
    """What this interval allows to say."""
    if interval.low > 1 + RESOLUTION:
        return Pace.FASTER
    if interval.high < 1 - RESOLUTION:
        return Pace.SLOWER
    within = interval.low >= 1 - RESOLUTION and interval.high <= 1 + RESOLUTION
    return Pace.SAME if within else Pace.UNRESOLVED
