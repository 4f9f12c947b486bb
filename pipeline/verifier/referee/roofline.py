"""The roofline of a problem: the least time that its data and its arithmetic take on one device.

After S. Williams, A. Waterman, D. Patterson, *Roofline: an insightful visual performance model for multicore
architectures*, CACM 52 (2009), 65-76. docs/rationale/roofline.md says what is counted, and why. `ceilings`
beside it measures the device.

Which bytes the operators of one forward read is traced at the dispatcher (`ReadTrace`). Every number is a
lower bound. Views, shapes and allocations read nothing. Of other operators `parts_read` says how much of
their arguments they read: the fewest elements that their results need. An operator that takes elements by
index reads those it takes, each once; one that may skip elements (windows with gaps, a mask, a triangle, a
factor of zero) reads those it cannot skip. Where that depends on data in a way that is not modelled here,
and of operators that are not torch's own, nothing is counted. Operators that are not named read all of their
arguments.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from kernelproof.types.measurement import Ceilings, Roofline
from kernelproof.verifier.contestant.encoding import tensors
from kernelproof.verifier.referee.correctness.indices import Geometry, bound, storage_address, written
from kernelproof.verifier.referee.inputs.problem import LoadedProblem, ProblemError

BEYOND = 1.05
"""A call this many times faster than `needed_ms` is impossible: ceilings are measured to within 5 %."""
_ANOTHER_DRAW = 0x5DEECE66D
_SURE = 1 - 1e-9
_ROUNDING = 1e-5
"""Of an output that is about 1, or of noise around 0."""


@dataclass(frozen=True)
class Work:
    """What one forward of the reference moves and computes. All are lower bounds."""

    bytes_read: int
    """Bytes of arguments and weights that it reads at least once."""
    bytes_written: int
    """Bytes of the outputs that depend on the arguments and are no views of them."""
    operations: int
    """Operations of its matrix products, convolutions and attention."""
    bytes_needed: int
    """Bytes of the arguments that no program can do without: see `count`."""


def count(loaded: LoadedProblem, model: torch.nn.Module, arguments: list[Any], seed: int) -> Work:
    """Runs a copy of the reference once on `arguments`, and counts.

    `bytes_needed` is what remains of the arguments' part of `bytes_read` when everything is taken off that
    another program might leave out: reads that no output depends on, or only a part of an intermediate
    tensor; elements that are the same in another draw (masks, constants, structural zeros); and all weights,
    which it may transform once and keep. Raises ProblemError, and torch.OutOfMemoryError.
    """
    twin = copy.deepcopy(model)
    weights = [*twin.parameters(), *twin.buffers()]
    device = next((t.device for t in (*tensors(arguments), *weights)), torch.device("cpu"))
    with FlopCounterMode(display=False) as flops, ReadTrace(arguments, weights) as trace:
        outputs = tensors(loaded.run(twin, arguments, seed))
    reads: dict[int, list[Read]] = defaultdict(list)
    for step in trace.steps:
        for read in step.reads:
            if read.node < trace.sources and not read.passive:
                reads[read.node].append(read)
    made = _outputs(trace, outputs)
    return Work(
        bytes_read=sum(union(found, trace.nodes.nbytes[node], device) for node, found in reads.items()),
        bytes_written=sum(union(found, trace.nodes.nbytes[node], device) for node, found in made.items()),
        operations=int(flops.get_total_flops()),
        bytes_needed=_needed(trace, made, _varying_bytes(loaded, trace, arguments, seed), device),
    )


def roofline_of(work: Work, ceilings: Ceilings, candidate_ms: float) -> Roofline:
    """The least times by `ceilings`, and how close a call of `candidate_ms` (above 0) comes to them."""
    written = max(0, work.bytes_written - ceilings.cache_bytes)
    memory_ms = (work.bytes_read + written) / ceilings.bytes_per_s * 1e3
    compute_ms = work.operations / ceilings.operations_per_s * 1e3
    return Roofline(
        bytes_read=work.bytes_read,
        bytes_written=work.bytes_written,
        bytes_needed=work.bytes_needed,
        operations=work.operations,
        memory_ms=memory_ms,
        compute_ms=compute_ms,
        needed_ms=(work.bytes_needed + written) / ceilings.bytes_per_s * 1e3,
        fraction=max(memory_ms, compute_ms) / candidate_ms,
        ceilings=ceilings,
    )


def impossible(roofline: Roofline, candidate_ms: float) -> bool:
    """Whether no program can have moved what has to be moved in `candidate_ms`.

    Meant for GPUs, whose caches are emptied before each call: on a CPU, inputs may lie in the caches. The
    bound by arithmetic decides nothing: a better algorithm needs fewer operations than the reference.
    """
    return bool(candidate_ms * BEYOND < roofline.needed_ms)


def by_other_ceilings(roofline: Roofline, ceilings: Ceilings, candidate_ms: float) -> Roofline:
    """The same work by other ceilings."""
    work = Work(roofline.bytes_read, roofline.bytes_written, roofline.operations, roofline.bytes_needed)
    return roofline_of(work, ceilings, candidate_ms)


def has_constant_output(
    loaded: LoadedProblem, model: torch.nn.Module, draws: Sequence[list[Any]], seed: int
) -> bool:
    """Whether an output of the reference stays what it is, up to rounding, from one of two `draws` of
    arguments to the other: `x - x.mean(dim)` over a dimension of size 1 is 0 for any x.

    The trace shows operators that read the arguments, but a program may know better. Raises ProblemError, and
    torch.OutOfMemoryError.
    """
    first, second = (tensors(loaded.run(copy.deepcopy(model), arguments, seed)) for arguments in draws)
    return any(map(_same_but_for_rounding, first, second))


def _same_but_for_rounding(first: torch.Tensor, second: torch.Tensor) -> bool:
    if first.shape != second.shape or not first.numel():
        return False
    if not (first.is_floating_point() or first.is_complex()):
        return torch.equal(first, second)
    return torch.allclose(first, second, rtol=_ROUNDING, atol=_ROUNDING, equal_nan=True)


def _outputs(trace: ReadTrace, outputs: list[torch.Tensor]) -> dict[int, list[Read]]:
    """The outputs as parts of the nodes that they lie in, without those that need not be written."""
    made: dict[int, list[Read]] = defaultdict(list)
    for tensor in outputs:
        node = trace.nodes.of(tensor)
        if node is None or trace.source(tensor) is not None or not trace.nodes.varying[node]:
            continue
        place = Geometry.of(tensor)
        made[node].append(Read(node, tensor.itemsize, place.elements, place))
    return made


def _needed(
    trace: ReadTrace, output_reads: dict[int, list[Read]], varying: dict[int, int], device: torch.device
) -> int:
    """Bytes of arguments that the outputs depend on, going back from the outputs through all operators.

    An operator of whose result the share d is needed is taken to need the share d of what it reads. That is
    right for one that works element by element, and too little for others: a lower bound for all.
    """
    nbytes = trace.nodes.nbytes
    wanted: dict[int, list[tuple[float, Read]]] = defaultdict(list)
    for node, parts in output_reads.items():
        wanted[node].extend((1.0, part) for part in parts)

    def demand(node: int) -> float:
        sure = [read for share, read in wanted[node] if share >= _SURE]
        partly = max((share * read.nbytes for share, read in wanted[node]), default=0.0)
        return min(1.0, max(union(sure, nbytes[node], device), partly) / max(nbytes[node], 1))

    for step in reversed(trace.steps):
        share = max((demand(node) for node in step.makes if node in wanted), default=0.0)
        if share > 0:
            for read in step.reads:
                wanted[read.node].append((share, read))
    return sum(int(min(demand(node) * nbytes[node], most)) for node, most in varying.items())


def _varying_bytes(
    loaded: LoadedProblem, trace: ReadTrace, arguments: list[Any], seed: int
) -> dict[int, int]:
    """For each argument's node, the bytes of those elements that differ in another draw; else none."""
    mine = tensors(arguments)
    device = next((tensor.device for tensor in mine), torch.device("cpu"))
    try:
        other = tensors(loaded.draw(seed ^ _ANOTHER_DRAW, device))
    except (ProblemError, torch.OutOfMemoryError):
        return {}
    if [tensor.shape for tensor in mine] != [tensor.shape for tensor in other]:
        return {}
    found: dict[int, int] = defaultdict(int)
    for first, second in zip(mine, other, strict=True):
        node = trace.source(first)
        if node is not None:
            found[node] += int((first != second).sum()) * first.itemsize
    return found


MASK_ELEMENTS = 1 << 28
"""Largest storage whose elements are ticked off one by one (256 MiB); beyond, the largest view counts."""
OTHERS = "*"
"""Stands for all arguments that are not named."""
_MAKERS = ("empty", "zeros", "ones", "full", "rand", "randn", "randint", "new_", "sym_", "is_", "_is_")
"""Operators that look at the shape and type of a tensor, not at its values, begin so."""
_RANDOM = (
    "bernoulli_",
    "cauchy_",
    "exponential_",
    "geometric_",
    "log_normal_",
    "normal_",
    "random_",
    "uniform_",
)
_OVERWRITING = frozenset(("copy_", "fill_", "zero_", "resize_", "set_", *_RANDOM))
"""Operators that write to `self` without reading it."""
_UNKNOWN: dict[str, tuple[str, ...]] = {
    "grid_sampler_2d": ("input",),
    "grid_sampler_3d": ("input",),
    "searchsorted": ("sorted_sequence",),
    "bucketize": ("boundaries",),
    "_ctc_loss": ("log_probs", "targets"),
    "_cudnn_ctc_loss": ("log_probs", "targets"),
    "_pack_padded_sequence": ("input",),
    "segment_reduce": ("data",),
    "scatter": ("self", "src"),
    "scatter_": ("self", "src"),
    "scatter_add": ("src",),
    "scatter_add_": ("src",),
    "scatter_reduce": ("self", "src"),
    "scatter_reduce_": ("self", "src"),
    "index_put": ("self",),
    "index_put_": ("self",),
    "index_copy": ("self",),
    "index_copy_": ("self",),
    "index_fill": ("self",),
    "index_fill_": ("self",),
    "masked_scatter": ("self", "source"),
    "masked_scatter_": ("self", "source"),
    "tril_": ("self",),
    "triu_": ("self",),
    "slice_scatter": ("self",),
    "select_scatter": ("self",),
    "put": ("self",),
    "put_": ("self",),
}
"""Arguments of which an unknown part is read, by operator: nothing is counted."""


def only_written(func: torch._ops.OpOverload, argument: str) -> bool:
    """Whether an argument that the operator changes is overwritten without being read."""
    if func._overloadpacket.__name__ in _OVERWRITING:
        return True
    return any(a.name == argument and a.kwarg_only for a in func._schema.arguments)


def parts_read(
    func: torch._ops.OpOverload, named: dict[str, Any], results: list[torch.Tensor]
) -> dict[str, int]:
    """Arguments that are read in part only, with the number of elements; OTHERS stands for all the others.

    `named` are the operator's arguments by name, `results` its results.
    """
    name = func._overloadpacket.__name__
    if func.namespace not in ("aten", "prims") or name.startswith(_MAKERS) or name.endswith("_like"):
        return {OTHERS: 0}
    if name in _UNKNOWN:
        return dict.fromkeys(_UNKNOWN[name], 0)
    if name.startswith("_scaled_dot_product"):
        return _attended(named)
    if name.startswith("upsample_") or name.endswith("pad_nd"):
        whole = next(iter(named.values()))
        return {next(iter(named)): min(whole.numel(), results[0].numel())}
    if name not in _PARTLY:
        return {}
    if "out" in named:
        return {OTHERS: 0}
    try:
        return _PARTLY[name](func, named, results)
    except RuntimeError:  # no memory to count with, or a layout that cannot be counted
        return {OTHERS: 0}


_FILLER = -1e4
"""Numbers below this are taken for the fillers of masked places, such as -1e9 and minus infinity."""
Partly = Callable[[Any, dict[str, Any], list[torch.Tensor]], dict[str, int]]


def _rows(source: str, index: str) -> Partly:
    """Rows (along `dim`, else the first dimension) that an index names, each once."""

    def count(func: Any, named: dict[str, Any], results: list[torch.Tensor]) -> dict[str, int]:
        table = named[source]
        length = table.shape[named.get("dim", 0)] if table.dim() else 1
        return {source: int(named[index].unique().numel()) * (table.numel() // max(length, 1))}

    return count


def _by_index(func: Any, named: dict[str, Any], results: list[torch.Tensor]) -> dict[str, int]:
    """The number of elements that the operator takes, each once; 0 for a very large tensor."""
    source = named["self"]
    if source.numel() > MASK_ELEMENTS >> 2:
        return {"self": 0}
    positions = torch.arange(source.numel(), dtype=torch.int32, device=source.device).view(source.shape)
    seen = torch.zeros(source.numel(), dtype=torch.bool, device=source.device)
    seen[func(**named | {"self": positions}).reshape(-1).long()] = True
    return {"self": int(seen.sum())}


def _triangle(func: Any, named: dict[str, Any], results: list[torch.Tensor]) -> dict[str, int]:
    ones = torch.ones(named["self"].shape, dtype=torch.bool, device=named["self"].device)
    return {"self": int(func(**named | {"self": ones}).sum())}


def _chosen(func: Any, named: dict[str, Any], results: list[torch.Tensor]) -> dict[str, int]:
    """Of each alternative, no more than the condition chooses."""
    condition = named["condition"].bool()
    sides = {"self": condition, "other": ~condition}
    return {key: _selected(named.get(key), mask, results) for key, mask in sides.items()}


def _unmasked(func: Any, named: dict[str, Any], results: list[torch.Tensor]) -> dict[str, int]:
    return {"self": _selected(named["self"], ~named["mask"].bool(), results)}


def _selected(source: Any, mask: torch.Tensor, results: list[torch.Tensor]) -> int:
    """Fewest elements of `source` that stand where a mask is true, when both are broadcast to the result."""
    if not isinstance(source, torch.Tensor) or not mask.numel() or not source.numel():
        return 0
    whole = results[0].numel()
    return int(mask.sum()) * (whole // mask.numel()) // (whole // source.numel())


def _multiplied(func: Any, named: dict[str, Any], results: list[torch.Tensor]) -> dict[str, int]:
    """Of each factor, what does not meet a zero: a mask may be multiplied with."""
    one, other = named["self"], named["other"]
    if not isinstance(one, torch.Tensor) or not isinstance(other, torch.Tensor):
        return {}
    return {"self": _selected(one, other != 0, results), "other": _selected(other, one != 0, results)}


def _added(func: Any, named: dict[str, Any], results: list[torch.Tensor]) -> dict[str, int]:
    """Of each term, what does not meet a filler: a mask may be added."""
    one, other = named["self"], named["other"]
    if not isinstance(one, torch.Tensor) or not isinstance(other, torch.Tensor):
        return {}
    if one.is_complex() or other.is_complex():
        return {}
    return {
        "self": _selected(one, other > _FILLER, results),
        "other": _selected(other, one > _FILLER, results),
    }


def _product(left: str, right: str) -> Partly:
    """Of each matrix, what does not meet a column or a row of zeros of the other one."""

    def count(func: Any, named: dict[str, Any], results: list[torch.Tensor]) -> dict[str, int]:
        one, other = named[left], named[right]
        return {
            left: int((other != 0).any(-1).sum()) * one.shape[-2],
            right: int((one != 0).any(-2).sum()) * other.shape[-1],
        }

    return count


def _attended(named: dict[str, Any]) -> dict[str, int]:
    """Keys and values: which of them a mask leaves is not known."""
    masked = named.get("attn_mask") is not None or named.get("attn_bias") is not None
    shorter = named["query"].shape[-2] < named["key"].shape[-2]
    return {"key": 0, "value": 0} if masked or (named.get("is_causal") and shorter) else {}


def _labels(func: Any, named: dict[str, Any], results: list[torch.Tensor]) -> dict[str, int]:
    """One element for each label that is not ignored."""
    return {"self": int((named["target"] != named.get("ignore_index", -100)).sum())}


def _kept(func: Any, named: dict[str, Any], results: list[torch.Tensor]) -> dict[str, int]:
    """What dropout leaves."""
    dropped = named["p"] if named.get("train", True) else 0.0
    return {"input": int(named["input"].numel() * (1 - dropped))}


def _windows(func: Any, named: dict[str, Any], results: list[torch.Tensor]) -> dict[str, int]:
    """Elements that lie in some window of a convolution or a pooling."""
    source = "input" if "input" in named else "self"
    whole, out = named[source], results[0]
    if named.get("transposed"):
        return {}
    kernel = list(named["weight"].shape[2:]) if "weight" in named else list(named["kernel_size"])
    axes = whole.dim() - 2 if "weight" in named else int(func._overloadpacket.__name__.split("pool")[1][0])
    settings = [
        _each(kernel, axes),
        _each(named.get("stride") or kernel, axes),
        _each(named.get("padding", 0), axes),
        _each(named.get("dilation", 1), axes),
    ]
    count = whole.numel()
    for axis, (size, step, pad, spread) in enumerate(zip(*settings, strict=True), start=whole.dim() - axes):
        length = whole.shape[axis]
        starts = torch.arange(out.shape[axis]) * step - pad
        places = (starts[:, None] + torch.arange(size) * spread).reshape(-1)
        inside = places[(places >= 0) & (places < length)]
        count = count // max(length, 1) * int(inside.unique().numel())
    return {source: count}


def _each(value: Any, count: int) -> list[int]:
    """One number for each dimension, from a number, or from one or all of them in a list."""
    listed = [value] if isinstance(value, int) else list(value)
    return listed * count if len(listed) == 1 else listed


_PARTLY: dict[str, Partly] = {
    "embedding": _rows("weight", "indices"),
    "_embedding_bag": _rows("weight", "indices"),
    "_embedding_bag_forward_only": _rows("weight", "indices"),
    "index_select": _rows("self", "index"),
    **dict.fromkeys(("index", "_unsafe_index", "gather", "take", "masked_select"), _by_index),
    **dict.fromkeys(("tril", "triu"), _triangle),
    **dict.fromkeys(("nll_loss_forward", "nll_loss2d_forward"), _labels),
    **dict.fromkeys(("masked_fill", "masked_fill_"), _unmasked),
    **dict.fromkeys(("mul", "mul_"), _multiplied),
    **dict.fromkeys(("add", "add_"), _added),
    **dict.fromkeys(("mm", "bmm"), _product("self", "mat2")),
    "addmm": _product("mat1", "mat2"),
    "baddbmm": _product("batch1", "batch2"),
    "where": _chosen,
    "native_dropout": _kept,
    **dict.fromkeys(
        (
            "convolution",
            "avg_pool2d",
            "avg_pool3d",
            "max_pool2d_with_indices",
            "max_pool3d_with_indices",
        ),
        _windows,
    ),
}


@dataclass(frozen=True)
class Read:
    """A part of one node that an operator reads, or leaves as it is."""

    node: int
    itemsize: int
    elements: int
    geometry: Geometry | None = None
    """Where the elements lie; None where only their number is known."""
    passive: bool = False
    """The operator writes to the rest of the node, and hands these on."""

    @property
    def nbytes(self) -> int:
        """Bytes of the elements."""
        return self.elements * self.itemsize


@dataclass(frozen=True)
class Step:
    """One operator: what it reads, and the nodes that it makes."""

    reads: tuple[Read, ...]
    makes: tuple[int, ...]


@dataclass
class Nodes:
    """Contents of memory, numbered. A storage that is written to becomes another node."""

    nbytes: list[int] = field(default_factory=list)
    varying: list[bool] = field(default_factory=list)
    """Whether the contents depend on arguments of forward, or on chance."""
    places: dict[int, int] = field(default_factory=dict)
    """Address of a storage to the node that lies there now."""

    def of(self, tensor: torch.Tensor) -> int | None:
        """The node that lies in the tensor's storage; None for one that no traced operator made."""
        address = storage_address(tensor)
        return self.places.get(address) if address is not None else None

    def new(self, tensor: torch.Tensor, *, varying: bool) -> int | None:
        """A new node in the tensor's storage; None where it has no memory."""
        address = storage_address(tensor)
        if address is None:
            return None
        self.places[address] = len(self.nbytes)
        self.nbytes.append(tensor.untyped_storage().nbytes())
        self.varying.append(varying)
        return self.places[address]


class ReadTrace(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes the reads of every operator: `with ReadTrace(arguments, weights) as trace: ...`.

    It holds no tensors. Arguments and weights must outlive it.
    """

    def __init__(self, arguments: Any, weights: Iterable[torch.Tensor]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.nodes = Nodes()
        self.steps: list[Step] = []
        for group, varying in ((tensors(arguments), True), (weights, False)):
            for tensor in group:
                if self.nodes.of(tensor) is None:
                    self.nodes.new(tensor, varying=varying)
        self.sources = len(self.nodes.nbytes)
        """Nodes below this number are arguments and weights as they came."""
        self._as_they_came = dict(self.nodes.places)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if isinstance(func, torch._ops.OpOverload):
            self._note(func, bound(func, args, kwargs), tensors(result))
        else:
            for tensor in tensors(result):
                self.nodes.new(tensor, varying=False)
        return result

    def source(self, tensor: torch.Tensor) -> int | None:
        """The node that lay in the tensor's storage at first, if that is an argument's or a weight's."""
        address = storage_address(tensor)
        return self._as_they_came.get(address) if address is not None else None

    def _note(self, func: torch._ops.OpOverload, named: dict[str, Any], results: list[torch.Tensor]) -> None:
        changed = list(written(func, named))
        known = {storage_address(tensor) for tensor in tensors(list(named.values()))}
        fresh = [tensor for tensor in results if storage_address(tensor) not in known]
        name = func._overloadpacket.__name__
        if name == "lift_fresh":  # of a tensor that was made out of the dispatcher's sight
            fresh = results
        if not changed and not fresh and name != "_local_scalar_dense":
            return  # a view, or a question about the shape
        reads = tuple(self._reads(func, named, {argument for argument, _ in changed}, results))
        varying = torch.Tag.nondeterministic_seeded in func.tags
        varying = varying or any(self.nodes.varying[read.node] for read in reads)
        makes = [self.nodes.new(tensor, varying=varying) for tensor in (*(t for _, t in changed), *fresh)]
        self.steps.append(Step(reads, tuple(node for node in makes if node is not None)))

    def _reads(
        self,
        func: torch._ops.OpOverload,
        named: dict[str, Any],
        changed: set[str],
        results: list[torch.Tensor],
    ) -> Iterable[Read]:
        counts = parts_read(func, named, results)
        for argument, value in named.items():
            for tensor in tensors([value]):
                node = self.nodes.of(tensor)
                if node is None or not tensor.numel():
                    continue
                if argument not in changed or not only_written(func, argument):
                    yield _read(node, tensor, counts.get(argument, counts.get(OTHERS)))
                if argument in changed:
                    rest = self.nodes.nbytes[node] // tensor.itemsize - Geometry.of(tensor).elements
                    if rest > 0:
                        yield Read(node, tensor.itemsize, rest, passive=True)


def union(reads: Sequence[Read], nbytes: int, device: torch.device) -> int:
    """Bytes that several reads of one node of `nbytes` cover together, each counted once: a lower bound."""
    most = max((read.nbytes for read in reads if read.geometry is None), default=0)
    for itemsize in {read.itemsize for read in reads}:
        same = [read for read in reads if read.itemsize == itemsize and read.geometry is not None]
        places = {read.geometry.trimmed: read.elements for read in same if read.geometry is not None}
        largest = max(places.values(), default=0)
        cells = nbytes // itemsize
        if len(places) > 1 and largest < cells <= MASK_ELEMENTS:
            seen = torch.zeros(cells, dtype=torch.bool, device=device)
            for place in places:
                place.tick(seen)
            largest = max(largest, int(seen.sum()))
        most = max(most, largest * itemsize)
    return min(most, nbytes)


def _read(node: int, tensor: torch.Tensor, count: int | None) -> Read:
    """A read of the whole tensor, or of `count` of its elements."""
    place = Geometry.of(tensor)
    whole = _distinct(place, tensor)
    if count is None or count >= tensor.numel():
        return Read(node, tensor.itemsize, whole, place)
    return Read(node, tensor.itemsize, count * whole // tensor.numel())


def _distinct(place: Geometry, tensor: torch.Tensor) -> int:
    """Elements of the storage that a tensor names; of windows over a very large one, none."""
    if not place.folded:
        return place.elements
    cells = tensor.untyped_storage().nbytes() // tensor.itemsize
    if cells > MASK_ELEMENTS:
        return 0
    seen = torch.zeros(cells, dtype=torch.bool, device=tensor.device)
    place.trimmed.tick(seen)
    return int(seen.sum())
