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
"""  # noqa: E501

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto

import torch

from kernelproof.types import ErrorStatistics
from kernelproof.verifier.contestant.encoding import dtype_name
from kernelproof.verifier.referee.correctness.geometry import Geometry
from kernelproof.verifier.referee.correctness.tolerance import ELEMENT_MULTIPLE, norm_floor

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

    @property
    def size(self) -> int:
        """Number of elements that an index may name: it is in range from 0 to this, exclusive."""
        if self.dim is None:
            return self.source.numel()
        return self.source.shape[self.dim] if self.source.dim() else 1

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
        return same | (torch.isfinite(wide) & torch.isfinite(sure) & (error <= self._relative * scale))

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
