"""Shared memory as the referee lays it out: arenas, and slots of inputs and outputs within them."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import psutil
import torch

from kernelproof.verifier.contestant import arena as arenas
from kernelproof.verifier.contestant import encoding
from kernelproof.verifier.contestant.encoding import tensors

SLOT_ARENAS, BASELINE_SLOT_ARENAS = ("inputs", "outputs"), ("baseline_inputs", "baseline")
"""Where the slots' inputs and outputs lie, the candidate's and the baseline's."""
POISON = 0xA5
"""The byte that outputs are filled with before every call: a stale or unwritten output is visible."""
MAX_SLOTS = 16
MAX_SMALL_SLOTS, SMALL_BYTES = 192, 16 << 30
"""The most slots on a GPU, and the bytes that they may take: calls on few bytes may be short, and the
referee's clock sees short calls better when a block has many."""
MEMORY_SHARE = 0.35
"""Most of the free memory (of the device, or of the host) that slots may take."""
CPU_BUDGET = 2 << 30
"""Bytes: most that slots may take on a CPU, whatever is free."""
LEAST_PLACES = 4
"""Places for the results of a call, from which the referee chooses, however few slots there are."""


@dataclass
class SlotSide:
    """What one side has of a slot: views of its inputs and outputs, and their specs."""

    input_specs: tuple[dict[str, Any], ...] = ()
    views: tuple[torch.Tensor, ...] = ()
    """The input tensors in shared memory."""
    output_specs: tuple[dict[str, Any], ...] = ()
    outputs: tuple[torch.Tensor, ...] = ()
    """Where its process puts its outputs."""
    arguments: list[Any] = field(default_factory=list, init=False)
    """Those that were filled in last, with tensors as specs, ready to send."""

    def encode(self, arguments: list[Any]) -> None:
        """Numbers among the arguments are others in every draw."""
        specs = iter(self.input_specs)
        self.arguments = [encoding.encode(argument, lambda _: next(specs, {})) for argument in arguments]

    def scramble(self, spare: Collection[int] = ()) -> None:
        """Overwrites its inputs, but for those of these numbers, with the poison byte: a result that lies in
        them changes."""
        for number, view in enumerate(self.views):
            if number in spare:
                continue
            raw(view).fill_(POISON) if view.is_contiguous() else view.zero_()

    def message(self) -> dict[str, Any]:
        """The message about the slot for this side's process.

        Everything written to the slot is in memory when this returns. Device work is queued: without waiting,
        the contestant could run before its inputs arrived, or its outputs be poisoned after it wrote them.
        """
        for place in (*self.views, *self.outputs)[:1]:
            if place.is_cuda:
                torch.cuda.synchronize(place.device)
        return {"arguments": self.arguments, "outputs": list(self.output_specs)}


@dataclass
class SharedSlot(SlotSide):
    """One prepared call as the referee sees it: what the candidate has of it, and what the baseline has.

    They have inputs and output places of their own, and neither sees the other's. A kernel of the candidate's
    that still ran in the baseline's turn would find there what the baseline unmasked.
    """

    baseline: SlotSide = field(default_factory=SlotSide)
    """Empty where the slot was laid out for the candidate alone."""
    margins: tuple[tuple[torch.Tensor, torch.Tensor], ...] = ()
    """The bytes before and after each input; none unless the slot was laid out with a margin."""

    @property
    def input_bytes(self) -> int:
        """Bytes of the input tensors."""
        return sum(view.nbytes for view in self.views)

    def side(self, *, baseline: bool) -> SlotSide:
        """The baseline's, or the candidate's."""
        return self.baseline if baseline else self

    def values(self) -> list[Any]:
        """The arguments as the baseline has them, which no candidate can change."""
        views = iter(self.baseline.views)
        return [encoding.decode(argument, lambda _: next(views)) for argument in self.arguments]

    def fill(self, arguments: list[Any]) -> None:
        """Takes drawn inputs, and poisons the outputs."""
        self.take(arguments)
        self.poison()

    def take(self, arguments: list[Any]) -> None:
        """Takes drawn inputs: their tensors are copied in."""
        self.write(arguments)
        self.encode(arguments)

    def encode(self, arguments: list[Any]) -> None:
        """For both sides."""
        super().encode(arguments)
        self.baseline.encode(arguments)

    def await_from(
        self, source: SharedSlot, meanwhile: list[Any], *, baseline: bool = False
    ) -> list[list[dict[str, Any]]]:
        """Takes the other's arguments, but that its own inputs are yet to be written. Returns where each
        comes from, as [place, source] specs for the candidate, or the baseline.

        `meanwhile`: arguments whose tensors lie there till then, another draw of the same kind: zeros would
        tell a candidate that the inputs are late, and so would any that it has seen.
        """
        self.encode(source.values())
        self.write(meanwhile)
        here, there = (slot.side(baseline=baseline).input_specs for slot in (self, source))
        return [list(pair) for pair in zip(here, there, strict=True)]

    def write(self, arguments: list[Any]) -> None:
        """Copies the tensors in, for both sides, and nothing else."""
        for views in filter(None, (self.views, self.baseline.views)):
            for view, tensor in zip(views, tensors(arguments), strict=True):
                view.copy_(tensor)

    def poison(self) -> None:
        """Fills both output places with the poison byte."""
        for place in (*self.outputs, *self.baseline.outputs):
            raw(place).fill_(POISON)


def raw(tensor: torch.Tensor) -> torch.Tensor:
    """The bytes of a tensor, of a copy where it is not contiguous."""
    return _in_a_row(tensor).view(torch.uint8)


def bits(tensor: torch.Tensor) -> torch.Tensor:
    """The same as integers of the elements' size: they compare bit by bit, and faster than bytes."""
    flat = _in_a_row(tensor)
    return flat.view(_INTEGERS.get(flat.element_size(), torch.uint8))


_INTEGERS = {2: torch.int16, 4: torch.int32, 8: torch.int64}


def in_memory(tensor: torch.Tensor) -> torch.Tensor:
    """A flat view of the elements as they lie in memory, as integers, whatever the strides. Any bytes that
    lie between them are among them."""
    row = tensor.as_strided((arenas.span(list(tensor.shape), list(tensor.stride())),), (1,))
    return row.view(_INTEGERS.get(row.element_size(), torch.uint8))


def _in_a_row(tensor: torch.Tensor) -> torch.Tensor:
    flat = tensor.resolve_conj().resolve_neg().reshape(-1)
    return flat if flat.stride(0) == 1 else flat.clone(memory_format=torch.contiguous_format)


def same_bits(left: Any, right: Any) -> bool:
    """Whether the tensors in two sets of arguments are equal bit by bit."""
    return all(torch.equal(bits(a), bits(b)) for a, b in zip(tensors(left), tensors(right), strict=True))


class SharedMemory:
    """All arenas of one contestant. `announce` gives what to send along with `attach`."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._arenas: list[tuple[arenas.Arena, dict[str, Any], int | None]] = []

    def arena(self, name: str, nbytes: int) -> arenas.Arena:
        """A new arena. Raises torch.OutOfMemoryError or OSError when there is not enough memory."""
        if self.device.type == "cuda":
            made, handle = arenas.create_device(name, nbytes, self.device)
            self._arenas.append((made, {"name": name, "handle": handle, "nbytes": made.nbytes}, None))
            return made
        made, descriptor = arenas.create_shared(name, nbytes)
        self._arenas.append((made, {"name": name}, descriptor))
        return made

    @property
    def nbytes(self) -> int:
        """Bytes of all arenas."""
        return sum(made.nbytes for made, _, _ in self._arenas)

    @property
    def host_bytes(self) -> int:
        """Bytes of all arenas in host memory."""
        return sum(made.nbytes for made, _, fd in self._arenas if fd is not None)

    def announce(self, *names: str) -> tuple[dict[str, Any], list[int]]:
        """The `attach` message for the arenas of these names, and the descriptors to send with it."""
        chosen = [(item, fd) for made, item, fd in self._arenas if made.name in names]
        message = {"op": "attach", "arenas": [item for item, _ in chosen]}
        return message, [fd for _, fd in chosen if fd is not None]

    def give_back(self, *names: str) -> None:
        """Gives the arenas of these names back; no view of them may be used afterwards."""
        kept = []
        for item in self._arenas:
            if item[0].name in names:
                self._release(item[0], item[2])
            else:
                kept.append(item)
        self._arenas = kept

    def close(self) -> None:
        """Gives everything back; no view may be used afterwards."""
        self.give_back(*(made.name for made, _, _ in self._arenas))

    @staticmethod
    def _release(arena: arenas.Arena, descriptor: int | None) -> None:
        if descriptor is not None:
            os.close(descriptor)
        arenas.release(arena)


def slot_bytes(arguments: list[Any], outputs: Sequence[torch.Tensor], *, sides: int = 2) -> int:
    """Bytes of one slot: for candidate and baseline, or one of them, the inputs, and the outputs where they
    are made and where they are copied to."""
    inputs = sum(arenas.bytes_of(_layable(t)) for t in tensors(arguments))
    return sides * (inputs + 2 * sum(_dense_bytes(t) for t in outputs))


def slots_that_fit(bytes_each: int, device: torch.device, free: int) -> int:
    """How many slots so many free bytes allow: one at least, at most MAX_SLOTS, or MAX_SMALL_SLOTS on a
    GPU."""
    most = MAX_SLOTS
    if device.type == "cuda":
        most = max(MAX_SLOTS, min(MAX_SMALL_SLOTS, SMALL_BYTES // max(bytes_each, 1)))
    return max(1, min(most, memory_budget(device, free) // max(bytes_each, 1)))


def spare_places(count: int, bytes_each: int, outputs: Sequence[torch.Tensor]) -> int:
    """How many places for results so few slots of so many bytes should have beside their own, on a CPU: the
    copy to a place that is known may be left out there while the clock runs. They may take half of the memory
    that is left."""
    each = 2 * sum(_dense_bytes(t) for t in outputs)
    left = free_bytes(torch.device("cpu")) - count * bytes_each
    return max(0, min(LEAST_PLACES - count, left // 2 // max(each, 1)))


def memory_budget(device: torch.device, free: int) -> int:
    """How many of the bytes that are free slots may take."""
    budget = int(free * MEMORY_SHARE)
    return budget if device.type == "cuda" else min(CPU_BUDGET, budget)


def free_bytes(device: torch.device) -> int:
    """Bytes of the device's memory that are free, or of the host's."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    return int(psutil.virtual_memory().available)


def lay_out(
    memory: SharedMemory,
    arguments: list[Any],
    outputs: Sequence[torch.Tensor],
    count: int,
    *,
    prefix: str = "",
    shift: int = 0,
    margin: int = 0,
    both: bool = True,
    spare: int = 0,
) -> list[SharedSlot]:
    """`count` slots for inputs like `arguments` and outputs like `outputs`, each at addresses of its own.

    Inputs keep the strides they were drawn with; output places are contiguous. `prefix` names the arenas
    apart from others'; `shift` moves inputs that many elements off their aligned places; `margin`: at least
    so many bytes, a multiple of ALIGNMENT, lie before and after each input; `both`: whether the baseline has
    a part in them. `spare`: so many more come last that have output places only, and the first one's inputs.
    """
    inputs, dense = [_layable(t) for t in tensors(arguments)], [_dense(t) for t in outputs]
    input_bytes = sum(_room(t, shift, margin) for t in inputs)
    output_bytes = sum(_dense_bytes(t) for t in outputs)
    sides = [
        (
            memory.arena(prefix + ins, input_bytes * count),
            memory.arena(prefix + outs, output_bytes * (count + spare)),
        )
        for ins, outs in (SLOT_ARENAS, BASELINE_SLOT_ARENAS)[: 2 if both else 1]
    ]
    slots = []
    for index in range(count + spare):
        placed, inputs_at = [], index * input_bytes if index < count else 0
        for ins, outs in sides:
            in_specs = tuple(_specs(inputs, ins.name, inputs_at, shift, margin))
            out_specs = tuple(_specs(dense, outs.name, index * output_bytes))
            views, places = tuple(map(ins.view, in_specs)), tuple(map(outs.view, out_specs))
            placed.append((in_specs, views, out_specs, places))
        around = zip(placed[0][0], inputs, strict=True) if margin else ()
        margins = tuple(_around(sides[0][0], spec["offset"], t, margin) for spec, t in around)
        slots.append(SharedSlot(*placed[0], SlotSide(*placed[1]) if both else SlotSide(), margins))
    return slots


@dataclass(frozen=True)
class SharedWeights:
    """Parameters and buffers in an arena of their own, by name."""

    specs: dict[str, dict[str, Any]]
    views: dict[str, torch.Tensor]


def share_weights(memory: SharedMemory, state: dict[str, torch.Tensor], arena_name: str) -> SharedWeights:
    """Puts initial weights into an arena of their own."""
    specs, offset = {}, 0
    for name, tensor in state.items():
        specs[name] = arenas.spec_of(_dense(tensor), arena_name, offset)
        offset += _dense_bytes(tensor)
    arena = memory.arena(arena_name, offset)
    views = {name: arena.view(spec) for name, spec in specs.items()}
    for name, tensor in state.items():
        views[name].copy_(tensor)
    return SharedWeights(specs, views)


def _layable(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor, or a contiguous stand-in where its elements overlap."""
    return _dense(tensor) if arenas.overlaps(tensor.shape, tensor.stride()) else tensor


def _room(tensor: torch.Tensor, shift: int, margin: int = 0) -> int:
    """Bytes for a tensor that may lie `shift` elements off its aligned place, and the margins around it."""
    return arenas.bytes_of(tensor) + (arenas.ALIGNMENT if shift else 0) + 2 * margin


def _specs(
    items: Sequence[torch.Tensor], arena: str, offset: int, shift: int = 0, margin: int = 0
) -> list[dict[str, Any]]:
    specs = []
    for tensor in items:
        specs.append(arenas.spec_of(tensor, arena, offset + margin + shift * tensor.itemsize))
        offset += _room(tensor, shift, margin)
    return specs


def _around(
    arena: arenas.Arena, begin: int, tensor: torch.Tensor, margin: int
) -> tuple[torch.Tensor, torch.Tensor]:
    end = begin + arenas.span(list(tensor.shape), list(tensor.stride())) * tensor.itemsize
    last = begin + arenas.bytes_of(tensor) + margin
    return arena.data[begin - margin : begin], arena.data[end:last]


def _dense(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor of the same shape and dtype with contiguous strides, without memory behind it."""
    return torch.empty(tensor.shape, dtype=tensor.dtype, device="meta")


def _dense_bytes(tensor: torch.Tensor) -> int:
    return arenas.bytes_of(_dense(tensor))
