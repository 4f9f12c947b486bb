"""The stages of one verification, in their order, and what they share: problem, contestants, memory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from pipeline.compile import Toolchain
from pipeline.contestant import loop
from pipeline.contestant.encoding import tensors
from pipeline.contestant.main import configure_torch
from pipeline.devices import locks
from pipeline.referee.call_limit import limit_calls
from pipeline.referee.checks.folding import first_trial
from pipeline.referee.checks.holding import check_held
from pipeline.referee.checks.probes import Probes
from pipeline.referee.checks.state import State
from pipeline.referee.checks.trials import Trials
from pipeline.referee.checks.weights import OtherWeights
from pipeline.referee.correctness.oracle import Oracle
from pipeline.referee.inputs.problem import LoadedProblem, outputs_of
from pipeline.referee.inputs.variants import describe
from pipeline.referee.ledger import Ended, Ledger
from pipeline.referee.provenance.kernels import check_kernels, kernels_matter
from pipeline.referee.provenance.reference_trace import ReferenceTrace
from pipeline.referee.sides import starting
from pipeline.referee.sides.candidate import Candidate
from pipeline.referee.timing.measuring import Measuring
from pipeline.referee.unbuilt import has_other_kernels
from pipeline.referee.warm_state import WarmState
from pipeline.sandbox import on_cores
from pipeline.types import Status
from pipeline.types.verify_request import VerifyRequest
from pipeline.workers.client import BuildService, Contestant
from pipeline.workers.shared_memory import (
    SharedMemory,
    SharedSlot,
    SharedWeights,
    free_bytes,
    lay_out,
    same_bits,
    share_weights,
    slot_bytes,
    slots_that_fit,
)

Progress = Callable[[str], None]


WORK_SLOTS = 8
"""What the trials need beside the slots, in slots: inputs, variants of them and the truth in float64."""


SCARCE_BYTES = 2 << 30
"""With less of its memory free a GPU is too full for the baseline and the referee."""


@dataclass(frozen=True)
class Tools:
    """What a verification uses of this machine."""

    build: BuildService
    progress: Progress
    cache: Path
    toolchain: Toolchain
    warm: WarmState
    more: bool = False
    """Whether another verification is likely to follow: then the cleanup of the present verification follows
    its verdict."""


@contextmanager
def alone(key: str, ledger: Ledger, tools: Tools) -> Iterator[None]:
    with tools.warm.alone(key, tools.progress) as note:
        asked = "Is the device used by this verification alone?"
        if note is not None:
            ledger.skipped("exclusive", asked, note)
        else:
            ledger.passed("exclusive", asked, "it held the lock that all kernelproof processes here respect")
        yield


class VerificationRun:
    """What one verification needs: the loaded problem, the two contestants, the memory they share."""

    def __init__(self, request: VerifyRequest, ledger: Ledger, tools: Tools) -> None:
        self._request, self._ledger, self._tools = request, ledger, tools
        self._settings = request.settings
        self._device = torch.device(request.device)
        self._memory = SharedMemory(self._device)
        self._candidate: Candidate | None = None
        self._baseline: Contestant | None = None
        self._seating = ThreadPoolExecutor(1, thread_name_prefix="baseline")
        self._weights_seed = ledger.seed("weights")
        self._kept_weights: frozenset[str] = frozenset()
        """Names of the candidate's tensors that stay as it made them."""

    def run(self) -> None:
        """All stages; returns when the candidate is correct, raises Ended otherwise."""
        ledger, settings, progress = self._ledger, self._settings, self._tools.progress
        configure_torch(settings.threads, tf32=settings.numerics == "tf32")
        loaded = LoadedProblem(self._request.problem, settings.size)
        with ledger.stage("reference"):
            progress("reference")
            self._make_room()
            candidate = self._started()
            candidate.begin(self._request.source, loaded, self._weights_seed)  # while the reference runs
            self._tools.warm.prepare(settings, self._device)
            if settings.measure:  # so does the baseline's process: a wrong candidate leaves it for the next
                self._prepare_baseline()
            model, slots, form, aliased = self._reference(loaded)
            weights = share_weights(self._memory, model.state_dict(), "weights")
            pristine = share_weights(self._memory, model.state_dict(), "baseline_weights")
        with ledger.stage("start"):
            progress("start")
            candidate.sit()
        with ledger.stage("load"):
            progress("load")
            candidate.load(weights, pristine)
        with ledger.stage("correctness"):
            progress("correctness")
            oracle = Oracle(loaded, model, form, self._device, settings.numerics)
            hurried = limit_calls(settings, loaded, model, ledger.seeds["layout"], self._device)
            trials = Trials(oracle, slots, form, hurried, self._device, ledger, self._ask)
            candidate = self._first_trial(trials, loaded, model, weights, pristine)
            if settings.measure:  # seated while the candidate is tried further
                seated = self._seated_soon(loaded, pristine)
            trials.run(aliased=aliased)
            state = State(oracle, weights, pristine, settings, ledger)
            state.check_unchanged(candidate)
            state.check_updated(candidate, slots[0], self._device)
        candidate.take_builds()
        # A candidate without kernels of its own is not timed. Another look follows the timed calls: a
        # candidate that computes itself until it is timed does not know how many calls that takes.
        baseline = self._seated if settings.measure and self._device.type == "cuda" else None
        traced = ReferenceTrace(loaded, model, settings, baseline, self._seating)
        self._check_kernels(loaded, slots[0], traced, timed_next=settings.measure)
        candidate.take_builds()
        failure = ledger.build_failure()
        if failure is not None and not has_other_kernels(self._request, ledger):
            raise failure
        others = OtherWeights(model, weights, pristine)
        probes = Probes(oracle, self._memory, self._request, self._device, ledger, slots[0], form, others)
        if not settings.measure:
            with ledger.stage("probes"):
                probes.run(candidate)
            return
        measuring = Measuring(
            oracle=oracle,
            slots=slots,
            settings=settings,
            device=self._device,
            ledger=ledger,
            memory=self._memory,
            pristine=pristine,
            weights_seed=self._weights_seed,
            reference_error=trials.reference_error,
            aliased=aliased,
            variants=trials.passed_variants,
            cache=self._tools.cache,
            toolchain=self._tools.toolchain,
            pool=self._tools.warm.pool,
        )
        cores = self._tools.warm.pool.shares.measured
        on_cpu = self._device.type == "cpu"
        with alone(locks.CPU, ledger, self._tools) if on_cpu else on_cores(cores):
            self._timed(loaded, measuring, probes, seated, weights, pristine, traced)

    def _check_kernels(
        self, loaded: LoadedProblem, slot: SharedSlot, traced: ReferenceTrace, *, timed_next: bool
    ) -> None:
        ledger, ask = self._ledger, self._require().ask
        again = ledger.kernels is not None
        with ledger.stage("kernels"):
            check_kernels(
                ask,
                slot,
                loaded.draw,
                ledger,
                self._settings,
                self._device,
                self._request.source,
                traced.begin,
                again=again,
                timed_next=timed_next,
            )

    def _timed(
        self,
        loaded: LoadedProblem,
        measuring: Measuring,
        probes: Probes,
        seated: Future[None],
        weights: SharedWeights,
        pristine: SharedWeights,
        traced: ReferenceTrace,
    ) -> None:
        """Timing, and what else needs the candidate's process after it."""
        ledger, progress = self._ledger, self._tools.progress
        with ledger.stage("settling"):
            progress("settling")
            seated.result()
            self._tools.warm.settle()
        with ledger.stage("timing"):
            progress("timing")
            self._pair(measuring, 0)
            pairs = 1
            while measuring.wants_pair(pairs):
                self._require().close()
                measuring.alone(pairs - 1)
                self._reseat(loaded, weights, pristine)
                self._pair(measuring, pairs)
                pairs += 1
        self._require().contestant.resume()
        if measuring.far_slower():
            probes.left_out("it is far slower than the baseline")
        else:
            with ledger.stage("timing"):
                measuring.replays(self._require(), self._seated())
            if kernels_matter(self._settings):
                self._check_kernels(loaded, measuring.slots[0], traced, timed_next=False)
            with ledger.stage("probes"):
                probes.run(self._require())
        with ledger.stage("timing"):
            self._require().close()
            measuring.alone(pairs - 1)
            if measuring.slowed_by_force():  # or the machine itself changed: another pair must show it too
                self._reseat(loaded, weights, pristine)
                self._pair(measuring, pairs)
                self._require().close()
                measuring.alone(pairs)
            measuring.conclude(self._seated())
        with ledger.stage("baselines"):
            measuring.further_baselines(self._seated(), progress)

    def _pair(self, measuring: Measuring, number: int) -> None:
        """Times the pair of this number, both seated, and judges whether the candidate waited its turns."""
        measuring.pair(self._require(), self._seated(), number)
        check_held(self._require().contestant, self._ledger, number)

    def blamed(self, ended: Ended) -> Ended:
        """How it ended, when what failed on our side did so because the candidate keeps the GPU's memory."""
        ours = ended.status is Status.INFRASTRUCTURE_ERROR
        if not ours or self._candidate is None or self._device.type != "cuda":
            return ended
        left, _ = torch.cuda.mem_get_info(self._device)  # our reserve is nobody else's either
        self._candidate.close()
        kept = torch.cuda.mem_get_info(self._device)[0] - left
        if left >= SCARCE_BYTES or kept < SCARCE_BYTES:
            return ended
        why = f"the candidate keeps {kept >> 20} MiB of the GPU's memory, and {left >> 20} MiB were left"
        return Ended(Status.OUT_OF_MEMORY, f"{why}: {ended.reason}", ended.details)

    def close(self) -> None:
        """Ends the contestants and gives all memory back; behind the verdict, if another one is to follow."""
        if self._candidate is not None:
            self._candidate.take_output()
        self._tools.warm.cleanup.later(self._end, self._memory.nbytes)
        if not self._tools.more:
            self._tools.warm.cleanup.wait()

    def _end(self) -> None:
        if self._candidate is not None:
            self._candidate.close()
        if self._baseline is not None:
            self._baseline.close()
        self._seating.shutdown()
        self._memory.close()
        if self._device.type == "cuda":
            torch.cuda.empty_cache()

    def _started(self) -> Candidate:
        contestant = starting.start(self._tools.warm.pool, self._tools.build, self._settings, self._device)
        self._candidate = Candidate(contestant, self._memory, self._settings, self._device, self._ledger)
        return self._candidate

    def _prepare_baseline(self) -> None:
        settings = self._settings
        gpus = starting.gpus(self._device)
        self._tools.warm.pool.refill(gpus, settings.memory_bytes, unsafe=settings.unsafe, count=1)

    def _seated_soon(self, loaded: LoadedProblem, pristine: SharedWeights) -> Future[None]:
        self._baseline = starting.start(
            self._tools.warm.pool, starting.no_builds, self._settings, self._device
        )
        return self._seating.submit(self._seat_baseline, loaded, pristine)

    def _require(self) -> Candidate:
        assert self._candidate is not None
        return self._candidate

    def _seated(self) -> Contestant:
        assert self._baseline is not None
        return self._baseline

    def _reseat(self, loaded: LoadedProblem, weights: SharedWeights, pristine: SharedWeights) -> None:
        """Another pair of fresh processes for candidate and baseline."""
        self._require().close()
        if self._baseline is not None:
            self._baseline.close()
        candidate = self._started()
        seated = self._seated_soon(loaded, pristine)
        self._load_again(candidate, loaded, weights, pristine)
        seated.result()

    def _ask(self, message: dict[str, Any], seconds: float, failure: Status) -> dict[str, Any]:
        """Asks the candidate's process, whichever it is by now."""
        return self._require().ask(message, seconds, failure)

    def _first_trial(
        self,
        trials: Trials,
        loaded: LoadedProblem,
        model: torch.nn.Module,
        weights: SharedWeights,
        pristine: SharedWeights,
    ) -> Candidate:
        """The first trial; afterwards it is settled which weights are the candidate's own. Raises Ended."""

        def afresh(keep: Collection[str]) -> None:
            self._require().close()
            self._kept_weights = frozenset(keep)
            with torch.no_grad():  # a reference with a state begins anew as well
                for name, tensor in model.state_dict().items():
                    tensor.copy_(pristine.views[name])
            self._load_again(self._started(), loaded, weights, pristine)

        self._kept_weights = first_trial(trials, self._ledger, self._require().differed, afresh)
        return self._require()

    def _load_again(
        self, candidate: Candidate, loaded: LoadedProblem, weights: SharedWeights, pristine: SharedWeights
    ) -> None:
        """Seats the candidate in a process that takes the place of the process before."""
        candidate.begin(self._request.source, loaded, self._weights_seed)
        for name, view in weights.views.items():
            view.copy_(pristine.views[name])
        candidate.sit()
        candidate.load(weights, pristine, self._kept_weights)

    def _seat_baseline(self, loaded: LoadedProblem, pristine: SharedWeights) -> None:
        starting.seat_baseline(
            self._seated(),
            loaded,
            self._memory,
            pristine.specs,
            self._weights_seed,
            self._settings,
            self._device,
        )

    def _make_room(self) -> None:
        """Waits for what the verification before gives back, where that is more memory than is free."""
        behind = self._tools.warm.cleanup
        if behind.nbytes > free_bytes(self._device):
            behind.wait()

    def _reference(
        self, loaded: LoadedProblem
    ) -> tuple[torch.nn.Module, list[SharedSlot], loop.OutputMeta, bool]:
        """The reference at work once: its model, slots laid out for its inputs and outputs, the form of its
        result, and whether that lies in its inputs. Raises Ended for a problem that cannot be judged."""
        ledger, device = self._ledger, self._device
        behind = self._tools.warm.cleanup
        model = loaded.construct(self._weights_seed, device)
        arguments = loaded.draw(ledger.seed("layout"), device)
        sample = loaded.tried(model, arguments, 0)
        ledger.inputs = describe(arguments)
        outputs, form = outputs_of(sample, device), loop.describe(sample)
        places = {t.untyped_storage().data_ptr() for t in tensors(arguments)}
        aliased = any(t.untyped_storage().data_ptr() in places for t in outputs)
        bytes_each = slot_bytes(arguments, outputs)
        count = slots_that_fit(bytes_each, device, behind.nbytes)
        if (count + WORK_SLOTS) * bytes_each > free_bytes(device):  # memory that is not free yet is needed
            behind.wait()
            count = slots_that_fit(bytes_each, device)
        del sample
        slots = lay_out(self._memory, arguments, outputs, count)
        del outputs
        if not same_bits(arguments, loaded.draw(ledger.seeds["layout"], device)):
            why = "its forward changes its inputs, or get_inputs depends on more than the seed"
            raise Ended(Status.INFRASTRUCTURE_ERROR, f"the problem cannot be judged: {why}")
        return model, slots, form, aliased
