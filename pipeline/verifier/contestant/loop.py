"""The call loop: runs a forward over prepared slots, times each call, copies its outputs out.

Candidate and baseline, each in its own process, both run it and so pay the same overhead. The clock is
bound when this module is imported, before any candidate code exists in the process: on a GPU it is methods
of torch's event type, which is written in C and which no Python code can change. That is a first line only,
since native code can do anything in its own process: the referee holds a second clock.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter_ns
from typing import Any

import torch

from kernelproof.verifier.contestant.between_calls import Digests
from kernelproof.verifier.contestant.call_page import CallPage
from kernelproof.verifier.contestant.encoding import dtype_name, leaves, ordered, structure
from kernelproof.verifier.contestant.random_draws import seed_torch

Forward = Callable[..., Any]

_Event: Any = getattr(torch._C, "_CudaEventBase", None)
_record: Any = getattr(_Event, "record", None)
_elapsed: Any = getattr(_Event, "elapsed_time", None)
_synchronize = torch.cuda.synchronize
_current_stream = torch.cuda.current_stream
_set_stream = torch.cuda.set_stream
_Tensor = torch.Tensor
_copy = torch.Tensor.copy_
_fill = torch.Tensor.fill_
_contiguous = torch.Tensor.contiguous
_sum = torch.Tensor.sum

REPLAYS = 20
"""Timed replays of a captured call."""


Late = Sequence[tuple[torch.Tensor, torch.Tensor]]
"""Inputs that are yet to be written, each with where its values lie: as in a network, a forward has to come
after the work on its stream that writes them. One that begins early has read something else."""


@dataclass
class Slot:
    """One prepared call. Where its results go is not known before it is made."""

    arguments: Sequence[Any]
    seed: int | None = None
    """Of torch's generators, right before the call. None where the reference draws no random numbers."""


Places = Callable[[], Sequence[Sequence[torch.Tensor]]]
"""Asks where the output leaves of each call go. A forward that knew before could save the copy, and hide as
much work as that costs the baseline."""


@dataclass
class Calls:
    """The calls of a block on a GPU, as the referee releases them."""

    digests: Digests
    page: CallPage
    ask: Callable[[], int]
    """For the number of the next call."""

    def begin(self) -> None:
        """Waits until a call may be queued, and seeds torch's generators."""
        self.page.call = self.ask()
        seed = self.page.wait()
        self.digests.begin(self.page.call)
        if seed is not None:
            seed_torch(seed)

    def fix(self, value: Any, device: torch.device) -> None:
        """Names the digest of the call's result. Waits for the device."""
        self.digests.fix(outputs_of(value, device))


@dataclass
class OutputMeta:
    """The form of a forward's result, as far as the referee must know."""

    structure: Any
    leaves: list[dict[str, Any]]

    def as_json(self) -> dict[str, Any]:
        return {"structure": self.structure, "leaves": self.leaves}


def describe(value: Any) -> OutputMeta:
    """Type, shape, dtype, device and stride of every output leaf; words and None with their value.

    Numbers have no value here: they are copied out like tensors, so that they are compared by what they are.
    """
    value = ordered(value)
    return OutputMeta(structure(value), [_described(leaf) for leaf in leaves(value)])


def _described(leaf: Any) -> dict[str, Any]:
    if not isinstance(leaf, _Tensor):
        kind = type(leaf).__name__[:200]
        if is_number(leaf):
            return {"type": kind}
        return {"type": kind, "value": leaf if leaf is None or isinstance(leaf, str) else repr(leaf)[:200]}
    return {
        "type": "Tensor" if type(leaf) is _Tensor else f"{type(leaf).__module__}.{type(leaf).__name__}"[:200],
        "dtype": dtype_name(leaf.dtype),
        "shape": list(leaf.shape),
        "stride": list(leaf.stride()) if leaf.layout == torch.strided else [],
        "device": leaf.device.type,
        "requires_grad": leaf.requires_grad,
    }


def is_number(leaf: Any) -> bool:
    """Whether an output leaf is a Python number: it travels as a tensor without dimensions."""
    return isinstance(leaf, bool | int | float)


def outputs_of(value: Any, device: torch.device) -> list[torch.Tensor]:
    """What a forward returned, as tensors: numbers become tensors without dimensions, others are left out.

    A Python float is judged as float32: it was computed from tensors of the problem's precision.
    """
    kinds = {bool: torch.bool, int: torch.int64}

    def as_tensor(leaf: Any) -> torch.Tensor:
        if isinstance(leaf, _Tensor):
            return leaf
        return torch.tensor(leaf, dtype=kinds.get(type(leaf), torch.float32), device=device)

    return list(map(as_tensor, _results(value)))


def _results(value: Any) -> list[Any]:
    """The tensors and numbers among a forward's output leaves, in the order in which they are compared."""
    return [leaf for leaf in leaves(ordered(value)) if isinstance(leaf, _Tensor) or is_number(leaf)]


def copy_out(value: Any, places: Sequence[torch.Tensor]) -> bool:
    """Copies output leaves to their places; False (and nothing more copied) where one does not fit."""
    found = _results(value)
    if len(found) != len(places):
        return False
    for leaf, place in zip(found, places, strict=True):
        if not isinstance(leaf, _Tensor):
            if place.dim():
                return False
            _fill(place, leaf)
            continue
        if leaf.shape != place.shape or leaf.dtype != place.dtype or leaf.device != place.device:
            return False
        _copy(place, leaf)
    return True


def bring(late: Late) -> None:
    """Has late inputs written, by the current stream on a GPU."""
    for place, source in late:
        _copy(place, source)


def run_block(
    forward: Forward,
    slots: Sequence[Slot],
    device: torch.device,
    places: Places,
    *,
    at_once: bool = False,
    calls: Calls | None = None,
) -> list[float]:
    """Calls `forward` once on each slot and returns the time of each call in milliseconds.

    Results stay alive until all calls are made, and are copied to their places then; with `at_once` each is
    copied before the next call, for a trusted forward that reuses its memory. All but the call lies outside
    the timed windows; bringing a strided result into contiguous order lies inside, or the copy would do that
    work for the forward. `calls`: on a GPU. Raises whatever the forward raises, and ValueError when an
    output does not fit its place.
    """
    with torch.no_grad():
        known = iter(places()) if at_once else None
        values: list[Any] = []

        def take(value: Any) -> None:
            if known is None:
                values.append(value)
            else:
                _deliver(value, next(known))

        if calls is not None:
            times = _run_device(forward, slots, device, take, calls)
        else:
            times = _run_host(forward, slots, take)
        if known is None:
            for value, place in zip(values, places(), strict=True):
                _deliver(value, place)
        if device.type == "cuda":
            _synchronize(device)
        return times


def replay(
    forward: Forward,
    arguments: Sequence[Any],
    late: Late,
    outputs: Sequence[torch.Tensor],
    flushed: torch.Tensor,
    device: torch.device,
) -> list[float]:
    """Times of `REPLAYS` replays of one call captured as a CUDA graph, in milliseconds. `flushed`: what is
    read before each to empty the cache.

    The `late` inputs come after the capture: a result that was kept from it is of other inputs. The last
    result is copied out. Raises what the capture raises: not every forward can be captured.
    """
    with torch.no_grad():
        main, side = _current_stream(device), torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        side.wait_stream(main)
        with torch.cuda.stream(side):
            for _ in range(3):
                forward(*arguments)
        main.wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            value = _dense(forward(*arguments))
        bring(late)
        marks = []
        for _ in range(REPLAYS):
            _sum(flushed)
            marks.append(_timed(graph.replay, main))
        _deliver(value, outputs)
        _synchronize(device)
        return [_elapsed(start, stop) for start, stop in marks]


def _dense(value: Any) -> Any:
    """The output with contiguous tensors (the same ones where they are); nested outputs as a flat list."""
    if isinstance(value, _Tensor):
        return _contiguous(value)
    return [_contiguous(leaf) if isinstance(leaf, _Tensor) else leaf for leaf in leaves(ordered(value))]


def _run_host(forward: Forward, slots: Sequence[Slot], take: Callable[[Any], None]) -> list[float]:
    times = []
    for slot in slots:
        if slot.seed is not None:
            seed_torch(slot.seed)
        start = perf_counter_ns()
        value = _dense(forward(*slot.arguments))
        stop = perf_counter_ns()
        times.append((stop - start) / 1e6)
        take(value)
        del value
    return times


def _run_device(
    forward: Forward,
    slots: Sequence[Slot],
    device: torch.device,
    take: Callable[[Any], None],
    calls: Calls,
) -> list[float]:
    stream = _current_stream(device)
    marks = [(_Event(enable_timing=True), _Event(enable_timing=True)) for _ in slots]
    for slot, (start, stop) in zip(slots, marks, strict=True):
        calls.begin()
        _record(start, stream)
        value = _dense(forward(*slot.arguments))
        _record(stop, stream)
        _set_stream(stream)  # a forward that leaves another stream current must not move what follows to it
        calls.fix(value, device)
        take(value)
        del value
    return [_elapsed(start, stop) for start, stop in marks]


def _timed(work: Callable[[], Any], stream: Any) -> tuple[Any, Any]:
    start, stop = _Event(enable_timing=True), _Event(enable_timing=True)
    _record(start, stream)
    work()
    _record(stop, stream)
    return start, stop


def _deliver(value: Any, places: Sequence[torch.Tensor]) -> None:
    if not copy_out(value, places):
        raise ValueError("an output of a timed call has another shape or dtype than in the trials")
