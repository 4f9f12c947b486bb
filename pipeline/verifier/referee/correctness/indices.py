"""Outputs that are indices: what of them is settled, and what torch leaves open.

| operators | on an argument of forward | on a computed tensor |
|---|---|---|
| argmax, argmin, max and min with indices | equal: torch documents the first of equal elements | the element pointed at is as large (small) as the extreme, within the tolerance |
| sort(stable=True) | equal | as sort |
| sort, argsort, topk | distinct; at every place the value that the reference has there | the same within the tolerance |
| topk(sorted=False) | distinct; the same values in any order | the same within the tolerance |
| kthvalue, median, mode | the value pointed at equals the reference's | the same within the tolerance |
| cummax, cummin | the same, and no index beyond its own place | the same within the tolerance |

A computed tensor may differ by rounding between two right programs, so near ties may fall either way. The
tolerance is the element bound of `kernelproof.verifier.referee.correctness.tolerance`, on the reference's own copy of the searched
tensor: |s[c] - s[r]| <= 6 N max(|s[r]|, rms of all s[r]), with r the reference's indices, c the candidate's
and N the norm floor of the tensor's dtype. The rms is taken over what the reference chose: fillers such as
-1e9 in masked places do not widen it. Integers that were computed have no rounding, and no tolerance.
Every index has to be in range.

Scores may have a large common term: with ||x - c||^2 of small c, every c is within that. So on drawn inputs no
more than `LOOSE_SHARE` of the indices may be further off than what float32 loses in these scores (`lost`; see
`precision.Precision.lost_in_search`).

`IndexTrace` watches one run of forward at the dispatcher and finds the outputs that are indices: of a sort, of
the largest elements, of an extreme. The comparison needs the tensor that was searched. It must be the
reference, in the referee: nothing here may be run on a candidate's word. `Geometry` says how tensors lie in
memory: which storage, and which of its elements.
"""  # noqa: E501

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from kernelproof.types import ErrorStatistics
from kernelproof.verifier.contestant.arena import overlaps
from kernelproof.verifier.contestant.encoding import dtype_name, tensors
from kernelproof.verifier.referee.correctness.tolerance import ELEMENT_MULTIPLE, norm_floor


@dataclass(frozen=True)
class Geometry:
    """How a strided tensor lies in its storage, in elements."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int

    @classmethod
    def of(cls, tensor: torch.Tensor) -> Geometry:
        """The geometry of a strided tensor."""
        return cls(tuple(tensor.shape), tuple(tensor.stride()), int(tensor.storage_offset()))

    @property
    def elements(self) -> int:
        """Elements of the storage that the tensor names, each once, where it is not `folded`."""
        count = 1
        for size, step in zip(self.shape, self.stride, strict=True):
            count *= size if step or not size else 1
        return count

    @property
    def folded(self) -> bool:
        """Whether, expanded dimensions apart, two indices may name one element (overlapping windows)."""
        trimmed = self.trimmed
        return overlaps(trimmed.shape, trimmed.stride)

    @property
    def once(self) -> bool:
        """Whether every element of the storage is named at most once: the tensor can be written to."""
        return not overlaps(self.shape, self.stride)

    @property
    def trimmed(self) -> Geometry:
        """The same elements without the dimensions that add none: of size one, and expanded."""
        kept = [(size, step) for size, step in zip(self.shape, self.stride, strict=True) if size > 1 and step]
        return Geometry(tuple(size for size, _ in kept), tuple(step for _, step in kept), self.offset)

    def within(self, flat: torch.Tensor) -> torch.Tensor:
        """The view with this geometry of a flat, contiguous tensor."""
        return flat.as_strided(self.shape, self.stride, self.offset)

    def tick(self, seen: torch.Tensor) -> None:
        """Sets the elements that a `trimmed` geometry names in a flat boolean tensor."""
        if not self.folded:
            self.within(seen).fill_(True)
            return
        axis = min(range(len(self.shape)), key=lambda a: self.shape[a])  # windows shifted one by one
        shape, stride = (kept[:axis] + kept[axis + 1 :] for kept in (self.shape, self.stride))
        for place in range(self.shape[axis]):
            Geometry(shape, stride, self.offset + place * self.stride[axis]).tick(seen)


def storage_address(tensor: torch.Tensor) -> int | None:
    """Where the tensor's storage begins, equal for all views of it; None where there is no memory."""
    if tensor.layout != torch.strided or tensor.is_meta:
        return None
    return tensor.untyped_storage().data_ptr() or None


LOOSE_SHARE = 1 / 64
"""So many indices may be off by more than `IndexLeaf.lost`: who computes scores in another way may lose more
in few of them, and who leaves out so few gains nothing."""
PIECE = 1 << 23
"""Indices judged at a time: their values, and what comparing needs, take about half a GiB."""


class Rule(Enum):
    """What has to hold of an index; the module's table says when."""

    FIRST = auto()
    """The first of equal extremes."""
    STABLE = auto()
    """Equal elements in the order in which they stood."""
    ORDER = auto()
    """Distinct, and at every place the right value."""
    SET = auto()
    """Distinct, and the right values in any order."""
    ANY = auto()
    """Any element of the right value."""
    RUNNING = auto()
    """Any element of the right value that stands no later than the index itself."""


@dataclass(frozen=True)
class Hop:
    """A step from indices to what forward made of them: a tensor in a storage, and a view of that storage."""

    store: Geometry
    view: Geometry
    room: int
    """Elements of the storage."""

    def there(self, tensor: torch.Tensor) -> torch.Tensor:
        """The view, when the tensor in the storage is `tensor`."""
        flat = tensor.new_zeros(self.room)
        self.store.within(flat).copy_(tensor)
        return self.view.within(flat)

    def back(self, tensor: torch.Tensor, fill: int) -> torch.Tensor:
        """The tensor in the storage, when the view is `tensor`; `fill` where the view does not reach."""
        flat = tensor.new_full((self.room,), fill)
        self.view.within(flat).copy_(tensor)
        return self.store.within(flat)


@dataclass(frozen=True)
class IndexLeaf:
    """An output of the reference that is indices, or a view or an integer copy of them."""

    operator: str
    """`aten.topk` ..."""
    rule: Rule
    source: torch.Tensor
    """The tensor that was searched."""
    dim: int | None
    """The dimension that was searched, not negative; None for all of them, flattened."""
    indices: torch.Tensor
    """int64, as the operator gave them."""
    of_input: bool
    """Whether the source lies in memory of an argument of forward, which nothing had written to."""
    hops: tuple[Hop, ...] = ()
    """The way from `indices` to the output."""
    lost: Callable[[], float] | None = None
    """Finds out what float32 loses in the source, relative to the rms of the values chosen."""

    @property
    def size(self) -> int:
        """Number of elements that an index may name: it is in range from 0 to this, exclusive."""
        if self.dim is None:
            return self.source.numel()
        return self.source.shape[self.dim] if self.source.dim() else 1

    @property
    def chosen(self) -> torch.Tensor:
        """The values that the operator's own indices point at."""
        if self.dim is None or not self.source.dim():
            return self.source.reshape(-1)[self.indices.reshape(-1)]
        alike = self.indices.dim() == self.source.dim()
        return torch.gather(
            self.source, self.dim, self.indices if alike else self.indices.unsqueeze(self.dim)
        )

    @property
    def exact(self) -> bool:
        """Whether only the reference's own indices are right."""
        settled = self.of_input or not self.source.is_floating_point()
        return self.rule in (Rule.FIRST, Rule.STABLE) and settled


def compare(
    leaf: IndexLeaf,
    native: torch.Tensor,
    candidate: torch.Tensor,
    *,
    trial: str,
    output: int,
    floor: float | None = None,
) -> ErrorStatistics:
    """How many of the candidate's indices are wrong by the rule that `leaf` stands under.

    `native` is the reference's output and `candidate` the output to judge, of one shape, integer dtype and
    device. `floor` replaces the norm floor of the searched tensor's dtype. Whatever the candidate's values
    are, nothing raises and nothing out of range is read: they are copied once, and then judged. `max_abs` and
    `max_rel` are of the values pointed at, `relative_norm` is the share of wrong indices.
    """
    mine = candidate.clone()
    bad, largest, relative = torch.zeros_like(mine, dtype=torch.bool), 0.0, 0.0
    if not torch.equal(mine, native):
        judged = _Values(leaf, norm_floor(leaf.source.dtype) if floor is None else floor)
        bad = judged.bad(mine)
        if leaf.lost is not None and not bad.all():
            judged.most = leaf.lost()
            far = judged.bad(mine)
            bad = far if int(far.sum()) > LOOSE_SHARE * far.numel() else bad
        largest, relative = judged.max_abs, judged.max_rel
        if leaf.exact:
            bad = mine != native
    wrong = int(bad.sum())
    first = bad.nonzero()[0].tolist() if wrong else None
    return ErrorStatistics(
        trial=trial,
        output=output,
        dtype=dtype_name(native.dtype),
        count=mine.numel(),
        wrong=wrong,
        max_abs=largest,
        max_rel=relative,
        relative_norm=wrong / max(mine.numel(), 1),
        reference_relative_norm=0.0,
        first_bad=tuple(first) if first is not None else None,
        expected=float(native[tuple(first)]) if first is not None else None,
        got=float(mine[tuple(first)]) if first is not None else None,
    )


class _Values:
    """Judges indices by the elements that they point at."""

    def __init__(self, leaf: IndexLeaf, floor: float) -> None:
        self._leaf, self._relative = leaf, ELEMENT_MULTIPLE * floor
        self._rounds = leaf.source.is_floating_point() and not leaf.of_input
        self._source = leaf.source if leaf.source.dim() else leaf.source.reshape(1)
        self.max_abs = self.max_rel = 0.0
        self.most = math.inf
        """No value may be off by more, relative to the rms."""
        self._right = self._aligned(leaf.indices)
        self._rms = self._root_mean_square() if self._rounds else 0.0

    def bad(self, mine: torch.Tensor) -> torch.Tensor:
        """Which of the candidate's indices are wrong: a mask in the output's shape."""
        leaf = self._leaf
        wide = mine.to(torch.int64)  # in a narrow type, the size itself might not be representable
        outside = (wide < 0) | (wide >= leaf.size)
        wide = wide.masked_fill(outside, 0)
        for hop in reversed(leaf.hops):
            wide = hop.back(wide, -1)
        found = self._aligned(wide)
        given = found >= 0  # forward may return a part of the indices only
        found = torch.where(given, found, self._right)
        wrong = torch.zeros_like(found, dtype=torch.bool)
        for piece in self._pieces():
            wrong[piece] = self._piece(found[piece], given[piece], piece)
        out = wrong.reshape(leaf.indices.shape)
        for hop in leaf.hops:
            out = hop.there(out)
        return out | outside

    def _aligned(self, indices: torch.Tensor) -> torch.Tensor:
        """Indices in as many dimensions as the source has."""
        dim = self._leaf.dim
        if dim is None or not self._leaf.source.dim():
            return indices.reshape(1)
        return indices if indices.dim() == self._source.dim() else indices.unsqueeze(dim)

    def _pieces(self) -> Iterator[tuple[slice, ...]]:
        """Parts that are judged one after another, to bound memory; none divides the searched dimension."""
        shape, dim = self._right.shape, self._leaf.dim
        free = [axis for axis in range(len(shape)) if axis != dim]
        if dim is None or not free or not self._right.numel():
            yield (slice(None),) * len(shape)
            return
        axis = max(free, key=lambda a: shape[a])
        step = max(1, PIECE // (self._right.numel() // shape[axis]))
        for start in range(0, shape[axis], step):
            yield (slice(None),) * axis + (slice(start, start + step),)

    def _at(self, indices: torch.Tensor, piece: tuple[slice, ...]) -> torch.Tensor:
        """The elements that indices point at."""
        if self._leaf.dim is None:
            return self._source[torch.unravel_index(indices, self._source.shape)]
        return torch.gather(self._source[piece], self._leaf.dim, indices)

    def _piece(self, indices: torch.Tensor, valid: torch.Tensor, piece: tuple[slice, ...]) -> torch.Tensor:
        leaf, dim = self._leaf, self._leaf.dim or 0
        mine, right = self._at(indices, piece), self._at(self._right[piece], piece)
        if leaf.rule is Rule.SET and bool(valid.all()):
            mine, order = mine.sort(dim)
            wrong = torch.empty_like(valid).scatter_(dim, order, ~self._agree(mine, right.sort(dim).values))
        else:
            wrong = ~self._agree(mine, right)
        if leaf.rule in (Rule.ORDER, Rule.SET, Rule.STABLE):
            wrong |= _repeated(indices, valid, dim)
        if leaf.rule is Rule.RUNNING:
            places = torch.arange(indices.shape[dim], device=indices.device)
            shape = [-1 if axis == dim else 1 for axis in range(indices.dim())]
            wrong |= indices > places.reshape(shape)
        return wrong

    def _agree(self, mine: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        """Where two values are equal, NaN to NaN too, or no further apart than rounding explains."""
        same = mine == right
        if not mine.is_floating_point():
            error = (mine.double() - right.double()).abs_()
            self._note(error, right.double().abs_())
            return same
        same |= mine.isnan() & right.isnan()
        wide, sure = mine.double(), right.double()
        error = (wide - sure).abs_()
        scale = sure.abs().clamp_(min=self._rms)
        self._note(error, scale)
        if not self._rounds:
            return same
        allowed = (self._relative * scale).clamp_(max=self.most * self._rms)
        return same | (torch.isfinite(wide) & torch.isfinite(sure) & (error <= allowed))

    def _note(self, error: torch.Tensor, scale: torch.Tensor) -> None:
        """Keeps the largest differences, for the record."""
        if error.numel():
            self.max_abs = max(self.max_abs, float(error.nan_to_num(0.0, 0.0, 0.0).max()))
            ratio = (error / scale.clamp(min=1e-300)).nan_to_num_(0.0, 0.0, 0.0)
            self.max_rel = max(self.max_rel, float(ratio.max()))

    def _root_mean_square(self) -> float:
        squares, count = 0.0, 0
        for piece in self._pieces():
            values = self._at(self._right[piece], piece).double()
            finite = torch.isfinite(values)
            squares += float(values.masked_fill(~finite, 0.0).square().sum())
            count += int(finite.sum())
        return math.sqrt(squares / max(count, 1))


def _repeated(indices: torch.Tensor, valid: torch.Tensor, dim: int) -> torch.Tensor:
    """Where an index stands that stood before along `dim`; those that are not `valid` repeat nothing."""
    length = indices.shape[dim]
    if length < 2:
        return torch.zeros_like(valid)
    places = torch.arange(length, device=indices.device)
    places = places.reshape([-1 if axis == dim else 1 for axis in range(indices.dim())])
    ordered, order = torch.sort(torch.where(valid, indices, -1 - places), dim=dim, stable=True)
    again = torch.zeros_like(valid)
    again.narrow(dim, 1, length - 1).copy_(
        ordered.narrow(dim, 1, length - 1) == ordered.narrow(dim, 0, length - 1)
    )
    return torch.empty_like(valid).scatter_(dim, order, again)


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
