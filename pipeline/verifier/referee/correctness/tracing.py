"""What the dispatcher sees of the reference: where tensors lie, and which outputs are indices of what.

`IndexTrace` watches one run of forward and finds the outputs that are indices: of a sort, of the largest
elements, of an extreme. Such outputs have their own rules of comparison
(`correctness.indices`), for which the tensor that was searched is needed. It must be the
reference, in the referee: nothing here may be run on a candidate's word.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from kernelproof.verifier.contestant.encoding import tensors
from kernelproof.verifier.referee.correctness.geometry import Geometry, storage_address
from kernelproof.verifier.referee.correctness.indices import Hop, IndexLeaf, Rule


def bound(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a dispatched operator by their names in its schema; defaults are left out."""
    names = [argument.name for argument in func._schema.arguments]
    return dict(zip(names, args, strict=False)) | kwargs


def written(func: Any, named: dict[str, Any]) -> Iterator[tuple[str, torch.Tensor]]:
    """Names and tensors among the arguments that a dispatched operator writes to, by its schema."""
    if not func._schema.is_mutable:
        return
    for argument in func._schema.arguments:
        if argument.alias_info is not None and argument.alias_info.is_write:
            for tensor in tensors([named.get(argument.name)]):
                yield argument.name, tensor


_RULES: dict[str, Rule] = {
    "argmax": Rule.FIRST,
    "argmin": Rule.FIRST,
    "max": Rule.FIRST,
    "min": Rule.FIRST,
    "kthvalue": Rule.ANY,
    "median": Rule.ANY,
    "nanmedian": Rule.ANY,
    "mode": Rule.ANY,
    "cummax": Rule.RUNNING,
    "cummin": Rule.RUNNING,
    "sort": Rule.ORDER,
    "argsort": Rule.ORDER,
    "topk": Rule.ORDER,
}
"""Operators with indices among their results. torch documents the first index for the first four only."""
_LAST_BY_DEFAULT = frozenset({"kthvalue", "mode", "sort", "argsort", "topk"})
_ALONE = frozenset({"argmax", "argmin", "argsort"})
"""Operators that give indices and nothing else."""
_COPIES = frozenset({"_to_copy", "clone"})


@dataclass(frozen=True)
class _Tracked:
    """A storage that holds indices, as an operator gave them or as copies of those."""

    leaf: IndexLeaf
    """The operator and its result; `hops` are the copies so far."""
    tensor: torch.Tensor
    """The tensor that filled the storage; holding it keeps the storage's address from being used again."""


class IndexTrace(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Finds the outputs of one forward that are indices: `with IndexTrace(arguments) as trace: ...`.

    The tensors that index operators searched are held until `leaves` is called: at most what forward itself
    searches, beside what it keeps. A source that forward overwrites later is copied before.
    """

    def __init__(self, arguments: Any) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._inputs = {storage_address(tensor) for tensor in tensors(arguments)} - {None}
        self._tracked: dict[int, _Tracked] = {}

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        named = bound(func, args, kwargs or {})
        for _, tensor in written(func, named):
            self._forget(storage_address(tensor))
        result = func(*args, **(kwargs or {}))
        name = func._overloadpacket.__name__ if isinstance(func, torch._ops.OpOverload) else ""
        if name in _RULES:
            self._track(name, named, result)
        elif name in _COPIES:
            self._copied(named["self"], result)
        return result

    def leaves(self, value: Any) -> dict[int, IndexLeaf]:
        """Which of `tensors(value)` are indices, by their place among them; lets go of everything else."""
        out: dict[int, IndexLeaf] = {}
        for place, tensor in enumerate(tensors(value)):
            found = self._view(tensor)
            if found is not None:
                out[place] = found
        self._tracked.clear()
        return out

    def _forget(self, address: int | None) -> None:
        """A storage is about to be overwritten: it holds neither an input nor known indices any more."""
        if address is None:
            return
        self._inputs.discard(address)
        for key, tracked in list(self._tracked.items()):
            if address in (key, storage_address(tracked.leaf.indices)):
                del self._tracked[key]
            elif storage_address(tracked.leaf.source) == address:
                kept = replace(tracked.leaf, source=tracked.leaf.source.clone())
                self._tracked[key] = replace(tracked, leaf=kept)

    def _track(self, name: str, named: dict[str, Any], result: Any) -> None:
        indices = result if name in _ALONE else result[1] if isinstance(result, tuple) else None
        source = named.get("self")
        if not isinstance(source, torch.Tensor) or not isinstance(indices, torch.Tensor):
            return
        address = storage_address(indices)
        if indices.dtype != torch.int64 or address is None or not source.numel():
            return
        rule = _RULES[name]
        if named.get("stable"):
            rule = Rule.STABLE
        elif name == "topk" and named.get("sorted") is False:
            rule = Rule.SET
        dim = named.get("dim", -1 if name in _LAST_BY_DEFAULT else None)
        if dim is not None:
            dim %= max(source.dim(), 1)
        leaf = IndexLeaf(
            operator=f"aten.{name}",
            rule=rule,
            source=source,
            dim=dim,
            indices=indices,
            of_input=storage_address(source) in self._inputs,
        )
        self._tracked[address] = _Tracked(leaf, indices)

    def _copied(self, source: torch.Tensor, result: torch.Tensor) -> None:
        """A copy of indices, in another integer type perhaps, holds indices too."""
        leaf, address = self._view(source), storage_address(result)
        if leaf is None or address is None or result.dtype == torch.bool:
            return
        if result.dtype.is_floating_point or result.is_complex():
            return
        if leaf.size - 1 <= torch.iinfo(result.dtype).max:
            self._tracked[address] = _Tracked(leaf, result)

    def _view(self, tensor: torch.Tensor) -> IndexLeaf | None:
        """The indices that `tensor` is a view of, with the way from those to it; None where it is no such."""
        address = storage_address(tensor)
        tracked = self._tracked.get(address) if address is not None else None
        if tracked is None or tensor.dtype != tracked.tensor.dtype:
            return None
        store, view = Geometry.of(tracked.tensor), Geometry.of(tensor)
        if not tensor.numel() or not view.once or not store.once:
            return None
        room = tensor.untyped_storage().nbytes() // tensor.itemsize
        hop = Hop(store, view, room)
        return tracked.leaf if store == view else replace(tracked.leaf, hops=(*tracked.leaf.hops, hop))
