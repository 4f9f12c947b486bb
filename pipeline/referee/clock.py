"""The measurement: candidate and baseline in alternating blocks on fresh inputs, under two clocks.

One round: every slot is filled with inputs never used before, outputs are poisoned, then the baseline
and the candidate, each in a sandboxed process of its own, walk through the same slots, in random order.
The two processes are alike in everything but what they run: neither is timed on better terms. A contestant
reports a time for each call; the referee holds a clock of its own around the whole block. What
that clock sees beyond the reported times is compared with what it sees around the baseline's blocks, which
run through the same loop: more than that is hidden work. The contestant is held still (all its processes
stopped) whenever it is not its turn. Outputs of a random half of the calls of every
round are compared with the baseline's on the same inputs.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import torch

from pipeline.nouns import ErrorStatistics, Measurement, Status, VerifySettings
from pipeline.referee import stats, tolerance
from pipeline.referee.environment import Readings, read_state
from pipeline.referee.host import Contestant, ContestantFailed, ContestantGone
from pipeline.referee.ledger import Ended
from pipeline.referee.memory import SharedSlot, same_bits
from pipeline.referee.problem import LoadedProblem, tensors

MIN_ROUNDS = 6
SURE_ROUNDS = 24
"""No candidate is said to hide work by fewer rounds than this."""
MAX_ROUNDS = 200
WARM_UP_SECONDS = 0.2
SHORTEST_MS, LONGEST_MS = 1e-6, 1e9
"""A time of one call outside these (a nanosecond, eleven days) is no time."""
HOST_RELATIVE = 0.25
HOST_ABSOLUTE_MS = 0.1
"""Bound on `unseen_ms`: 25 % of the call and of the loop's own cost, plus 0.1 ms.

Both sides of the comparison pay launch, scheduling and copying alike; what is left of them stays well below
this. Beyond the bound the inside clock is not believed.
"""


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


@dataclass
class Timed:
    """What the rounds gave; `failure` names the check that ended them early."""

    rounds: list[Round] = field(default_factory=list)
    checked_calls: int = 0
    failure: str | None = None
    bad: ErrorStatistics | None = None
    before: Readings = field(default_factory=dict)
    after: Readings = field(default_factory=dict)


class Stopwatch:
    """Runs the rounds of one measurement."""

    def __init__(
        self,
        loaded: LoadedProblem,
        model: torch.nn.Module,
        candidate: Contestant,
        baseline: Contestant,
        slots: Sequence[SharedSlot],
        settings: VerifySettings,
        device: torch.device,
        next_seed: Callable[[], int],
        reference_error: Sequence[float],
    ) -> None:
        self._loaded, self._model = loaded, model
        self._candidate, self._baseline = candidate, baseline
        self._slots, self._settings, self._device = slots, settings, device
        self._next_seed = next_seed
        self._reference_error = reference_error
        self._random = random.SystemRandom()

    def run(self) -> Timed:
        """Rounds until the interval is narrow enough or time is up. Raises what `Contestant.ask` raises."""
        timed = Timed(before=read_state(self._device))
        warm_until = time.monotonic() + WARM_UP_SECONDS
        while True:
            self._round(Timed())
            if time.monotonic() > warm_until:
                break
        deadline = time.monotonic() + self._settings.measure_seconds
        while timed.failure is None and len(timed.rounds) < MAX_ROUNDS:
            timed.rounds.append(self._round(timed))
            enough = self._narrow(timed.rounds) or (time.monotonic() > deadline and len(timed.rounds) >= 3)
            if enough and not (len(timed.rounds) < SURE_ROUNDS and self._clocks_differ(timed.rounds)):
                break
        timed.after = read_state(self._device)
        return timed

    def _clocks_differ(self, rounds: list[Round]) -> bool:
        """Whether, by these rounds, work was hidden. More rounds clear who only was disturbed."""
        allowed = allowed_unseen_ms(inside_ms(rounds), loop_cost_ms(rounds))
        return unseen_ms(rounds) > allowed

    def _narrow(self, rounds: list[Round]) -> bool:
        if len(rounds) < MIN_ROUNDS:
            return False
        return stats.half_width(stats.bootstrap_median(log_ratios(rounds))) < self._settings.target_half_width

    def _round(self, timed: Timed) -> Round:
        slots = self._slots
        self._candidate.pause()  # what it could compute from inputs before its turn would cost no time
        self._baseline.pause()
        watched = self._random.randrange(len(slots))
        for index, slot in enumerate(slots):
            arguments = self._loaded.draw(self._next_seed(), self._device)
            slot.fill(arguments)
            if index == watched:
                private = arguments
            del arguments
        order = self._random.choice(["BC", "CB"])
        baseline: list[float] = []
        candidate: list[float] = []
        host = baseline_host = 0.0
        for who in order:
            if who == "B":
                baseline, baseline_host = self._block(self._baseline)
            else:
                candidate, host = self._block(self._candidate)
                if not same_bits(list(slots[watched].views), private):
                    timed.failure = "inputs_unchanged"
        if any(map(math.isnan, candidate)):
            timed.failure = timed.failure or "inside_clock"
        self._check_outputs(timed, watched, private)
        return Round(order, baseline, candidate, host, baseline_host)

    def _block(self, side: Contestant) -> tuple[list[float], float]:
        """One side's block: its times, and the referee's clock around it, in milliseconds."""
        is_baseline = side is self._baseline
        message = {"op": "time", "slots": [slot.message(baseline=is_baseline) for slot in self._slots]}
        seconds = self._settings.call_seconds * len(self._slots)
        start = time.perf_counter_ns()
        side.resume()
        try:
            reply = side.ask(message, seconds=seconds)
        except (ContestantFailed, ContestantGone) as error:
            if is_baseline:  # no fault of the candidate's
                raise Ended(Status.INFRASTRUCTURE_ERROR, f"the baseline's process failed: {error}") from None
            raise
        host = (time.perf_counter_ns() - start) / 1e6
        side.pause()
        return believable_times(reply.get("ms"), len(self._slots)), host

    def _check_outputs(self, timed: Timed, watched: int, private: list[Any]) -> None:
        """Compares the outputs of a random half of the slots, the watched one always among them.

        The watched slot's inputs also exist in memory that the contestant cannot reach, and its output is
        compared with the reference on those: inputs changed under the baseline and put back are seen.
        """
        true = tuple(tensors(self._loaded.run(self._model, private, 0)))
        others = [index for index in range(len(self._slots)) if index != watched]
        chosen = self._random.sample(others, len(others) // 2)
        pairs = [(self._slots[watched].outputs, true)]
        pairs += [(self._slots[index].outputs, self._slots[index].baseline) for index in chosen]
        for mine, wanted in pairs:
            for output, (value, native) in enumerate(zip(mine, wanted, strict=True)):
                floor = tolerance.timed_floor(native.dtype, self._reference_error[output])
                found = tolerance.compare(value, native, None, trial="timed", output=output, floor=floor)
                if found.wrong and timed.failure is None:
                    timed.failure, timed.bad = "timed_outputs", found
        timed.checked_calls += len(pairs)


def believable_times(value: object, count: int) -> list[float]:
    """The contestant's times as floats in milliseconds; times that cannot be become NaN, never a crash."""
    if not isinstance(value, list) or len(value) != count:
        return [math.nan] * count
    good = [isinstance(v, int | float) and SHORTEST_MS <= v <= LONGEST_MS for v in value]
    return [float(v) if ok else math.nan for v, ok in zip(value, good, strict=True)]


def log_ratios(rounds: Sequence[Round]) -> list[float]:
    """log(baseline / candidate) of each round's median times; 0 is equal, above 0 the candidate is faster."""
    return [math.log(median(r.baseline) / median(r.candidate)) for r in rounds]


def loop_cost_ms(rounds: Sequence[Round]) -> float:
    """What the loop itself costs for one call (flush, marks, copying out), seen around the baseline."""
    return median((r.baseline_host_ms - sum(r.baseline)) / len(r.baseline) for r in rounds)


def unseen_ms(rounds: Sequence[Round]) -> float:
    """Time per call that the referee's clock saw and the candidate's did not, the loop's own cost taken off.

    The median over the rounds, each against the baseline's block of the same round: what disturbs one side
    of a round disturbs the other about as often, and honest rounds do not hide a majority of false ones.
    """

    def beyond(r: Round) -> float:
        mine, other = r.host_ms - sum(r.candidate), r.baseline_host_ms - sum(r.baseline)
        return (mine - other) / len(r.candidate)

    return median(map(beyond, rounds))


def allowed_unseen_ms(inside_ms: float, loop_ms: float) -> float:
    """Most of such time that is taken for launch, scheduling and copying rather than for hidden work."""
    return (inside_ms + max(0.0, loop_ms)) * HOST_RELATIVE + HOST_ABSOLUTE_MS


def inside_ms(rounds: Sequence[Round]) -> float:
    """One call by the contestant's clock: the median of the blocks' medians."""
    return median(median(r.candidate) for r in rounds)


def conclude(timed: Timed, flush_bytes: int) -> Measurement:
    """The measurement that complete, believable rounds give."""
    ratios = log_ratios(timed.rounds)
    interval = stats.exponential(stats.bootstrap_median(ratios))
    spread = stats.aa_spread([math.log(median(r.baseline)) for r in timed.rounds])
    smallest = stats.resolution(spread)
    inside = inside_ms(timed.rounds)
    return Measurement(
        candidate_ms=inside,
        baseline_ms=median(median(r.baseline) for r in timed.rounds),
        speedup=math.exp(median(ratios)),
        speedup_interval=interval,
        pace=stats.pace(interval, smallest),
        resolution=smallest,
        aa_spread=spread,
        host_ms=inside + unseen_ms(timed.rounds),
        overhead_ms=loop_cost_ms(timed.rounds),
        flush_bytes=flush_bytes,
        slots=len(timed.rounds[0].candidate),
        candidate_samples_ms=tuple(tuple(r.candidate) for r in timed.rounds),
        baseline_samples_ms=tuple(tuple(r.baseline) for r in timed.rounds),
        order=tuple(r.order for r in timed.rounds),
        clocks_before=timed.before,
        clocks_after=timed.after,
    )
