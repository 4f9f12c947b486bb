"""Probes: is a correct candidate also right where the problem does not say? A failure here is a flag.

Other batch sizes, other sizes, one more dimension, inputs that are not contiguous, inputs that do not start
on an aligned address, other masks, other bytes around inputs, weights and own tensors, and weights that a
fresh model has not. The problem promises none of them, so a candidate that is wrong there is `correct`, and
its record says what it is made for. Probes come last: a kernel that is driven out of its bounds may take the
process with it.

A change of shape comes in several ways (`Shapes`): a size that occurs in many places may be one dimension of
the problem or several. The first way that the reference takes is used. Inputs with structure (triangular,
sorted) are only changed in ways that keep it, and whole numbers that may be indices stay within what they may
point at: on a GPU an index out of range ends the process.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from kernelproof.types import Determinism, Flag, Rigor, Status
from kernelproof.types.verification import VerifyRequest
from kernelproof.verifier.contestant import loop
from kernelproof.verifier.contestant.arena import MARGIN, fill_margins
from kernelproof.verifier.contestant.encoding import tensors
from kernelproof.verifier.contestant.loop import outputs_of
from kernelproof.verifier.referee.checks.trials import Trials
from kernelproof.verifier.referee.checks.weights import OtherWeights, other_inputs
from kernelproof.verifier.referee.correctness.oracle import Oracle
from kernelproof.verifier.referee.inputs.problem import ProblemError, mapped
from kernelproof.verifier.referee.inputs.structure import Forms
from kernelproof.verifier.referee.inputs.variants import finite
from kernelproof.verifier.referee.ledger import Ledger
from kernelproof.verifier.referee.sides import CandidateProcess, make_room
from kernelproof.verifier.status_rules import PROBE, PROBES, Cause, CheckKind, Ended
from kernelproof.verifier.workers.shared_memory import (
    SharedMemory,
    SharedSlot,
    bits,
    free_bytes,
    lay_out,
    memory_budget,
    slot_bytes,
    slots_that_fit,
)
from kernelproof.wording import counted

BUDGET_SECONDS = 20.0
"""Probes begin only within this time."""
NEEDED_SLOTS = 4
"""A probe is left out when fewer than this many sets of its inputs would fit in memory."""
OFFSET, RANK = "offset inputs", "one more dimension"
SHORT = "memory is short for another set of inputs"
BROKEN = "the probe before broke the process"
_ARENAS = ("probe inputs", "probe outputs")
SHARE_OF_MASK = 0.25
"""Of a mask's elements so many change."""
INDEX_LIMIT = 1 << 31
"""From so many elements on an index does not fit in C's `int`."""


@dataclass(frozen=True)
class Probe:
    """One set of arguments that the problem does not draw."""

    name: str
    flag: Flag
    ways: Sequence[Way]
    """Functions that make the arguments; of several, the first whose arguments the reference takes is
    used."""
    shift: int = 0
    growth: float = 1.0
    """How many times as large as the declared inputs and outputs it may be."""


@dataclass
class Beyond:
    """A candidate's reads and writes beyond some tensors."""

    beside: str
    """Which, in words."""
    written: int = 0
    """Bytes of the margins that a call changed."""
    followed: int | None = None
    """Elements of outputs that were others when the margins were; None where that says nothing, since the
    same bytes give other results too."""
    ended: str = ""
    """How a call ended that never ended so before."""
    is_calling: bool = False

    @property
    def flags(self) -> list[Flag]:
        reads, writes = bool(self.followed or self.ended), bool(self.written)
        return [Flag.OUT_OF_BOUNDS_WRITE] * writes + [Flag.OUT_OF_BOUNDS_READ] * reads

    def in_words(self) -> str:
        parts = (
            f"it wrote {counted(self.written, 'byte')}" if self.written else "",
            f"{counted(self.followed, 'element')} of its outputs changed with them" if self.followed else "",
            f"others led to {self.ended}" if self.ended else "",
        )
        return f"bytes beside {self.beside}: " + "; ".join(filter(None, parts))


class Probes:
    """Runs the probes of one verification."""

    def __init__(
        self,
        oracle: Oracle,
        memory: SharedMemory,
        request: VerifyRequest,
        device: torch.device,
        ledger: Ledger,
        slot: SharedSlot,
        form: loop.OutputMeta,
        others: OtherWeights,
    ) -> None:
        """`slot` and `form`: for inputs and outputs of the declared shapes, that is for `others`."""
        self._slot, self._form, self._others = slot, form, others
        self._oracle, self._memory = oracle, memory
        self._request, self._device, self._ledger = request, device, ledger
        self._input_bytes = 0

    def left_out(self, why: str) -> None:
        """Records that there were none."""
        self._ledger.skipped(PROBES, why)

    def run(self, candidate: CandidateProcess) -> None:
        """All probes; sets flags on the ledger, never ends the verification."""
        deadline = time.monotonic() + BUDGET_SECONDS
        gone = self._other_weights(candidate)
        arguments = self._oracle.loaded.draw(self._ledger.seed("probes"), self._device)
        gone = gone or self._margins(candidate, arguments)
        if time.monotonic() < deadline:
            gone = gone or self._own_margins(candidate, arguments)
        for probe in self._probes(arguments):
            check = _check(probe.name)
            if gone or time.monotonic() > deadline:
                self._ledger.skipped(check, gone or "no time was left")
                continue
            if not self._probe(candidate, probe, check):
                gone = self._disorder(candidate)
        if self._request.settings.rigor is Rigor.QUICK:
            # A misaligned access ends the process: on a GPU that takes longer than all other probes.
            for name in (RANK, OFFSET):
                self._ledger.skipped(_check(name), "not at rigor quick")
        note_large_indices([*self._slot.views, *self._slot.outputs], self._ledger)

    def _other_weights(self, candidate: CandidateProcess) -> str:
        """Other values for weights, and for inputs of one value throughout, where there are any.

        Returns why nothing more can be asked of the candidate, if so.
        """
        check = _check("other weights")
        drawn = self._oracle.loaded.draw(self._ledger.seed("other weights"), self._device)
        generator = torch.Generator().manual_seed(self._ledger.seed("changed weights"))
        arguments, inputs = other_inputs(drawn, generator)
        del drawn
        ways = self._others.chosen(candidate) or ([[]] if inputs else [])
        if not ways and self._others.names:
            self._ledger.skipped(check, "it holds them in a form of its own")
        for names in ways:
            figures: dict[str, Any] = {"changed": len(names), "inputs": inputs}
            figures |= {"first": names[0]} if names else {}
            why = self._with_weights(candidate, names, generator, arguments, check, figures)
            try:
                self._others.restore(candidate, names)
            except Ended:
                return BROKEN
            if not why:
                break
            if names is ways[-1]:
                self._ledger.skipped(check, why)
        return ""

    def _with_weights(
        self,
        candidate: CandidateProcess,
        names: list[str],
        generator: torch.Generator,
        arguments: list[Any],
        check: CheckKind,
        figures: dict[str, Any],
    ) -> str:
        """Records what comes of other values for these weights; or returns why nothing does."""
        settings, scratch = self._request.settings, Ledger(self._request)
        trials = Trials(
            self._oracle, [self._slot], self._form, settings, self._device, scratch, candidate.ask
        )
        try:
            self._others.change(candidate, names, generator)
            why = trials.try_arguments("other weights", arguments, probing=True)
            if why is not None:
                return why
            self._ledger.passed(check, "it is", figures)
        except Ended as ended:
            self._ledger.flagged(check, Flag.WEIGHTS_SPECIALISED, _in_words(ended), figures)
        except torch.OutOfMemoryError:
            return SHORT
        return ""

    def _margins(self, candidate: CandidateProcess, arguments: list[Any]) -> str:
        """Other bytes around the inputs: they must stay, and change no result. Returns why nothing more can
        be asked of the candidate, if so."""
        check, found, gone = _check("margins"), Beyond("its inputs"), ""
        inputs, outputs = tensors(arguments), self._slot.outputs
        none = not any(t.numel() for t in inputs)
        if none or self._short(slot_bytes(arguments, outputs, sides=1) + 2 * MARGIN * len(inputs)):
            self._ledger.skipped(check, "no input is a tensor with elements" if none else SHORT)
            return ""
        try:
            with self._laid_out(candidate, arguments, outputs, margin=MARGIN) as (slot,):
                self._look_beyond(partial(self._beside_inputs, candidate, slot, arguments, found), found)
        except Ended as ended:
            seen, gone = _in_words(ended), self._disorder(candidate)
            if not found.is_calling or ended.status not in (Status.CRASH, Status.RUNTIME_ERROR):
                self._ledger.skipped(check, seen)
                return gone
            found.ended = seen
        except torch.OutOfMemoryError:
            self._ledger.skipped(check, SHORT)
            return ""
        _record_beyond(check, found, self._ledger)
        return gone

    def _own_margins(self, candidate: CandidateProcess, arguments: list[Any]) -> str:
        """The same around its weights and the tensors that it makes. Its process fills these margins and says
        which bytes changed: it may lie, so that finding nothing says little. Returns as `_margins` does.

        A call that fails is no finding: to have its tensors made otherwise may be too much for a program.
        """
        check, found = _check("own margins"), Beyond("its weights or own tensors")
        try:
            self._look_beyond(partial(self._beside_own, candidate, arguments, found), found)
        except Ended as ended:
            self._ledger.skipped(check, _in_words(ended))
            return self._disorder(candidate, ())
        _record_beyond(check, found, self._ledger)
        return ""

    def _look_beyond(self, called: Callable[[int], list[torch.Tensor]], found: Beyond) -> None:
        """Calls it with one fill and the other. Only where results differ once more, in the other order: a
        candidate that takes turns, or that is rarely off, gives other results then too."""
        found.is_calling = True
        first, second = called(0), called(1)
        differ = _differing(first, second)
        if not differ or (
            self._ledger.determinism is not Determinism.WITHIN_ERROR
            and not _differing([*second, *first], [*called(1), *called(0)])
        ):
            found.followed = differ
        found.is_calling = False

    def _beside_inputs(
        self,
        candidate: CandidateProcess,
        slot: SharedSlot,
        arguments: list[Any],
        found: Beyond,
        number: int,
    ) -> list[torch.Tensor]:
        """The results with that fill beside the inputs."""
        pairs = zip(slot.margins, slot.views, strict=True)
        held = [fill_margins(*around, view.dtype, number) for around, view in pairs]
        self._called(candidate, slot, arguments, {"op": "call"})
        now = [torch.cat(around) for around in slot.margins]
        found.written = max(found.written, _differing(held, now))
        return [bits(place).clone() for place in slot.outputs]

    def _beside_own(
        self, candidate: CandidateProcess, arguments: list[Any], found: Beyond, number: int
    ) -> list[torch.Tensor]:
        """The results with that fill beside what is the candidate's."""
        most = memory_budget(self._device, free_bytes(self._device))
        reply = self._called(
            candidate, self._slot, arguments, {"op": "guarded", "fill": number, "most": most}
        )
        changed = reply.get("changed")
        found.written = max(found.written, min(changed, most) if isinstance(changed, int) else 0)
        return [bits(place).clone() for place in self._slot.outputs]

    def _called(
        self, candidate: CandidateProcess, slot: SharedSlot, arguments: list[Any], message: dict[str, Any]
    ) -> dict[str, Any]:
        slot.fill(arguments)
        make_room(self._device, slot.input_bytes)
        seed, seconds = self._ledger.seed("forward margins"), self._request.settings.call_seconds
        return candidate.ask({**message, "seed": seed, **slot.message()}, seconds, Cause.RAISED_IN_CALL)

    @contextmanager
    def _laid_out(
        self, candidate: CandidateProcess, arguments: list[Any], outputs: Sequence[torch.Tensor], **place: int
    ) -> Iterator[list[SharedSlot]]:
        """One slot, which the candidate's process shares meanwhile. `place`: for `lay_out`."""
        try:
            slots = lay_out(self._memory, arguments, outputs, 1, prefix="probe ", both=False, **place)
            message, fds = self._memory.announce(*_ARENAS)
            candidate.attach(message, fds)
            yield slots
            seconds = self._request.settings.call_seconds
            candidate.ask({"op": "detach", "arenas": list(_ARENAS)}, seconds, Cause.RAISED_IN_RUNNER)
        finally:
            self._memory.give_back(*_ARENAS)

    def _probes(self, arguments: list[Any]) -> Iterator[Probe]:
        self._input_bytes = slot_bytes(arguments, [], sides=1)
        few = self._request.settings.rigor is Rigor.QUICK
        shapes = Shapes(arguments)
        for other in shapes.batches(few=few):
            yield Probe(other.name, Flag.SHAPE_SPECIALISED, other.ways, growth=other.growth)
        secret = torch.Generator().manual_seed(self._ledger.seed("layouts and masks"))
        if any(t.dim() and t.numel() > 1 for t in tensors(arguments)):
            ways = [partial(strided, arguments, secret)]
            yield Probe("strided inputs", Flag.LAYOUT_SPECIALISED, ways, growth=2.0)
        if any(map(is_mask, tensors(arguments))):
            yield Probe("other masks", Flag.WEIGHTS_SPECIALISED, [partial(other_masks, arguments, secret)])
        # Odd sizes end the process of a candidate that reads several elements at a time, and all later probes
        # end with it.
        for other in (*(() if few else shapes.ranks()), *shapes.sizes(few=few)):
            yield Probe(other.name, Flag.SHAPE_SPECIALISED, other.ways, growth=other.growth)
        if not few:
            yield Probe(OFFSET, Flag.LAYOUT_SPECIALISED, [partial(list, arguments)], shift=1)

    def _probe(self, candidate: CandidateProcess, probe: Probe, check: CheckKind) -> bool:
        """Whether it is right, or nothing is known. Records the check."""
        try:
            found = self._usable_arguments(probe)
        except torch.OutOfMemoryError:
            found = SHORT
        if isinstance(found, str):
            self._ledger.skipped(check, found)
            return True
        arguments, sample = found
        outputs = outputs_of(sample, self._device)
        if self._short(slot_bytes(arguments, outputs, sides=1)):
            self._ledger.skipped(check, SHORT)
            return True
        scratch = Ledger(self._request)  # its entries of a trial decide nothing here
        try:
            with self._laid_out(candidate, arguments, outputs, shift=probe.shift) as slots:
                form = loop.describe(sample)
                del sample, outputs
                settings = self._request.settings
                trials = Trials(self._oracle, slots, form, settings, self._device, scratch, candidate.ask)
                why = trials.try_arguments(probe.name, arguments, probing=True)
        except Ended as ended:
            self._ledger.flagged(check, probe.flag, _in_words(ended), {"flag": probe.flag.value})
            return False
        if why is not None:
            self._ledger.skipped(check, why)
        else:
            self._ledger.passed(check, "it is")
        return True

    def _usable_arguments(self, probe: Probe) -> tuple[list[Any], Any] | str:
        """Arguments that the reference takes, with its result; else why there are none."""
        if not probe.ways:
            return "the inputs' structure allows no other"
        if self._short(int(probe.growth * self._input_bytes)):
            return SHORT
        for made in probe.ways:
            try:
                arguments = made()
                sample = self._oracle.loaded.run(self._oracle.model, arguments, 0)
            except ProblemError:
                continue
            outputs = outputs_of(sample, self._device)
            if not finite(outputs):
                return "the reference is not finite on it"
            if not any(t.numel() for t in outputs):
                continue
            return arguments, sample
        return "the reference does not take it"

    def _short(self, bytes_each: int) -> bool:
        """Whether memory is short for a slot of so many bytes, and what its trial needs beside."""
        return slots_that_fit(bytes_each, self._device, free_bytes(self._device)) < NEEDED_SLOTS

    def _disorder(self, candidate: CandidateProcess, arenas: Sequence[str] = _ARENAS) -> str:
        """Why nothing more can be asked of the candidate, if so."""
        try:
            message = {"op": "detach", "arenas": list(arenas)}
            candidate.ask(message, self._request.settings.call_seconds, Cause.RAISED_IN_RUNNER)
        except Ended:
            return BROKEN
        return ""


def _check(probe: str) -> CheckKind:
    return PROBE.of(probe, f"Is it right for {probe} too?")


def _in_words(ended: Ended) -> str:
    """How a candidate's call ended. Raises what is a fault of ours."""
    if ended.status is Status.INFRASTRUCTURE_ERROR:
        raise ended
    return f"{ended.status}: {ended.reason}"[:500]


def _differing(left: Sequence[torch.Tensor], right: Sequence[torch.Tensor]) -> int:
    return sum(int((a != b).sum()) for a, b in zip(left, right, strict=True))


def _record_beyond(check: CheckKind, found: Beyond, ledger: Ledger) -> None:
    figures, seen = {"written": found.written, "followed": found.followed}, found.in_words()
    if not found.flags and found.followed is None:
        ledger.skipped(check, f"the same bytes beside {found.beside} give other results too", figures)
    elif not found.flags:
        ledger.passed(check, "it is", figures)
    else:
        ledger.flagged(check, found.flags[0], seen, figures)
        ledger.flags.update(found.flags)


def note_large_indices(declared: Sequence[torch.Tensor], ledger: Ledger) -> None:
    """Records whether the trials had indices beyond an `int`. Shapes that would need them are not made: such
    a tensor takes 8 GiB, and its float64 truth 16."""
    largest = max((tensor.numel() for tensor in declared), default=0)
    check, size = _check("large indices"), f"the largest tensor has {largest:,} elements"
    if largest > INDEX_LIMIT:
        ledger.passed(check, f"{size}, and every trial was right", {"largest": largest})
    else:
        ledger.skipped(check, f"not asked: {size}, and indices from {INDEX_LIMIT:,} on need more")


ALIGNED = 64
"""By so much a size grows where rows are to stay aligned: a kernel that reads four floats at a time ends its
process on odd rows, and on a GPU that end takes as long as many probes."""
Way = Callable[[], list[Any]]
"""Makes the arguments."""


@dataclass(frozen=True)
class Reshaped:
    """Inputs of another shape."""

    name: str
    """`batch 17`, `size 1025 instead of 1024`, `one more dimension`."""
    ways: tuple[Way, ...]
    growth: float
    """How many times as large inputs and outputs may become."""


class Shapes:
    """Other shapes of one set of arguments."""

    def __init__(self, arguments: list[Any]) -> None:
        self._arguments, self._leaves = arguments, tensors(arguments)
        self._forms = Forms(arguments)
        self._places = [(index, dim) for index, leaf in enumerate(self._leaves) for dim in range(leaf.dim())]

    def batches(self, *, few: bool) -> Iterator[Reshaped]:
        """The leading size of the first tensor made 1, one more, and twice as many less one; `few`: one more
        only. In all tensors that share it, or in the first one alone."""
        size = self._leaves[0].shape[0] if self._leaves and self._leaves[0].dim() else 0
        if not size:
            return
        others = [size + 1] if few else [1, size + 1, 2 * size - 1]
        for other in dict.fromkeys(n for n in others if n not in (0, size)):
            shared = [(index, dim) for index, dim in self._of_size(size) if dim == 0]
            yield self._resized(f"batch {other}", size, other, [shared, [(0, 0)]])

    def sizes(self, *, few: bool) -> Iterator[Reshaped]:
        """Each further size another one, odd and a little larger, and the last one half as large again;
        smaller ones where structure does not allow that. `few`: the last one only, ALIGNED larger.

        Everywhere, in all but leading dimensions, or in one place alone.
        """
        inner = [(index, dim) for index, dim in self._places if dim > 0]
        last = [leaf.shape[-1] for leaf in self._leaves if leaf.dim() > 1][:1]
        if few:
            for size in filter(None, last):
                yield self._other_size(size, size + ALIGNED, size - ALIGNED)
            return
        for size in dict.fromkeys([*last, *(self._leaves[i].shape[d] for i, d in inner)]):
            if size > 1:
                yield self._other_size(size, odd(size + 1), odd(size - 2))
        for size in last:
            if size > 4:
                yield self._other_size(size, odd(size + size // 2), odd(size // 2))

    def _other_size(self, size: int, larger: int, smaller: int) -> Reshaped:
        places = list(self._of_size(size))
        beside = [place for place in places if place[1] > 0]
        chosen = [places, beside, *([place] for place in beside)]
        grown = self._resized(f"size {larger} instead of {size}", size, larger, chosen)
        if grown.ways or smaller < 1:
            return grown
        return self._resized(f"size {smaller} instead of {size}", size, smaller, chosen)

    def ranks(self) -> Iterator[Reshaped]:
        """One more leading dimension: of two where the leading size is even, else of one."""
        if not self._leaves or self._leaves[0].dim() == 0 or any(map(_may_point, self._leaves)):
            return  # an index may then point into another dimension, which is shorter
        size = self._leaves[0].shape[0]
        shared = [index for index, dim in self._of_size(size) if dim == 0]
        ways: list[Way] = []
        for chosen in dict.fromkeys((tuple(shared), (0,))):
            whole = size % 2 > 0 or any(self._barred(i, 0, larger=False, together=False) for i in chosen)
            ways.append(partial(self._split, chosen, 1 if whole else 2))
        yield Reshaped(RANK, tuple(ways), 1.0)

    def _of_size(self, size: int) -> Iterator[tuple[int, int]]:
        return ((index, dim) for index, dim in self._places if self._leaves[index].shape[dim] == size)

    def _barred(self, index: int, dim: int, *, larger: bool, together: bool) -> bool:
        from_last = dim - self._leaves[index].dim()
        return any(trait.bars(from_last, larger=larger, together=together) for trait in self._forms.of(index))

    def _resized(
        self, name: str, size: int, other: int, chosen: Sequence[Sequence[tuple[int, int]]]
    ) -> Reshaped:
        """With the ways that structure allows: each a set of places (tensor, dimension) that change."""
        ways: list[Way] = []
        for places in dict.fromkeys(tuple(each) for each in chosen if each):
            whole = set(places) == set(self._of_size(size))
            if not any(self._barred(i, d, larger=other > size, together=whole) for i, d in places):
                ways.append(partial(self._changed, places, size, other))
        growth = (other / size) ** max((len({d for i, d in p if i == 0}) for p in chosen if p), default=1)
        return Reshaped(name, tuple(ways), max(1.0, growth))

    def _changed(self, places: Sequence[tuple[int, int]], size: int, other: int) -> list[Any]:
        numbers = iter(range(len(self._leaves)))

        def change(tensor: torch.Tensor) -> torch.Tensor:
            index = next(numbers)
            result = tensor
            for dim in (d for i, d in places if i == index):
                result = result.narrow(dim, 0, other) if other < size else _grown(result, dim, other)
            if other < size:
                result = _pointing_below(other, size, result)
            return result if result is tensor else result.contiguous()

        return [mapped(argument, change) for argument in self._arguments]

    def _split(self, chosen: Sequence[int], parts: int) -> list[Any]:
        numbers = iter(range(len(self._leaves)))

        def change(tensor: torch.Tensor) -> torch.Tensor:
            if next(numbers) not in chosen:
                return tensor
            return tensor.reshape(parts, tensor.shape[0] // parts, *tensor.shape[1:])

        return [mapped(argument, change) for argument in self._arguments]


def odd(size: int) -> int:
    """The size, or the next odd one."""
    return size + 1 - size % 2


def strided(arguments: list[Any], generator: torch.Generator) -> list[Any]:
    """The same values otherwise laid out in memory: dimensions in a secret order, rows or elements apart."""

    def change(tensor: torch.Tensor) -> torch.Tensor:
        if not tensor.dim():
            return tensor
        order = torch.randperm(tensor.dim(), generator=generator).tolist()
        inner = tensor.permute(order)
        *rows, width = inner.shape
        for kind in range(int(torch.randint(3, (), generator=generator)), 3):
            held = inner.new_empty(((*rows, width), (*rows, width + 1), (*rows, width, 2))[kind])
            found = (held[..., 0] if kind == 2 else held.narrow(-1, 0, width)).copy_(inner)
            found = found.permute([order.index(dim) for dim in range(tensor.dim())])
            if not found.is_contiguous():
                break
        return found

    return [mapped(argument, change) for argument in arguments]


def is_mask(tensor: torch.Tensor) -> bool:
    """Whether it holds booleans, or the zeros and negative infinities that are added in their place."""
    if not tensor.is_floating_point() or not tensor.numel():
        return tensor.dtype == torch.bool and tensor.numel() > 1
    hidden = tensor == -math.inf
    return bool(hidden.any()) and bool((hidden | (tensor == 0)).all())


def other_masks(arguments: list[Any], generator: torch.Generator) -> list[Any]:
    """With others in a quarter of the places of masks, which no variant changes. What was not alike along a
    row does not become so: a softmax of nothing is NaN."""

    def change(tensor: torch.Tensor) -> torch.Tensor:
        if not is_mask(tensor):
            return tensor
        before = tensor.logical_not() if tensor.is_floating_point() else tensor
        after = before ^ (torch.rand(tensor.shape, generator=generator) < SHARE_OF_MASK).to(tensor.device)
        if tensor.dim():
            alike = (after == after.narrow(-1, 0, 1)).all(-1, keepdim=True)
            after = torch.where(alike, before, after)
        if after.dtype == tensor.dtype:
            return after
        return torch.zeros_like(tensor).masked_fill_(~after, -math.inf)

    return [mapped(argument, change) for argument in arguments]


def _grown(tensor: torch.Tensor, dim: int, size: int) -> torch.Tensor:
    """Longer along a dimension: it begins anew where it ends. Integers repeat the last one."""
    missing = size - tensor.shape[dim]
    if tensor.is_floating_point() or tensor.is_complex():
        again = [tensor] * (missing // tensor.shape[dim]) + [
            tensor.narrow(dim, 0, missing % tensor.shape[dim])
        ]
    else:
        again = [tensor.narrow(dim, tensor.shape[dim] - 1, 1)] * missing
    return torch.cat([tensor, *again], dim)


def _may_point(tensor: torch.Tensor, least: int = 2, most: float = math.inf) -> bool:
    """Whether its values may be indices, the largest of them from `least` to below `most`."""
    if tensor.is_complex() or tensor.dtype == torch.bool or not tensor.numel():
        return False
    if not least <= float(tensor.max()) < most:
        return False
    return not tensor.is_floating_point() or bool((tensor == tensor.round()).all())


def _pointing_below(other: int, size: int, tensor: torch.Tensor) -> torch.Tensor:
    """What may be indices into a dimension that shrank, made to point at what is left of it."""
    return tensor.clamp(max=other - 1) if _may_point(tensor, other, size) else tensor
