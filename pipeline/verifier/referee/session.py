"""What the stages of one verification share: problem, reference, both sides, and the memory between them.

`WarmState` is what a referee keeps from one verification to the next: the warm pool, canaries, the deferred
cleanup, and the hold of the device for as long as the cleanup lasts.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from kernelproof.errors import KernelproofError
from kernelproof.types import CoreShares, Rigor, Status, VerifySettings
from kernelproof.types.verification import VerifyRequest
from kernelproof.verifier.build import Toolchain
from kernelproof.verifier.contestant import loop
from kernelproof.verifier.devices import gpu_health, locks
from kernelproof.verifier.referee import sides
from kernelproof.verifier.referee.checks.probes import Probes
from kernelproof.verifier.referee.checks.trials import Trials
from kernelproof.verifier.referee.correctness.oracle import Oracle
from kernelproof.verifier.referee.inputs.problem import LoadedProblem
from kernelproof.verifier.referee.ledger import Ledger
from kernelproof.verifier.referee.provenance.kernels import ReferenceTrace
from kernelproof.verifier.referee.sides import CandidateProcess
from kernelproof.verifier.referee.timing.measuring import Measuring
from kernelproof.verifier.status_rules import EXCLUSIVE, Cause, Ended, has_other_kernels
from kernelproof.verifier.workers.client import BuildService, Contestant
from kernelproof.verifier.workers.pool import DeferredCleanup, WarmPool
from kernelproof.verifier.workers.shared_memory import SharedMemory, SharedSlot, SharedWeights

LONG_SECONDS = 0.5
"""A reference whose construction takes longer has large weights: to draw them takes the baseline as long."""

Progress = Callable[[str], None]

NOT_ENDED = "a call that did not end"
"""After which a GPU is looked at."""

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
    """Whether another verification is likely to follow: then this one's processes end after its verdict."""


@contextmanager
def alone(key: str, ledger: Ledger, tools: Tools) -> Iterator[None]:
    """Holds a device for this verification, and records whether nobody else could use it meanwhile."""
    with tools.warm.alone(key, tools.progress) as note:
        if note is not None:
            ledger.skipped(EXCLUSIVE, note)
        else:
            ledger.passed(EXCLUSIVE, "it held the lock that all kernelproof processes here respect")
        yield


class Session:
    """One verification. Each stage reads what the stages before it have set, and sets its own."""

    loaded: LoadedProblem
    model: torch.nn.Module
    """The reference, on the device."""
    slots: list[SharedSlot]
    spare: list[SharedSlot]
    """Further places for results, where there are few slots."""
    form: loop.OutputMeta
    """The form of the reference's result."""
    aliased: frozenset[int]
    """The numbers of the input tensors in which the reference's result lies."""
    weights: SharedWeights
    """The reference's weights where the candidate can write."""
    pristine: SharedWeights
    """The same where it cannot."""
    oracle: Oracle
    trials: Trials
    traced: ReferenceTrace
    probes: Probes
    longest_call: float
    """Seconds that a call may take in a trial."""
    measuring: Measuring
    ready: Future[None]
    """The baseline's process has loaded the reference."""

    def __init__(self, request: VerifyRequest, ledger: Ledger, tools: Tools) -> None:
        self.request, self.ledger, self.tools = request, ledger, tools
        self.settings = request.settings
        self.device = torch.device(request.device)
        self.memory = SharedMemory(self.device)
        self.weights_seed = ledger.seed("weights")
        self.kept_weights: frozenset[str] = frozenset()
        """Names of the candidate's tensors that stay as it made them."""
        self.pairs = 0
        """Pairs of processes that were measured."""
        self.waiting = ThreadPoolExecutor(1, thread_name_prefix="baseline")
        """Asks the baseline's process, one thing after the other, while the candidate is dealt with."""
        self.held = ExitStack()
        """What is held until the last stage is over: the cores of the measurement."""
        self._candidate: CandidateProcess | None = None
        self._baseline: Contestant | None = None
        self._takes_used = self._shares_baseline
        """Whether the baseline may have a process that has served another."""
        self._is_used = False
        """Whether it has one, and may have a fresh one in its place."""
        self._arguments: list[Any] = []
        """Of the reference's constructor, encoded."""
        self.is_concluded = False
        """Whether the baseline was measured to the end."""
        self._begun: Future[None]
        """The baseline's process has constructed the reference."""

    @property
    def on_gpu(self) -> bool:
        """Whether it runs on a GPU."""
        return self.device.type == "cuda"

    @property
    def has_other_kernels(self) -> bool:
        """Whether the candidate has native code besides torch's extensions, as far as is known by now."""
        return has_other_kernels(self.request.source, self.request.device, self.ledger.kernels)

    @property
    def candidate(self) -> CandidateProcess:
        """The candidate's process, whichever it is by now."""
        assert self._candidate is not None
        return self._candidate

    @property
    def baseline(self) -> Contestant:
        """The baseline's process, whichever it is by now."""
        assert self._baseline is not None
        return self._baseline

    def ask(self, message: dict[str, Any], seconds: float, failure: Cause) -> dict[str, Any]:
        """Asks the candidate's process. Raises Ended with the status that fits what goes wrong there."""
        return self.candidate.ask(message, seconds, failure)

    def start_candidate(self) -> None:
        """Starts a process that imports the candidate and constructs ModelNew while the caller goes on."""
        contestant = sides.start(self.tools.warm.pool, self.tools.build, self.settings, self.device)
        self._candidate = CandidateProcess(contestant, self.memory, self.settings, self.device, self.ledger)
        self._candidate.begin(self.request, self.loaded, self.weights_seed)

    @contextmanager
    def baseline_meanwhile(self) -> Iterator[None]:
        """Where the block takes long, the baseline's process begins beside it."""
        arguments = sides.init_arguments(self.loaded)  # by nobody else while the generator draws weights

        def begin() -> None:
            with suppress(KernelproofError):  # it begins anew when it is wanted, and that tells what is wrong
                self._begin_baseline(arguments)

        timer = threading.Timer(LONG_SECONDS, begin)
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()

    def start_baseline(self) -> None:
        """Starts a process that loads the reference while the caller goes on; `ready` waits for it."""
        if self._baseline is None:
            self._begin_baseline(sides.init_arguments(self.loaded))
        self.ready = self.waiting.submit(self._give_baseline)

    @property
    def _shares_baseline(self) -> bool:
        """Whether one process may serve several baselines. On a CPU the heap of a used process takes other
        times than a fresh one's; compiled baselines leave too much behind."""
        return self.on_gpu and self.settings.rigor is Rigor.QUICK and not self.settings.baselines

    def _begin_baseline(self, arguments: list[Any]) -> None:
        pool, settings, used = self.tools.warm.pool, self.settings, None
        if self._takes_used:
            used = pool.take_used(sides.gpus(self.device), settings.memory_bytes, unsafe=settings.unsafe)
        self._is_used = used is not None
        self._baseline = used or sides.start(pool, sides.no_builds, settings, self.device)
        self._arguments = arguments
        self._begun = self.waiting.submit(self._construct_baseline)

    def _construct_baseline(self) -> None:
        sides.construct_baseline(
            self.baseline, self.loaded, self._arguments, self.weights_seed, self.settings, self.device
        )

    def restart(self) -> None:
        """A fresh pair of processes in place of the two. Raises Ended when one of them does not come up."""
        self._takes_used = False
        self.candidate.close()
        if self._baseline is not None:
            self._baseline.close()
            self._baseline = None
        self.start_candidate()
        self.start_baseline()
        self.load_again()
        self.ready.result()

    def construct_after_late_call(self) -> None:
        """As `construct_afresh`, once the GPU is known to be fit. Raises DeviceUnfit."""
        self.candidate.close()
        gpu = self.ledger.environment.gpu if self.ledger.environment is not None else None
        if gpu is not None:
            gpu_health.confirm(self.request.device, gpu.uuid, NOT_ENDED, reserve=self.tools.warm.canaries)
        self.construct_afresh(self.kept_weights)

    def construct_afresh(self, keep: Collection[str]) -> None:
        """A fresh process for the candidate, whose tensors of these names stay as ModelNew makes them."""
        self.candidate.close()
        self.kept_weights = frozenset(keep)
        with torch.no_grad():  # a reference with a state begins anew as well
            for name, tensor in self.model.state_dict().items():
                tensor.copy_(self.pristine.views[name])
        self.start_candidate()
        self.load_again()

    def load_again(self) -> None:
        """Waits for a candidate's process that takes the place of the one before."""
        for name, view in self.weights.views.items():
            view.copy_(self.pristine.views[name])
        self.candidate.wait_started()
        self.candidate.load(self.weights, self.pristine, self.kept_weights)

    def blamed(self, ended: Ended) -> Ended:
        """How it ended, when what failed on our side did so because the candidate keeps the GPU's memory."""
        ours = ended.status is Status.INFRASTRUCTURE_ERROR
        if not ours or self._candidate is None or not self.on_gpu:
            return ended
        self.tools.warm.pool.enough()
        left, _ = torch.cuda.mem_get_info(self.device)  # what we hold in reserve is nobody else's either
        self._candidate.close()
        kept = torch.cuda.mem_get_info(self.device)[0] - left
        if left >= SCARCE_BYTES or kept < SCARCE_BYTES:
            return ended
        why = f"the candidate keeps {kept >> 20} MiB of the GPU's memory, and {left >> 20} MiB were left"
        return Cause.KEEPS_GPU_MEMORY.ended(f"{why}: {ended.reason}", ended.details)

    def close(self) -> None:
        """Ends the contestants and gives all memory back; after the verdict, if another one is to follow."""
        if self._candidate is not None:
            self._candidate.take_output()
        pool, cleanup = self.tools.warm.pool, self.tools.warm.cleanup
        pool.enough()
        cleanup.later(self._end, self.memory.nbytes)
        cleanup.later(pool.under_way())  # after the cleanup the device is let go
        if not self.tools.more:
            cleanup.wait()

    def _end(self) -> None:
        if self._candidate is not None:
            self._candidate.close()
        if self._baseline is not None:
            self._end_baseline()
        self.waiting.shutdown()
        self.memory.close()
        if self.on_gpu:
            torch.cuda.empty_cache()

    def _end_baseline(self) -> None:
        settings, pool = self.settings, self.tools.warm.pool
        if self.is_concluded and self._shares_baseline and self.tools.more:
            gpus = sides.gpus(self.device)
            pool.put_back(self.baseline, gpus, settings.load_seconds, unsafe=settings.unsafe)
            return
        self._is_used = False
        self.baseline.close()
        self.waiting.shutdown()
        self.baseline.close()  # a fresh one may have taken its place just before

    def _give_baseline(self) -> None:
        try:
            self._begun.result()
            self._give_memory()
        except Ended:
            if not self._is_used:
                raise
            self.baseline.close()  # what another reference left there may be to blame
            self._baseline = sides.start(self.tools.warm.pool, sides.no_builds, self.settings, self.device)
            self._construct_baseline()
            self._give_memory()

    def _give_memory(self) -> None:
        sides.give_baseline(self.baseline, self.memory, self.pristine.specs, self.settings)


class LeftHold:
    """A device that is still held when the verification is over. The first to come takes it: the next
    verification, or the work that lets go of it."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._left: locks.Hold | None = None
        self._times = 0

    def leave(self, hold: locks.Hold) -> Callable[[], None]:
        """What lets go of it, unless it was taken meanwhile (and maybe left again)."""
        with self._guard:
            self._left = hold
            self._times += 1
            this = self._times

        def free() -> None:
            if (left := self.reclaim(this)) is not None:
                left.release()

        return free

    def reclaim(self, this: int | None = None) -> locks.Hold | None:
        """The hold that was left (that `this` time), if it is still there."""
        with self._guard:
            if this not in (None, self._times):
                return None
            left, self._left = self._left, None
        return left


@dataclass(frozen=True)
class WarmState:
    """Processes and locks that last from one verification to the next."""

    pool: WarmPool = field(default_factory=WarmPool)
    canaries: gpu_health.Reserve = field(default_factory=gpu_health.Reserve)
    cleanup: DeferredCleanup = field(default_factory=DeferredCleanup)
    left: LeftHold = field(default_factory=LeftHold)

    @contextmanager
    def alone(self, device_key: str, on_wait: Callable[[str], None]) -> Iterator[str | None]:
        """Holds a device as `locks.held` does, and beyond the block until what it left behind is done:
        the GPU memory of large inputs is given back there, and other processes would miss it.

        Where the next block comes before that, and no process waits, the device is not let go in between.
        """
        hold = self.left.reclaim()
        if hold is not None and (hold.key != device_key or locks.wanted(hold)):
            try:
                self.cleanup.wait()
            finally:
                hold.release()
            hold = None
        if hold is None:
            hold = locks.take(device_key, on_wait)
        try:
            yield hold.note
        finally:
            self.cleanup.later(self.left.leave(hold))

    def share(self, shares: CoreShares) -> None:
        """From now on these cores are kept for what is measured."""
        if shares != self.pool.shares:
            self.cleanup.wait()
            self.pool.share(shares)

    def prepare(self, settings: VerifySettings, device: torch.device, may_begin: Callable[[], bool]) -> None:
        """Lets what is in reserve do on the device what it can before it is wanted, while nothing is timed:
        processes from when `may_begin` says so, until `settle`. On a CPU they have no context to make."""
        if device.type == "cuda":
            request, gpus = sides.hello(settings, device), sides.gpus(device)
            self.pool.prepare(request, gpus, unsafe=settings.unsafe, may_begin=may_begin)
        self.canaries.prepare()

    def settle(self) -> None:
        """Returns when nothing of all this takes time from a measurement."""
        self.pool.enough()  # requests that were begun end while we wait for the rest
        self.cleanup.wait()
        self.pool.settle()
        self.canaries.settle()

    def close(self) -> None:
        """Ends all of it. It can be used again."""
        self.cleanup.wait()
        self.pool.close()
        self.canaries.close()
