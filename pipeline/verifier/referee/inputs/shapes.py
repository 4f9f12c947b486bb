"""Other shapes and other layouts of drawn inputs, for probes: the problem declares none of them.

A change comes in several ways: a size that occurs in many places may be one dimension of the problem or
several. The first way that the reference takes is used. Inputs with structure (triangular, sorted) are only
changed in ways that keep it, and whole numbers that may be indices stay within what they may point at: on a
GPU an index out of range ends the process.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from kernelproof.verifier.contestant.encoding import tensors
from kernelproof.verifier.referee.inputs.problem import mapped
from kernelproof.verifier.referee.inputs.structure import Forms

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
        if not self._leaves or self._leaves[0].dim() == 0:
            return
        size = self._leaves[0].shape[0]
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
            for size in last:
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
        yield Reshaped("one more dimension", tuple(ways), 1.0)

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


def strided(arguments: list[Any]) -> list[Any] | None:
    """The same values in memory whose last two dimensions are swapped; None where no tensor has two."""
    if not any(t.dim() >= 2 and t.numel() > 1 for t in tensors(arguments)):
        return None

    def change(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.dim() < 2:
            return tensor
        return tensor.transpose(-1, -2).contiguous().transpose(-1, -2)

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
