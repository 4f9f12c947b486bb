"""Starting one side: a sandboxed process is started, given its device and its memory, and loads its code.

Candidate and baseline start in the same way, so that they are timed on equal terms. The baseline's process
runs the problem's own `Model` and knows nothing of the candidate, nor the candidate of the baseline.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from kernelproof.backends import backend
from kernelproof.types import Build, BuildRequest, BuildState, VerifySettings
from kernelproof.verifier.contestant import encoding
from kernelproof.verifier.referee.environment import minor_number
from kernelproof.verifier.referee.inputs.problem import LoadedProblem
from kernelproof.verifier.status_rules import Cause, Ended
from kernelproof.verifier.workers.client import (
    BuildService,
    Contestant,
    ContestantFailed,
    ContestantGone,
    Equipment,
)
from kernelproof.verifier.workers.pool import WarmPool
from kernelproof.verifier.workers.shared_memory import SharedMemory

FLUSH_MULTIPLE = 2
"""The L2 cache is emptied by rewriting this many times its size."""
LARGE_BYTES, CALLS_OF_ROOM = 256 << 20, 4
"""Where the inputs of one call have so many bytes, contestants get room for the tensors of so many calls."""

CANDIDATE_ARENAS = ("inputs", "outputs", "weights")
BASELINE_ARENAS = ("inputs", "baseline", "baseline_weights")
"""The baseline's weights lie apart: a candidate could write to its own while the baseline reads them."""


def flush_bytes(device: torch.device) -> int:
    """Bytes rewritten between calls to empty the L2 cache; 0 on a CPU."""
    if device.type != "cuda":
        return 0
    return FLUSH_MULTIPLE * int(torch.cuda.get_device_properties(device).L2_cache_size)


def start(pool: WarmPool, build: BuildService, settings: VerifySettings, device: torch.device) -> Contestant:
    """A process that comes up while the caller goes on; `come_up` waits for it."""
    return pool.take(build, gpus(device), settings.memory_bytes, unsafe=settings.unsafe)


def start_equipped(settings: VerifySettings, device: torch.device, equipment: Equipment) -> Contestant:
    """A process for trusted code that needs more than a candidate may have."""
    return Contestant(
        no_builds,
        gpus=gpus(device),
        memory_bytes=settings.memory_bytes,
        unsafe=settings.unsafe,
        equipment=equipment,
    )


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
    large.
    """
    if device.type == "cuda" and input_bytes >= LARGE_BYTES:
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
    first = backend(settings.backend).first_call
    return {
        "op": "hello",
        "device": "cuda:0" if device.type == "cuda" else "cpu",  # its only GPU, whatever number ours has
        "threads": settings.threads,
        "tf32": settings.numerics == "tf32",
        "flush_bytes": flush_bytes(device),
        "first_calls": first.message(interpret=device.type == "cpu") if first is not None else None,
    }


def greet_ahead(pool: WarmPool, settings: VerifySettings, device: torch.device) -> None:
    """Lets those in reserve that are up make their context on the GPU, while nothing is timed.

    `WarmPool.settle` waits for them. On a CPU there is nothing to make.
    """
    if device.type == "cuda":
        pool.prepare(hello(settings, device))


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
    message, fds = memory.announce(*arenas)
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
