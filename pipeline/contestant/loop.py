"""The call loop: runs a forward over prepared slots, times each call, copies its outputs out.

Candidate and baseline, each in its own process, both run it and so pay the same overhead. The clock functions
are bound when this module is imported, before any candidate code exists in the process; they are a
first line only, since native code can do anything in its own process: the referee holds a second clock.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter_ns
from typing import Any

import torch

from pipeline.contestant.wire import dtype_name, leaves, structure

Forward = Callable[..., Any]

_Event = torch.cuda.Event
_synchronize = torch.cuda.synchronize
_Tensor = torch.Tensor
_copy = torch.Tensor.copy_
_contiguous = torch.Tensor.contiguous


@dataclass
class Slot:
    """One prepared call: its arguments and where its output leaves go."""

    arguments: Sequence[Any]
    outputs: Sequence[torch.Tensor]


@dataclass
class OutputMeta:
    """What a forward returned, as far as the referee must know."""

    structure: Any
    leaves: list[dict[str, Any]]

    def as_json(self) -> dict[str, Any]:
        return {"structure": self.structure, "leaves": self.leaves}


class Flush:
    """Empties the L2 cache by writing a buffer; nothing on a CPU or with zero bytes."""

    def __init__(self, nbytes: int, device: torch.device) -> None:
        self._buffer = (
            torch.empty(nbytes, dtype=torch.uint8, device=device)
            if nbytes and device.type == "cuda"
            else None
        )

    def __call__(self) -> None:
        if self._buffer is not None:
            self._buffer.zero_()


def describe(value: Any) -> OutputMeta:
    """Type, shape, dtype, device and stride of every output leaf; scalars with their value."""
    described: list[dict[str, Any]] = []
    for leaf in leaves(value):
        if isinstance(leaf, _Tensor):
            described.append(
                {
                    "type": "Tensor" if type(leaf) is _Tensor else type(leaf).__name__,
                    "dtype": dtype_name(leaf.dtype),
                    "shape": list(leaf.shape),
                    "stride": list(leaf.stride()) if leaf.layout == torch.strided else [],
                    "device": leaf.device.type,
                    "requires_grad": leaf.requires_grad,
                }
            )
        else:
            plain = isinstance(leaf, bool | int | str) or leaf is None
            described.append({"type": type(leaf).__name__, "value": leaf if plain else repr(leaf)[:200]})
    return OutputMeta(structure(value), described)


def copy_out(value: Any, places: Sequence[torch.Tensor]) -> bool:
    """Copies output leaves to their places; False (and nothing more copied) where one does not fit."""
    found = [leaf for leaf in leaves(value) if isinstance(leaf, _Tensor)]
    if len(found) != len(places):
        return False
    for leaf, place in zip(found, places, strict=True):
        if leaf.shape != place.shape or leaf.dtype != place.dtype or leaf.device != place.device:
            return False
        _copy(place, leaf)
    return True


def run_block(forward: Forward, slots: Sequence[Slot], flush: Flush, device: torch.device) -> list[float]:
    """Calls `forward` once on each slot and returns the time of each call in milliseconds.

    Flush and copying lie outside the timed window; bringing a strided result into contiguous order lies
    inside, or the copy would do that work for the forward. Raises whatever the forward raises, and
    ValueError when an output does not fit its place.
    """
    with torch.no_grad():
        if device.type == "cuda":
            return _run_device(forward, slots, flush, device)
        return _run_host(forward, slots)


def _dense(value: Any) -> Any:
    """The output with contiguous tensors (the same ones where they are); nested outputs as a flat list."""
    if isinstance(value, _Tensor):
        return _contiguous(value)
    return [_contiguous(leaf) if isinstance(leaf, _Tensor) else leaf for leaf in leaves(value)]


def _run_host(forward: Forward, slots: Sequence[Slot]) -> list[float]:
    times = []
    for slot in slots:
        start = perf_counter_ns()
        value = _dense(forward(*slot.arguments))
        stop = perf_counter_ns()
        times.append((stop - start) / 1e6)
        _deliver(value, slot)
        del value
    return times


def _run_device(forward: Forward, slots: Sequence[Slot], flush: Flush, device: torch.device) -> list[float]:
    marks = []
    for slot in slots:
        start, stop = _timer(), _timer()
        flush()
        start.record()
        value = _dense(forward(*slot.arguments))
        stop.record()
        _deliver(value, slot)
        del value
        marks.append((start, stop))
    _synchronize(device)
    return [start.elapsed_time(stop) for start, stop in marks]


def _timer() -> torch.cuda.Event:
    return _Event(enable_timing=True)  # type: ignore[no-untyped-call]


def _deliver(value: Any, slot: Slot) -> None:
    if not copy_out(value, slot.outputs):
        raise ValueError("an output of a timed call has another shape or dtype than in the trials")
