"""The timing stage: pairs of processes are measured, and what was measured is judged. `aa_spread` measures
how far two processes that run the very same thing are apart on this device today.
"""

from __future__ import annotations

import math
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import torch

from kernelproof.hashing import sha256_text
from kernelproof.types import Ceilings, Measurement, Problem, Replayed, Rigor, Roofline, VerifySettings
from kernelproof.verifier.build import Toolchain
from kernelproof.verifier.contestant import loop
from kernelproof.verifier.contestant.loop import outputs_of
from kernelproof.verifier.contestant.main import configure_torch
from kernelproof.verifier.referee import ceilings, roofline, sides
from kernelproof.verifier.referee.correctness.oracle import Oracle
from kernelproof.verifier.referee.inputs.problem import LoadedProblem, ProblemError
from kernelproof.verifier.referee.ledger import Ledger
from kernelproof.verifier.referee.sides import CandidateProcess
from kernelproof.verifier.referee.timing import claim, clock, pace
from kernelproof.verifier.referee.timing.compiled_baselines import CompiledBaselines, ProcessSetup
from kernelproof.verifier.referee.timing.disturbance import Watch
from kernelproof.verifier.referee.timing.rounds import Stopwatch, Timed
from kernelproof.verifier.referee.timing.stopping import StoppingRule
from kernelproof.verifier.referee.timing.timed_outputs import Subject, TimedOutputs
from kernelproof.verifier.status_rules import (
    BASELINE_ALONE,
    BEYOND_ROOFLINE,
    HOST_CLOCK,
    INSIDE_CLOCK,
    RESOLVED,
    RESULTS_LATE,
    TIMED_INPUTS,
    TIMED_OUTPUTS,
    UNDISTURBED,
    Cause,
)
from kernelproof.verifier.workers.client import Contestant, ContestantFailed, ContestantGone
from kernelproof.verifier.workers.pool import WarmPool
from kernelproof.verifier.workers.shared_memory import (
    BASELINE_SLOT_ARENAS,
    SLOT_ARENAS,
    SharedMemory,
    SharedWeights,
    lay_out,
)
from kernelproof.wording import counted

_FAILURES = {
    "inputs_unchanged": (TIMED_INPUTS, "an input of a timed call was changed"),
    "results_changed": (TIMED_OUTPUTS, "a result of a timed call was another one when the next call began"),
    "results_late": (RESULTS_LATE, "elements of a result changed after the reply: its device was not done"),
    "inside_clock": (INSIDE_CLOCK, "it reported times that no call can have taken"),
}
"""Of rounds that a check ended: the check, and what it saw."""
PAIR_CALLS, PAIR_TIMES = 60.0, 10.0
"""The rounds of one pair of processes may take as long as so many of the longest calls, and so many times the
seconds that the rigor gives them. An honest candidate whose every call takes longest makes some twenty."""
ALONE_TIMES = 5.0
"""A candidate beside which the rounds take so many times what they take without it is to blame."""


@dataclass
class Measuring:
    """Measures one candidate, in one pair of processes or several."""

    subject: Subject
    ledger: Ledger
    memory: SharedMemory
    pristine: SharedWeights
    weights_seed: int
    cache: Path
    toolchain: Toolchain
    pool: WarmPool
    longest_call: float
    """Seconds that a call of the candidate's may take in a trial."""
    timed: Timed = field(default_factory=Timed)
    """The rounds of all pairs together."""
    _rule: StoppingRule = field(init=False)
    _last: Stopwatch | None = None
    _replayed: Replayed | None = None
    _overdue: bool = False
    """Whether the rounds of a pair were not over in time, beside a candidate that seemed to be the cause."""

    def __post_init__(self) -> None:
        self._rule = StoppingRule.of(self.subject.settings)

    @property
    def pair_seconds(self) -> float:
        """The rounds of a pair of processes may take so long in all, whatever the candidate does."""
        return PAIR_CALLS * self.longest_call + PAIR_TIMES * self.subject.settings.most_seconds

    def pair(self, candidate: CandidateProcess, baseline: Contestant, number: int) -> bool:
        """Measures this pair of processes, which hold their memory.

        False where its rounds were not over in time, for the first time, and would have been without the
        candidate: its process is ended then. The device may have work of a process that is held, so that
        nothing of ours gets on. Raises Ended for a fault of the candidate's, or of the machine.
        """
        stopwatch = self._stopwatch(candidate.contestant, baseline, patience=self.pair_seconds)
        began, overdue = time.monotonic(), threading.Event()

        def end() -> None:
            overdue.set()
            candidate.contestant.close()

        timer = threading.Timer(self.pair_seconds, end)
        timer.start()
        try:
            timed = stopwatch.run(number)
        except (ContestantFailed, ContestantGone) as error:
            if not overdue.is_set():
                raise candidate.ended(error, Cause.RAISED_IN_CALL) from None
        finally:
            timer.cancel()
            timer.join()
        if overdue.is_set():
            self._blame(stopwatch, time.monotonic() - began)
            return False
        self._last = stopwatch
        self._add(timed)
        self._check_rounds(timed)
        return True

    def _blame(self, stopwatch: Stopwatch, took: float) -> None:
        """Notes rounds that took so many seconds until the candidate was ended. Raises Ended when it is the
        second time, or the candidate seems not to be the cause: rounds take as long without it, or the time
        went to comparing outputs. An honest result may need the truth for that, which can take long.
        """
        alone, most = stopwatch.seconds_alone(), self.pair_seconds
        seen = f"the rounds of its timing were not over in {most:.3g} s"
        seen = f"{seen}, and without it one takes {alone:.2g} s"
        least = max(most / 4, ALONE_TIMES * alone * len(stopwatch.filled))
        if took - stopwatch.comparing_seconds < least:
            raise Cause.STOOD_STILL.ended(f"the machine stood still: {seen}")
        if self._overdue:
            raise Cause.TIMING_TOO_LONG.ended(f"{seen}, twice")
        self._overdue = True
        self.timed.notes.append(f"{seen}, so they were begun again")

    def wants_pair(self, number: int) -> bool:
        """Whether a pair of this number should follow: for the rigor, or a close call."""
        return self._rule.wants_pair(number, self.timed.rounds)

    def far_slower(self) -> bool:
        """Whether the candidate is so slow that steps may be left out which only a claim would need."""
        return self._rule.is_far_slower(self.timed.rounds)

    def below_bar(self) -> bool:
        """Whether the candidate is surely slower than the best of its search, so that it makes no claim."""
        return self._rule.is_below_bar(self.timed.rounds)

    def replays(self, candidate: CandidateProcess, baseline: Contestant) -> None:
        """Times of launch-bound calls as CUDA graphs: what is left without the launches."""
        if self.subject.device.type != "cuda":
            return
        rounds = self.timed.rounds
        if min(clock.inside_ms(rounds), clock.baseline_ms(rounds)) >= claim.LAUNCH_BOUND_MS:
            return
        if len(self.subject.slots) < 2:
            return
        slot, source = self.subject.slots[:2]
        captured = self.subject.oracle.loaded.draw(self.ledger.seed("captured"), self.subject.device)
        slot.poison()
        source.take(self.subject.oracle.loaded.draw(self.ledger.seed("replay"), self.subject.device))
        times = []
        for side, is_baseline in ((baseline, True), (candidate.contestant, False)):
            late = slot.await_from(source, captured, baseline=is_baseline)
            message = slot.side(baseline=is_baseline).message()
            times.append(self._replay(side, {"op": "replay", "late": late, **message}))
        baseline_ms, candidate_ms = times
        slot.write(source.values())
        right = TimedOutputs(self.subject).wrong_beside(slot, slot, 0) is None
        self._replayed = Replayed(baseline_ms=baseline_ms, candidate_ms=candidate_ms if right else None)

    def alone(self, number: int) -> None:
        """Measures the baseline alone; the candidate's process of the pair of this number has ended."""
        assert self._last is not None
        self._last.baseline_alone(self.timed, number)

    def much_slowed(self) -> bool:
        """Whether the baseline was much slower beside the candidate, and no block was disturbed."""
        return not self.timed.disturbed and pace.much_slowed(self.timed.rounds, self.timed.alone)

    def conclude(self, baseline: Contestant) -> None:
        """The verdict on the times; the candidate's process has ended. Raises Ended for a false claim."""
        known = self._ceilings(baseline)
        measured = claim.conclude(
            self.timed.rounds,
            backend=self.subject.settings.backend,
            alone=self.timed.alone,
            single=self.timed.single,
            device_spread=known.aa_spread,
            rigor=self.subject.settings.rigor,
        )
        measured = measured.model_copy(
            update={
                "flush_bytes": sides.flush_bytes(self.subject.device),
                "disturbed": tuple(self.timed.disturbed),
                "clocks_before": self.timed.before,
                "clocks_after": self.timed.after,
                "replayed": self._replayed,
                "roofline": self._roofline(known, measured.candidate_ms),
            }
        )
        self.ledger.measurement = measured
        self._check_clocks(measured)
        self._check_baseline_alone()
        self._check_undisturbed()
        self._check_resolved()
        self._check_roofline(measured)

    def further_baselines(self, baseline: Contestant, progress: Callable[[str], None]) -> None:
        """Measures the other baselines that were asked for, or takes them from the cache."""
        measured, environment = self.ledger.measurement, self.ledger.environment
        if not self.subject.settings.baselines or measured is None or environment is None:
            return

        def race(contestant: Contestant) -> Timed:
            return self._stopwatch(contestant, baseline, trusted=True).run()

        setup = ProcessSetup(
            subject=self.subject,
            memory=self.memory,
            weights=self.pristine.specs,
            seed=self.weights_seed,
            toolchain=self.toolchain,
        )
        found = []
        doubts = pace.doubts_about(self.timed.rounds, self.timed.alone, measured.speedup_interval)
        further = CompiledBaselines(self.cache, environment, setup, race)
        for kind in self.subject.settings.baselines:
            progress(f"baseline {kind}")
            against, check = further.against(kind, measured, doubts)
            self.ledger.checks.append(check)
            found += [against] if against is not None else []
        self.ledger.measurement = measured.model_copy(update={"against": tuple(found)})

    def _stopwatch(
        self,
        candidate: Contestant,
        baseline: Contestant,
        *,
        trusted: bool = False,
        patience: float = 0.0,
    ) -> Stopwatch:
        watch = Watch(self.subject.device, lambda: (*candidate.pids(), *baseline.pids()))
        looks = self.subject.settings.kernels_matter and not trusted
        return Stopwatch(
            self.subject, candidate, baseline, watch, trusted=trusted, looks=looks, patience=patience
        )

    def _add(self, timed: Timed) -> None:
        self.timed.rounds += timed.rounds
        self.timed.single += timed.single
        self.timed.disturbed += timed.disturbed
        self.timed.looks += timed.looks
        self.timed.notes += [note for note in timed.notes if note not in self.timed.notes]
        self.timed.power_capped += timed.power_capped
        self.timed.checked_calls += timed.checked_calls
        self.timed.beyond_trial += timed.beyond_trial
        self.timed.before = self.timed.before or timed.before
        self.timed.after = timed.after

    def _replay(self, side: Contestant, message: dict[str, Any]) -> float | None:
        """Median time of a replayed call; None where it cannot be captured, or the process is gone."""
        side.resume()
        try:
            reply = side.ask(message, seconds=self.subject.settings.call_seconds)
        except (ContestantFailed, ContestantGone):
            return None
        times = clock.believable_times(reply.get("ms"), loop.REPLAYS)
        return None if any(map(math.isnan, times)) else median(times)

    def _check_rounds(self, timed: Timed) -> None:
        if timed.bad is not None:
            self.ledger.errors.append(timed.bad)
            seen = f"output {timed.bad.output} of a timed call: {timed.bad.in_words}"
            raise self.ledger.failed(TIMED_OUTPUTS, seen, timed.bad.model_dump(mode="json"))
        if timed.failure is not None:
            check, seen = _FAILURES[timed.failure]
            raise self.ledger.failed(check, seen, fact=timed.failure)

    def _ceilings(self, baseline: Contestant) -> Ceilings:
        """The device's ceilings and its A/A spread of today, both from the cache where they are known."""
        assert self.ledger.environment is not None
        baseline.pause()

        def aa() -> float:
            return aa_spread(self.subject.settings, self.subject.device, self.pool)

        return ceilings.known(self.subject.device, self.cache, self.ledger.environment, aa)

    def _roofline(self, known: Ceilings, candidate_ms: float) -> Roofline | None:
        arguments = self.subject.oracle.loaded.draw(self.ledger.seed("roofline"), self.subject.device)
        try:
            work = roofline.count(
                self.subject.oracle.loaded,
                self.subject.oracle.model,
                arguments,
                self.ledger.seed("forward roofline"),
            )
        except (ProblemError, torch.OutOfMemoryError) as error:
            self.ledger.skipped(BEYOND_ROOFLINE, f"the reference could not be counted: {error}")
            return None
        return roofline.roofline_of(work, known, candidate_ms)

    def _check_roofline(self, measured: Measurement) -> None:
        bound = measured.roofline
        if bound is None:
            return
        figures = {
            "needed_ms": bound.needed_ms,
            "candidate_ms": measured.candidate_ms,
            "fraction": bound.fraction,
        }
        if self.subject.device.type != "cuda":
            why = "a processor's caches may hold the inputs: nothing is concluded"
            self.ledger.skipped(BEYOND_ROOFLINE, why, figures)
            return
        seen = (
            f"{measured.candidate_ms:.4g} ms claimed, moving the data takes {bound.needed_ms:.4g} ms at least"
        )
        if roofline.impossible(bound, measured.candidate_ms):
            excuse = self._excuse_beyond(bound, measured.candidate_ms)
            if excuse is None:
                raise self.ledger.failed(BEYOND_ROOFLINE, seen, figures)
            self.ledger.skipped(BEYOND_ROOFLINE, f"{seen}; {excuse}", figures)
            return
        if bound.fraction > roofline.BEYOND:
            seen = f"{seen}; it is beyond the reference's own work, which another algorithm may save"
        self.ledger.passed(BEYOND_ROOFLINE, seen, figures)

    def _excuse_beyond(self, bound: Roofline, candidate_ms: float) -> str | None:
        """Why an honest program may be that fast; None where none may."""
        assert self.ledger.environment is not None
        loaded = self.subject.oracle.loaded
        seeds = (self.ledger.seed("roofline"), self.ledger.seed("another draw for the roofline"))
        try:
            draws = [loaded.draw(seed, self.subject.device) for seed in seeds]
            if roofline.has_constant_output(loaded, self.subject.oracle.model, draws, seeds[0]):
                return "an output is the same in another draw, so it can be known without reading"
            del draws
            known = ceilings.measured_again(self.subject.device, self.cache, self.ledger.environment)
        except (ProblemError, torch.OutOfMemoryError) as error:
            return f"whether that is possible could not be looked at again: {error}"
        if roofline.impossible(roofline.by_other_ceilings(bound, known, candidate_ms), candidate_ms):
            return None
        return "another measurement of this device found it faster than the first"

    def _check_clocks(self, measured: Measurement) -> None:
        rounds = self.timed.rounds
        inside, unseen, uneven = (
            clock.inside_ms(rounds),
            clock.certainly_unseen_ms(rounds),
            clock.uneven_ms(rounds),
        )
        allowed = clock.allowed_unseen_ms(inside, measured.overhead_ms)
        figures = {
            "inside_ms": inside,
            "host_ms": measured.host_ms,
            "unseen_ms": unseen,
            "uneven_ms": uneven,
            "allowed_ms": allowed,
        }
        if single := self.timed.single:
            figures["single_ms"] = median(map(clock.outer_call_ms, single))
            figures["single_baseline_ms"] = clock.baseline_ms(single)
        compared = {"beyond_trial": self.timed.beyond_trial} if self.timed.beyond_trial else {}
        seen = f"{counted(self.timed.checked_calls, 'call')} compared, all right"
        self.ledger.passed(TIMED_OUTPUTS, seen, compared)
        seen = f"inside {inside:.4g} ms, outside {measured.host_ms:.4g} ms a call"
        if clock.hides_work(rounds):
            seen = f"{seen}: {unseen:.4g} ms a call are certainly not on its own clock"
            excuse = self._excuse_unseen()
            if excuse is None:
                raise self.ledger.failed(HOST_CLOCK, seen, figures)
            seen = f"{seen}; {excuse}"
        if measured.unseen_ms > 0:
            seen = (
                f"{seen}; the claim is {measured.candidate_ms:.4g} ms, as far as the outer clock bears it out"
            )
        self.ledger.passed(HOST_CLOCK, seen, figures)

    def _excuse_unseen(self) -> str | None:
        """Why an honest program may take so much time off its own clock; None where none may.

        Memory of the device that the traced call took by itself is given back when the device is waited for,
        after the inner clock was read.
        """
        kernels = self.ledger.kernels
        if kernels is not None and kernels.allocations:
            return "it takes and gives back device memory, which may take that long"
        return None

    def _check_baseline_alone(self) -> None:
        rounds, alone = self.timed.rounds, [block for found in self.timed.alone.values() for block in found]
        slowed, allowed = pace.slowed_by(rounds, alone), claim.timing_of(self.subject.settings.backend).slowed
        beside, after = clock.baseline_ms(rounds), median(clock.call_ms(block.calls) for block in alone)
        figures = {"beside_ms": beside, "alone_ms": after, "slowed_by": slowed}
        figures["loop_beside_ms"] = clock.loop_cost_ms(rounds)
        figures["loop_alone_ms"] = median(block.beside_ms for block in alone)
        seen = f"{beside:.4g} ms beside it, {after:.4g} ms after it was gone"
        if pace.much_slowed(rounds, self.timed.alone):
            seen = f"{seen}, in every pair of processes: something disturbed the baseline"
        elif pace.two_modes(rounds):
            seen = f"{seen}: its blocks fall into two groups"
        elif slowed > allowed:
            seen = f"{seen}: the speedup is counted against the faster"
        self.ledger.passed(BASELINE_ALONE, seen, figures)

    def _check_resolved(self) -> None:
        bar, rounds = self.subject.settings.bar, len(self.timed.rounds)
        if bar is None:
            return
        figures = {"bar": bar, "rounds": rounds}
        if self.below_bar():
            seen = f"surely below {bar:.4g}, the best of its search: timing ended after {rounds} rounds"
            self.ledger.skipped(RESOLVED, seen, figures)
        else:
            self.ledger.passed(RESOLVED, f"{rounds} rounds", figures)

    def _check_undisturbed(self) -> None:
        disturbed, kept = self.timed.disturbed, len(self.timed.rounds)
        figures = {"repeated": len(disturbed), "kept": kept, "power_capped": self.timed.power_capped}
        seen = f"{counted(kept, 'block')}, none disturbed"
        if disturbed:
            thrown = counted(len(disturbed), "block")
            seen = f"{thrown} thrown away and repeated, the last because: {disturbed[-1]}"
        self.ledger.passed(UNDISTURBED, "; ".join((seen, *self.timed.notes)), figures)


_AA_SOURCE = """
import torch
from torch import nn

WIDTH = {width}


class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x * 0.5, dim=-1)


def get_inputs():
    return [torch.randn(WIDTH, 4096)]


def get_init_inputs():
    return []
"""
AA_SECONDS = 1.0
"""Most seconds of timed blocks."""
AA_SLOTS = 8
AA_PAIRS = 3


def aa_spread(settings: VerifySettings, device: torch.device, pool: WarmPool) -> float:
    """Runs a softmax in two contestants against itself; how far off 1 the ratio may be, as a fraction.

    The middle one of three pairs counts, by the median of its log-ratios. For each about a second, and as
    long as two processes take to start. Raises Ended when one does not come up.
    """
    return median(_aa_pair(settings, device, pool) for _ in range(AA_PAIRS))


def _aa_pair(settings: VerifySettings, device: torch.device, pool: WarmPool) -> float:
    problem = _aa_problem(16384 if device.type == "cuda" else 256)
    settings = settings.model_copy(
        update={"size": "full", "rigor": Rigor.STANDARD, "measure_seconds": AA_SECONDS, "bar": None}
    )
    configure_torch(settings.threads, tf32=settings.numerics == "tf32")
    loaded, memory = LoadedProblem(problem, "full"), SharedMemory(device)
    first = sides.start(pool, sides.no_builds, settings, device)
    second = sides.start(pool, sides.no_builds, settings, device)
    try:
        model = loaded.construct(0, device)
        arguments = loaded.draw(0, device)
        sample = loaded.run(model, arguments, 0)
        oracle = Oracle(loaded, model, loop.describe(sample), device, settings.numerics)
        slots = lay_out(memory, arguments, outputs_of(sample, device), AA_SLOTS)
        del sample
        for side, arenas in ((first, SLOT_ARENAS), (second, BASELINE_SLOT_ARENAS)):
            sides.seat_baseline(side, loaded, memory, {}, 0, settings, device, arenas)
        watch = Watch(device, lambda: (*first.pids(), *second.pids()))
        subject = Subject(oracle, slots, settings, device, lambda: secrets.randbits(62), [1e-6])
        rounds = Stopwatch(subject, first, second, watch).run().rounds
    except (ContestantFailed, ContestantGone) as error:
        raise sides.baseline_failed(error) from None
    finally:
        first.close()
        second.close()
        memory.close()
    return abs(median(clock.log_ratios(rounds)))


def _aa_problem(width: int) -> Problem:
    source = _AA_SOURCE.format(width=width)
    return Problem(
        id="same",
        suite="kernelproof",
        name="same",
        source=source,
        sha256=sha256_text(source),
        sizes={"full": {}},
    )
