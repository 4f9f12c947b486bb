"""Which bytes of memory the operators of one forward read: a trace at the dispatcher.

Every number here is a lower bound. Views, shapes and allocations read nothing, and of other operators
`kernelproof.verifier.referee.roofline.operators` says which read only a part of their arguments.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from kernelproof.verifier.contestant.encoding import tensors
from kernelproof.verifier.referee.correctness.geometry import Geometry, storage_address
from kernelproof.verifier.referee.correctness.tracing import bound, written
from kernelproof.verifier.referee.roofline.operators import MASK_ELEMENTS, OTHERS, only_written, parts_read


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
