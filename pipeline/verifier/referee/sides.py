"""Both sides of a measurement, candidate and baseline: how each starts and how its failures are named.

A sandboxed process is started, given its device and its memory, and loads its code. Candidate and baseline
start in the same way, so that they are timed on equal terms. The baseline's process runs the problem's own
`Model` and knows nothing of the candidate, nor the candidate of the baseline.
"""

from __future__ import annotations

import base64
import os
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

from kernelproof.backends import backend
from kernelproof.types import Build, BuildRequest, BuildState, VerifySettings
from kernelproof.types.verification import VerifyRequest
from kernelproof.verifier.build.compiler_output import refusal
from kernelproof.verifier.contestant import between_calls, encoding
from kernelproof.verifier.contestant.call_page import CallPage
from kernelproof.verifier.referee.environment import minor_number
from kernelproof.verifier.referee.inputs.problem import LoadedProblem
from kernelproof.verifier.referee.ledger import Ledger
from kernelproof.verifier.status_rules import (
    WEIGHTS,
    Cause,
    Ended,
    cause_of_exception,
    cause_of_process_end,
)
from kernelproof.verifier.workers import client
from kernelproof.verifier.workers.client import (
    BuildService,
    Contestant,
    ContestantFailed,
    ContestantGone,
)
from kernelproof.verifier.workers.pool import WarmPool
from kernelproof.verifier.workers.shared_memory import SharedMemory, SharedWeights, same_bits
from kernelproof.wording import counted

FLUSH_MULTIPLE = 2
"""The L2 cache is emptied by reading this many times its size."""
LARGE_BYTES, CALLS_OF_ROOM = 256 << 20, 4
"""Where the inputs of one call have so many bytes, contestants get room for the tensors of so many calls."""
LARGE_PART, KEPT_PART = 64, 2
"""There is room where inputs take less than one of 64 parts of a GPU's memory, and we keep less than half."""

CANDIDATE_ARENAS = ("inputs", "outputs", "weights")
BASELINE_ARENAS = ("baseline_inputs", "baseline", "baseline_weights")
"""Nothing of it is shared: a candidate could write to its own while the baseline reads, or read what the
baseline is given first."""


def flush_bytes(device: torch.device) -> int:
    """Bytes read between calls to empty the L2 cache; 0 on a CPU."""
    if device.type != "cuda":
        return 0
    return FLUSH_MULTIPLE * int(torch.cuda.get_device_properties(device).L2_cache_size)


def start(pool: WarmPool, build: BuildService, settings: VerifySettings, device: torch.device) -> Contestant:
    """A process that comes up while the caller goes on; `come_up` waits for it."""
    return pool.take(build, gpus(device), settings.memory_bytes, unsafe=settings.unsafe)


def gpus(device: torch.device) -> tuple[int, ...]:
    """What a process needs of /dev for this device."""
    return (minor_number(device),) if device.type == "cuda" else ()


def settled(device: torch.device) -> None:
    """Waits until what was queued on the device is done, so that another process sees it."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def make_room(device: torch.device, input_bytes: int) -> None:
    """Gives memory that torch keeps in this process for later back to a GPU on which little is free.

    The candidate and the baseline need room too. `input_bytes`: of one call, whose other tensors are about as
    large. Beside another GPU's judge the driver takes 8 ms to say what is free, so it is asked no more than
    needed.
    """
    if device.type != "cuda" or input_bytes < LARGE_BYTES:
        return
    total = torch.cuda.get_device_properties(device).total_memory
    if input_bytes >= total // LARGE_PART or torch.cuda.memory_reserved(device) >= total // KEPT_PART:
        free, _ = torch.cuda.mem_get_info(device)
        if free < CALLS_OF_ROOM * input_bytes:
            torch.cuda.empty_cache()


def measured_cores(contestant: Contestant, settings: VerifySettings, device: torch.device) -> list[int]:
    """The cores that a measured process is held to: on a GPU those that are kept for it, on a CPU as many as
    it has threads. None when all may be used."""
    if device.type == "cuda" or not settings.threads:
        return list(contestant.cores)
    return sorted(os.sched_getaffinity(0))[: settings.threads]


def hello(settings: VerifySettings, device: torch.device) -> dict[str, Any]:
    """The first request: which device to use, and how. On a GPU its answer takes a third of a second, on
    whatever core the process came up: those of a measurement have enough to do."""
    on_gpu = device.type == "cuda"
    first = client.hello(settings, "cuda:0" if on_gpu else "cpu", interpret=not on_gpu)  # its only GPU
    cubin = base64.b64encode(between_calls.compiled(device)).decode()
    return first | {"flush_bytes": flush_bytes(device), "cubin": cubin}


def come_up(contestant: Contestant, settings: VerifySettings, device: torch.device) -> None:
    """Waits for a process and gives it device and cores. Raises Ended when it does not come up."""
    with _starting():
        contestant.wait_ready()
        request = hello(settings, device)
        if contestant.prepared != request:
            contestant.ask(request, seconds=settings.load_seconds)
        if cores := measured_cores(contestant, settings, device):
            contestant.ask({"op": "hold", "cores": cores}, seconds=settings.load_seconds)


def attach(
    contestant: Contestant, memory: SharedMemory, arenas: Sequence[str], settings: VerifySettings
) -> None:
    """Gives a process these arenas of the shared memory. Raises what `Contestant.ask` raises."""
    # The memory it shares with us counts as its own.
    contestant.allow_memory(settings.memory_bytes + memory.host_bytes)
    with ExitStack() as sent:
        message, fds = memory.announce(*arenas)
        if memory.device.type == "cuda":
            contestant.page = CallPage()
            sent.callback(os.close, contestant.page.descriptor)
            message["calls"] = True
            fds.append(contestant.page.descriptor)
        contestant.ask(message, seconds=settings.load_seconds, fds=fds)


@contextmanager
def _starting() -> Iterator[None]:
    """A failure of our process before it has any foreign code is no fault of a candidate's."""
    try:
        yield
    except (ContestantFailed, ContestantGone) as error:
        details = error.traceback if isinstance(error, ContestantFailed) else error.outcome.stderr
        why = f"the sandboxed process did not start: {error}"
        raise Cause.NOT_STARTED.ended(why, details) from None


def seat_baseline(
    contestant: Contestant,
    loaded: LoadedProblem,
    memory: SharedMemory,
    weights: dict[str, dict[str, Any]],
    seed: int,
    settings: VerifySettings,
    device: torch.device,
    arenas: Sequence[str] = BASELINE_ARENAS,
) -> None:
    """Loads the problem's `Model` into a started process. Raises Ended when that fails."""
    construct_baseline(contestant, loaded, init_arguments(loaded), seed, settings, device)
    give_baseline(contestant, memory, weights, settings, arenas)


def construct_baseline(
    contestant: Contestant,
    loaded: LoadedProblem,
    arguments: list[Any],
    seed: int,
    settings: VerifySettings,
    device: torch.device,
) -> None:
    """The part of `seat_baseline` for which no memory is shared yet. `arguments`: the `init_arguments`."""
    come_up(contestant, settings, device)
    try:
        contestant.ask(
            {"op": "load", "source": loaded.sized_source(), "seed": seed}, seconds=settings.load_seconds
        )
        construct = {"op": "construct", "class": "Model", "arguments": arguments, "seed": seed}
        contestant.ask(construct, seconds=settings.load_seconds)
    except (ContestantFailed, ContestantGone) as error:
        raise baseline_failed(error) from None


def give_baseline(
    contestant: Contestant,
    memory: SharedMemory,
    weights: dict[str, dict[str, Any]],
    settings: VerifySettings,
    arenas: Sequence[str] = BASELINE_ARENAS,
) -> None:
    """The rest: the arenas, and the reference's weights."""
    try:
        attach(contestant, memory, arenas, settings)
        if weights:
            contestant.ask({"op": "weights", "tensors": weights}, seconds=settings.load_seconds)
    except (ContestantFailed, ContestantGone) as error:
        raise baseline_failed(error) from None


def baseline_failed(error: ContestantFailed | ContestantGone) -> Ended:
    """How a verification ends when the baseline's process failed: no fault of the candidate's."""
    return Cause.BASELINE_FAILED.ended(f"the baseline's process failed: {error}")


def init_arguments(loaded: LoadedProblem) -> list[Any]:
    """Constructor arguments as JSON. Raises Ended for one that has no plain form (a tensor, an object)."""

    def refuse(_: Any) -> dict[str, Any]:
        raise TypeError("tensors as constructor arguments are not supported")

    try:
        return [encoding.encode(argument, refuse) for argument in loaded.init_arguments()]
    except TypeError as error:
        why = f"the problem cannot be handed over: {error}"
        raise Cause.PROBLEM_FAILED.ended(why) from None


def no_builds(request: BuildRequest) -> Build:
    """The baseline's build service: a reference builds nothing."""
    return Build(
        key="", state=BuildState.UNAVAILABLE, name=request.name, log="a reference may not build extensions"
    )


_NAMED, _LONGEST = 5, 60
"""The number of weights that a message names, and of characters of each name: a candidate chooses its
names."""


class CandidateProcess:
    """One process with the candidate in it. A failure there raises Ended with the fitting status."""

    def __init__(
        self,
        contestant: Contestant,
        memory: SharedMemory,
        settings: VerifySettings,
        device: torch.device,
        ledger: Ledger,
    ) -> None:
        self._memory, self._settings, self._device, self._ledger = memory, settings, device, ledger
        self.contestant = contestant
        self._on_gpu = backend(settings.backend).on_gpu
        """Whether its backend is for a GPU; on a CPU its kernels are then interpreted."""
        self._long_call = False
        """Whether the next call is one in which kernels are compiled or tuned."""
        self._up: Future[None] = Future()
        self._constructed: Future[dict[str, Any]] = Future()
        """ModelNew's state, as the candidate tells it."""
        self._shared: dict[str, dict[str, Any]] = {}
        """Specs of the weights that reference and candidate have in common, by name."""
        self.differed: frozenset[str] = frozenset()
        """Names of those that ModelNew made with other values than the reference's."""
        self.own_names: frozenset[str] = frozenset()
        """Names of its tensors that the reference has not, or has in another form."""
        self.renamed: dict[str, str] = {}
        """Its own name for a tensor of the reference's that it lacks, by the reference's: the only ones of
        their form, with the same values."""
        self.folded: dict[str, torch.Tensor] = {}
        """The tensors that keep the values that ModelNew made, with a copy of these values in host memory."""

    def begin(self, request: VerifyRequest, loaded: LoadedProblem, seed: int) -> None:
        """Has the process come up, import the candidate and construct ModelNew, while the caller goes on:
        `wait_started` and `load` wait for that and tell what came of it. Raises Ended for a problem that
        cannot be handed over."""
        arguments = init_arguments(loaded)
        ahead = ThreadPoolExecutor(1, thread_name_prefix="candidate")
        self._up = ahead.submit(come_up, self.contestant, self._settings, self._device)
        self._long_call = request.long_first_call
        self._constructed = ahead.submit(self._construct, request, arguments, seed)
        ahead.shutdown(wait=False)

    def _construct(self, request: VerifyRequest, arguments: list[Any], seed: int) -> dict[str, Any]:
        seconds = self._settings.load_seconds
        load = {"op": "load", "source": request.source, "seed": seed}
        with _opened(request.first_calls) as fds:
            self.ask(load, seconds, Cause.RAISED_IN_LOAD, fds)
        message = {"op": "construct", "class": "ModelNew", "arguments": arguments, "seed": seed}
        return self.ask(message, seconds, Cause.RAISED_IN_LOAD)

    def is_up(self) -> bool:
        """Whether the process has come up, or has failed to: `wait_started` will not wait."""
        return self._up.done()

    def wait_started(self) -> None:
        """Waits until the process is up. Raises Ended when it does not come."""
        self._up.result()
        self._ledger.sandbox = self.contestant.sandbox

    def load(self, weights: SharedWeights, pristine: SharedWeights, keep: Collection[str] = ()) -> None:
        """Waits for ModelNew, shares memory with it, and lets its weights start where the reference's do.

        `weights` lies where the candidate can write, `pristine` does not. Tensors named in `keep` stay as
        ModelNew made them. Raises Ended for what the candidate did wrong so far.
        """
        seconds = self._settings.load_seconds
        reply = self._constructed.result()
        try:
            attach(self.contestant, self._memory, CANDIDATE_ARENAS, self._settings)
        except (ContestantFailed, ContestantGone) as error:
            raise self.ended(error, Cause.RAISED_IN_RUNNER, seconds) from None
        found = reply.get("state")
        mine = found if isinstance(found, dict) else {}
        self._shared = {
            name: spec
            for name, spec in weights.specs.items()
            if mine.get(name) == [spec["dtype"], spec["shape"]]
        }
        self.own_names = frozenset(map(str, mine.keys() - self._shared.keys()))
        self.differed, self.folded = frozenset(), {}
        self.renamed = self._renamed(mine, weights, pristine)
        if self._shared:
            self.read_state(self._shared, Cause.RAISED_IN_LOAD, seconds)
            self.differed = frozenset(
                name for name in self._shared if not same_bits(weights.views[name], pristine.views[name])
            )
            kept = self._shared.keys() & set(keep)
            self.folded = {name: weights.views[name].to("cpu", copy=True) for name in kept}
            rest = self._shared.keys() - kept
            self.write_state(rest, weights, pristine.views, Cause.RAISED_IN_LOAD, seconds)
        self._record_weights(len(weights.specs), len(mine))
        self._ledger.own_weights = self._own(weights.specs, mine)

    def _renamed(
        self, mine: Mapping[str, Any], weights: SharedWeights, pristine: SharedWeights
    ) -> dict[str, str]:
        lacking, own = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
        for name, spec in weights.specs.items():
            if name not in self._shared:
                lacking[repr([spec["dtype"], spec["shape"]])].append(name)
        for name in self.own_names & mine.keys():
            own[repr(mine[name])].append(name)
        pairs = {
            theirs[0]: own[form][0] for form, theirs in lacking.items() if len(theirs) == len(own[form]) == 1
        }
        if not pairs:
            return {}
        tensors = {own: weights.specs[name] for name, own in pairs.items()}
        self.ask({"op": "state", "tensors": tensors}, self._settings.load_seconds, Cause.RAISED_IN_LOAD)
        return {
            name: own for name, own in pairs.items() if same_bits(weights.views[name], pristine.views[name])
        }

    def _record_weights(self, of: int, mine: int) -> None:
        """Records what came of the weights: the reference has `of` tensors, the candidate `mine`."""
        matched, equal = len(self._shared), len(self._shared) - len(self.differed)
        figures = {"reference": of, "candidate": mine, "matched": matched, "equal_before": equal}
        if not of:
            self._ledger.skipped(WEIGHTS, "the reference has no parameters", figures)
            return
        tensors = counted(of, "tensor")
        seen = (
            f"{matched} of {tensors} matched by name and shape; {equal} held the reference's values already"
        )
        if self.folded:
            figures["kept"] = len(self.folded)
            seen += f"; folded: kept {len(self.folded)} as ModelNew made them ({_some(sorted(self.folded))})"
        else:
            seen += ", the others got them now"
        self._ledger.passed(WEIGHTS, seen, figures)

    def _own(self, theirs: Collection[str], mine: Collection[str]) -> str:
        """In words, what tensors the candidate has instead of the reference's; empty if it does not."""
        alone = [name for name in theirs if name not in self._shared]
        own = [name for name in mine if name not in self._shared]
        if not alone or not own:
            return ""
        weights = f"{counted(len(theirs), 'weight')} {'has' if len(alone) == 1 else 'have'}"
        return (
            f"{len(alone)} of the reference's {weights} no partner of the same name, shape "
            f"and dtype in ModelNew ({_some(alone)}), and {len(own)} of ModelNew's kept the initial values "
            f"that it gave them ({_some(own)}): names and shapes of its state_dict() must "
            "equal the reference's"
        )

    @property
    def shared(self) -> set[str]:
        """Names of the tensors that reference and candidate have in common."""
        return set(self._shared)

    def read_state(self, names: Collection[str], failure: Cause, seconds: float | None = None) -> set[str]:
        """Has it copy these tensors to where the weights lie that it shares; which of them it has no more."""
        tensors = {name: self._shared[name] for name in names}
        reply = self.ask({"op": "state", "tensors": tensors}, seconds or self._settings.call_seconds, failure)
        gone = reply.get("missing")
        return tensors.keys() & {str(name) for name in gone} if isinstance(gone, list) else set()

    def write_state(
        self,
        names: Collection[str],
        weights: SharedWeights,
        values: Mapping[str, torch.Tensor],
        failure: Cause,
        seconds: float | None = None,
    ) -> None:
        """Gives these tensors of the candidate's their values, by way of the `weights` that it shares."""
        for name in names:
            weights.views[name].copy_(values[name])
        settled(self._device)
        tensors = {self.renamed.get(name, name): weights.specs[name] for name in names}
        message = {"op": "weights", "tensors": tensors}
        self.ask(message, seconds or self._settings.call_seconds, failure)

    def ask(
        self, message: dict[str, Any], seconds: float, failure: Cause, fds: Sequence[int] = ()
    ) -> dict[str, Any]:
        """Asks the contestant; a failure there ends the verification with the fitting status.

        A first call in which kernels are compiled may take as long as the settings say of any call.
        """
        if self._long_call and message["op"] == "call":
            self._long_call = False
            seconds = max(seconds, self._settings.call_seconds)
        try:
            return self.contestant.ask(message, seconds=seconds, fds=fds)
        except (ContestantFailed, ContestantGone) as error:
            raise self.ended(error, failure, seconds) from None

    def ended(
        self, error: ContestantFailed | ContestantGone, failure: Cause, seconds: float | None = None
    ) -> Ended:
        """How the verification ends when the contestant failed so. `failure`: the cause where it raised;
        `seconds`: what it had to answer."""
        self.take_builds()
        if isinstance(error, ContestantFailed):
            return self._ended_by_exception(error, failure)
        outcome = error.outcome
        if outcome.state in ("ok", "error", "crash", "lost"):  # its own end, not ours
            ending = f"signal {outcome.signal}" if outcome.signal else f"exit {outcome.exit_code}"
            self._ledger.exit = ending
        else:
            ours = outcome.state == "killed" and outcome.reason in ("closed", "killed")
            ending = "stopped by us" if ours else outcome.reason
        limit = "" if seconds is None else f" of {seconds:.3g} s"
        details = "\n".join(part for part in (outcome.stdout, outcome.stderr) if part)
        cause = cause_of_process_end(outcome.state, is_ours=error.is_ours, timed_out=error.timed_out)
        match cause:
            case Cause.ABOVE_MEMORY:
                return cause.ended("its processes exceeded the memory limit", details)
            case Cause.KILLED_FROM_OUTSIDE:
                return cause.ended(f"its process was lost: {outcome.reason}", details)
            case Cause.NO_ANSWER:
                return cause.ended(f"it did not answer within its time limit{limit}", details)
            case Cause.ABOVE_TIME:
                return cause.ended(f"it exceeded its {outcome.state} limit", details)
        return cause.ended(f"{error} ({ending})", details)

    def _ended_by_exception(self, error: ContestantFailed, failure: Cause) -> Ended:
        interpreted = self._device.type == "cpu" and self._on_gpu
        cause = cause_of_exception(error.kind, failure, interpreted=interpreted)
        if cause is Cause.RAISED_NO_MEMORY:
            return cause.ended(f"it ran out of memory: {error.message}", error.traceback)
        if cause is Cause.NOT_INTERPRETABLE:
            why = f"this machine has no GPU, and the interpreter cannot run a kernel: {error.message}"
            return cause.ended(why[:500], error.traceback)
        if cause is Cause.NOT_COMPILED:
            return cause.ended(refusal(error.type, error.message), error.traceback)
        # An exception about an extension that was not built is that build's failure.
        broken = self._ledger.build_failure(error.message)
        return broken or failure.ended(_raised(error)[:500], error.traceback)

    def attach(self, message: dict[str, Any], fds: Sequence[int]) -> None:
        """Gives the process more memory to share. Raises as `ask` does."""
        try:
            self.contestant.ask(message, seconds=self._settings.load_seconds, fds=fds)
        except (ContestantFailed, ContestantGone) as error:
            raise self.ended(error, Cause.RAISED_IN_RUNNER) from None

    def take_builds(self) -> None:
        """Notes what the candidate had built so far."""
        self._ledger.builds[:] = self.contestant.builds

    def take_output(self) -> None:
        """Notes what its processes have written."""
        self._ledger.process_output = self.contestant.output() or self._ledger.process_output

    def close(self) -> None:
        """Ends the process."""
        self.take_builds()
        self.contestant.close()
        self.take_output()


@contextmanager
def _opened(file: str | None) -> Iterator[Sequence[int]]:
    """The file's descriptor; none without a file, or where the cache was cleared meanwhile."""
    try:
        descriptors = () if file is None else (os.open(file, os.O_RDONLY | os.O_CLOEXEC),)
    except OSError:
        descriptors = ()
    try:
        yield descriptors
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _some(names: Sequence[str]) -> str:
    """The first few of these names."""
    return ", ".join(name[:_LONGEST] for name in names[:_NAMED]) + (", ..." if len(names) > _NAMED else "")


def _raised(error: ContestantFailed) -> str:
    """The exception; the line that raised it, where the exception itself says nothing: `assert k == n`."""
    if error.message.strip():
        return f"{error.type}: {error.message}"
    lines = error.traceback.splitlines()
    frames = [number for number, line in enumerate(lines) if line.startswith('  File "')]
    code = lines[frames[-1] + 1].strip() if frames and frames[-1] + 1 < len(lines) else ""
    return f"{error.type} at `{code}`" if code else error.type
