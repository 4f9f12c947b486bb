"""Structure of drawn inputs: what of their values an input variant has to keep.

A matrix product of triangular matrices may skip what is zero, a search may rely on sorted rows. A variant
that filled the zeros or mixed the rows would refuse a right program. So every floating tensor is looked at,
in two draws or more, and what holds in all of them is a trait of it. A variant restores traits after its
change (zeros are set again, rows are sorted again), or leaves the tensor alone where that is not possible.

Nothing is a trait by its range alone: that draws are never negative is what a wrong program relies on. Large
tensors are sampled first; a trait that the sample shows is then looked for in the whole tensor.

A `Trait` says how a variant makes it true again; `recognise` finds the traits of an input.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from kernelproof.verifier.contestant.encoding import tensors


@dataclass(frozen=True)
class Trait(ABC):
    """Something that is true of a tensor in every draw."""

    name: str = field(compare=False)
    """As the record says it: `upper triangular`."""
    dims: tuple[int, ...] = ()
    """The dimensions, counted from the last (-1), that it relates to each other."""

    @abstractmethod
    def restored(self, changed: torch.Tensor, drawn: torch.Tensor) -> torch.Tensor:
        """Changed values for which it is true again; `drawn` are those before the change."""

    def bars(self, dim: int, *, larger: bool, together: bool) -> bool:
        """Whether another size of this dimension would break it. `together`: all dimensions of that size
        change; otherwise only this dimension."""
        return dim in self.dims


@dataclass(frozen=True)
class Fixed(Trait):
    """Values that carry a meaning no change keeps: probabilities, masks, permutations."""

    def restored(self, changed: torch.Tensor, drawn: torch.Tensor) -> torch.Tensor:
        return drawn


@dataclass(frozen=True)
class Whole(Trait):
    """Whole numbers, which may be indices or counts: they stay whole, and within the drawn range."""

    def restored(self, changed: torch.Tensor, drawn: torch.Tensor) -> torch.Tensor:
        return changed.round().clamp_(float(drawn.min()), float(drawn.max()))


@dataclass(frozen=True)
class Equal(Trait):
    """The same along a dimension, as an expanded tensor is."""

    def restored(self, changed: torch.Tensor, drawn: torch.Tensor) -> torch.Tensor:
        return changed.narrow(self.dims[0], 0, 1).expand_as(changed).clone()

    def bars(self, dim: int, *, larger: bool, together: bool) -> bool:
        return False


class _OfMatrix(Trait):
    """Of the last two dimensions; a leading part of such a matrix has it too."""

    def bars(self, dim: int, *, larger: bool, together: bool) -> bool:
        return dim in self.dims and (larger or not together)


@dataclass(frozen=True)
class Symmetric(_OfMatrix):
    """Equal to its transpose."""

    def restored(self, changed: torch.Tensor, drawn: torch.Tensor) -> torch.Tensor:
        return changed.tril() + changed.tril(-1).mT


@dataclass(frozen=True)
class Zeros(_OfMatrix):
    """Exact zeros, which stay where this draw has them."""

    def restored(self, changed: torch.Tensor, drawn: torch.Tensor) -> torch.Tensor:
        return changed.masked_fill(drawn == 0, 0)


@dataclass(frozen=True)
class Definite(_OfMatrix):
    """Symmetric and positive definite: the diagonal is made to outweigh the rest of its row."""

    def restored(self, changed: torch.Tensor, drawn: torch.Tensor) -> torch.Tensor:
        wide = changed.float() if changed.itemsize < 4 else changed.clone()
        diagonal = wide.diagonal(dim1=-2, dim2=-1)
        own = torch.where(diagonal == 0, drawn.diagonal(dim1=-2, dim2=-1).to(wide.dtype), diagonal).abs()
        diagonal.zero_()
        diagonal.copy_(own + wide.abs().sum(-1))
        return wide.to(changed.dtype)


@dataclass(frozen=True)
class Unit(Trait):
    """Vectors of length one along a dimension."""

    def restored(self, changed: torch.Tensor, drawn: torch.Tensor) -> torch.Tensor:
        wide = changed.float() if changed.itemsize < 4 else changed
        norm = torch.linalg.vector_norm(wide, dim=self.dims[0], keepdim=True)
        sound = (norm > 0) & torch.isfinite(norm)
        return torch.where(sound, wide / norm, drawn.to(wide.dtype)).to(changed.dtype)


@dataclass(frozen=True)
class Ascending(Trait):
    """Sorted along a dimension."""

    descending: bool = False

    def restored(self, changed: torch.Tensor, drawn: torch.Tensor) -> torch.Tensor:
        return changed.sort(dim=self.dims[0], descending=self.descending).values

    def bars(self, dim: int, *, larger: bool, together: bool) -> bool:
        return larger and dim in self.dims


@dataclass(frozen=True)
class Infinite(Trait):
    """Infinities, which stay where this draw has them."""

    def restored(self, changed: torch.Tensor, drawn: torch.Tensor) -> torch.Tensor:
        return torch.where(torch.isinf(drawn), drawn, changed)


@dataclass(frozen=True)
class Twin(Trait):
    """Equal to an earlier input, and changed as that one is."""

    of: int = 0

    def restored(self, changed: torch.Tensor, drawn: torch.Tensor) -> torch.Tensor:
        return changed


_ORDER: tuple[type[Trait], ...] = (
    Twin,
    Fixed,
    Whole,
    Equal,
    Symmetric,
    Zeros,
    Definite,
    Unit,
    Ascending,
    Infinite,
)
"""In this order traits are restored: none of these breaks one before it that stands with it."""


def in_order(traits: Iterable[Trait]) -> tuple[Trait, ...]:
    """Traits in the order in which they are restored."""
    return tuple(sorted(traits, key=lambda trait: _ORDER.index(type(trait))))


SAMPLE = 1 << 18
"""Elements that are looked at first."""
ZERO_SHARE = 0.02
"""With more exact zeros than this they are kept. Of uniform bfloat16 numbers 0.4 % are zero by chance."""
SORTED_BITS = 20.0
"""A tensor counts as sorted when chance would do that once in 2^20 draws."""
LARGEST_FACTORED = 1024
"""The leading rows and columns that are factored to test whether a matrix is positive definite: if it is,
they are too. Larger matrices are not tested for being orthogonal."""
FEWEST_OF_TWO = 8
"""Elements that a tensor of two values has at least, if it is to count as a mask."""
_CLOSE = {torch.float16: 1e-2, torch.bfloat16: 3e-2}
"""How near to one sums and norms are, for dtypes that round more than float32 does."""


class Forms:
    """The traits of a problem's inputs, as far as the draws seen so far show them."""

    def __init__(self, *draws: list[Any]) -> None:
        self.draws = 0
        self._traits: list[tuple[Trait, ...]] = []
        self._samples: list[torch.Tensor] = []
        self._same: list[bool] = []
        self._floating: list[bool] = []
        for arguments in draws:
            self.see(arguments)

    def see(self, arguments: list[Any]) -> None:
        """Takes account of another draw: a property that does not hold in it is no trait."""
        leaves = tensors(arguments)
        found = [_with_twin(leaves, index) for index in range(len(leaves))]
        samples = [sampled(leaf).clone() for leaf in leaves]
        if self.draws and len(leaves) == len(self._traits):
            self._traits = [_common(a, b) for a, b in zip(self._traits, found, strict=True)]
            same = [torch.equal(a, b) for a, b in zip(self._samples, samples, strict=True)]
            self._same = [a and b for a, b in zip(self._same, same, strict=True)]
        else:
            self._traits, self._same = found, [True] * len(leaves)
        self._samples = samples
        self._floating = [leaf.is_floating_point() for leaf in leaves]
        self.draws += 1

    def of(self, index: int) -> tuple[Trait, ...]:
        """The traits of the tensor of this number, in the order in which they are restored."""
        traits = self._traits[index]
        if self.draws > 1 and self._same[index] and not self._all_same():
            return (Fixed("the same in every draw"),)
        return traits

    @property
    def traits_by_input(self) -> dict[str, str]:
        """What the record says: the traits of each floating input that has any."""
        named = {
            f"input {index}": ", ".join(trait.name for trait in self.of(index))
            for index, floating in enumerate(self._floating)
            if floating
        }
        return {name: traits for name, traits in named.items() if traits}

    def _all_same(self) -> bool:
        """Whether `get_inputs` never draws anything else: then that says nothing of a single tensor."""
        return all(same for same, floating in zip(self._same, self._floating, strict=True) if floating)


def sampled(tensor: torch.Tensor, keep: Sequence[int] = ()) -> torch.Tensor:
    """Every third (ninth ...) slice of a large tensor; dimensions to `keep` are left whole.

    Not every second: values that repeat do so in powers of two more often than in threes.
    """
    kept = {dim % tensor.dim() for dim in keep} if tensor.dim() else set()
    while tensor.numel() > SAMPLE:
        sizes = [0 if dim in kept else size for dim, size in enumerate(tensor.shape)]
        dim = max(range(len(sizes)), key=lambda d: sizes[d])
        if sizes[dim] < 2:
            break
        tensor = tensor[(slice(None),) * dim + (slice(None, None, 3),)]
    return tensor


def recognise(tensor: torch.Tensor) -> tuple[Trait, ...]:
    """The traits of one tensor in one draw, in the order in which they are restored."""
    if not tensor.is_floating_point():
        return ()
    if tensor.numel() < 2:
        return (Fixed("fewer than two elements"),)
    sample = sampled(tensor)
    meaning = _meaning(tensor, sample)
    if meaning is not None:
        return (meaning,)
    found: list[Trait] = []
    if bool(torch.isinf(sample).any()):
        found.append(Infinite("infinities in places"))
    elif _throughout(_are_whole, sample, tensor):
        found.append(Whole("whole numbers"))
    found += [Equal(f"the same along dimension {d}", (d - tensor.dim(),)) for d in _equal_dims(tensor)]
    found += _of_matrices(tensor, sample)
    symmetric = any(isinstance(trait, Symmetric) for trait in found)
    ordered = [] if symmetric else _sorted_dims(tensor, sample)
    if ordered:  # zeros of a sorted tensor stand where the order has them
        found = [trait for trait in found if not isinstance(trait, Zeros)] + ordered
    if not any(isinstance(trait, Symmetric | Ascending | Whole) for trait in found):
        units = _unit_dims(tensor)[:1]
        found += [Unit(f"unit length along dimension {d}", (d - tensor.dim(),)) for d in units]
    return in_order(found)


def _with_twin(leaves: Sequence[torch.Tensor], index: int) -> tuple[Trait, ...]:
    mine = leaves[index]
    for number, other in enumerate(leaves[:index]):
        alike = mine.is_floating_point() and (mine.shape, mine.dtype) == (other.shape, other.dtype)
        if alike and mine.numel() > 1 and torch.equal(mine, other):
            return (Twin(f"equal to input {number}", of=number),)
    return recognise(mine)


def _common(first: tuple[Trait, ...], second: tuple[Trait, ...]) -> tuple[Trait, ...]:
    """What both draws show. Values of one meaning or another (a mask may be all ones once) are left alone."""
    fixed = [trait for trait in (*first, *second) if isinstance(trait, Fixed)]
    if len(fixed) == 2:
        return (fixed[0],)
    return tuple(trait for trait in first if trait in second)


def _throughout(holds: Callable[[torch.Tensor], Any], sample: torch.Tensor, tensor: torch.Tensor) -> bool:
    """Whether it holds in the sample, and then in the whole tensor too."""
    return bool(holds(sample)) and (sample is tensor or bool(holds(tensor)))


def _are_whole(tensor: torch.Tensor) -> bool:
    return bool((tensor == tensor.round()).all())


def _meaning(tensor: torch.Tensor, sample: torch.Tensor) -> Fixed | None:
    """Values that are left alone whatever else is true of them."""
    low, high = (float(end) for end in sample.aminmax())
    few = tensor.numel() < FEWEST_OF_TWO and low != high and (low, high) != (0, 1)
    if not few and _throughout(lambda t: ((t == low) | (t == high)).all(), sample, tensor):
        return _two_values(tensor, low, high)
    if low >= 0 and high <= 1:
        for dim in _sums_to_one(tensor):
            return Fixed(f"probabilities along dimension {dim}", (dim - tensor.dim(),))
    if low >= 0 and _throughout(_are_whole, sample, tensor) and _permuted(tensor):
        return Fixed("a permutation along the last dimension", (-1,))
    if _orthogonal(tensor):
        return Fixed("an orthogonal matrix", (-2, -1))
    return None


def _two_values(tensor: torch.Tensor, low: float, high: float) -> Fixed:
    if low == high:
        return Fixed("one value everywhere")
    if (low, high) == (0, 1):
        for dim in range(tensor.dim()):
            if tensor.shape[dim] > 2 and bool((tensor.sum(dim, dtype=torch.float32) == 1).all()):
                return Fixed(f"one-hot along dimension {dim}", (dim - tensor.dim(),))
    return Fixed(f"a mask of {low:g} and {high:g}")


def _close(tensor: torch.Tensor) -> float:
    return _CLOSE.get(tensor.dtype, 1e-3)


def _sums_to_one(tensor: torch.Tensor) -> list[int]:
    """Dimensions along which all slices are distributions."""
    return [
        dim
        for dim, size in enumerate(tensor.shape)
        if size > 1
        and bool(((sampled(tensor, [dim]).sum(dim, dtype=torch.float64) - 1).abs() < _close(tensor)).all())
    ]


def _permuted(tensor: torch.Tensor) -> bool:
    size = tensor.shape[-1]
    if size < 3 or float(tensor.max()) != size - 1:
        return False
    places = torch.arange(size, device=tensor.device, dtype=tensor.dtype)
    return bool((sampled(tensor, [-1]).sort(-1).values == places).all())


def _equal_dims(tensor: torch.Tensor) -> list[int]:
    def along(dim: int) -> bool:
        return _throughout(lambda t: (t == t.narrow(dim, 0, 1)).all(), sampled(tensor, [dim]), tensor)

    return [dim for dim, size in enumerate(tensor.shape) if size > 1 and along(dim)]


def _unit_dims(tensor: torch.Tensor) -> list[int]:
    def along(dim: int) -> bool:
        norms = torch.linalg.vector_norm(sampled(tensor, [dim]).float(), dim=dim)
        return bool(((norms - 1).abs() < _close(tensor)).all())

    return [dim for dim in reversed(range(tensor.dim())) if tensor.shape[dim] > 1 and along(dim)]


def _sorted_dims(tensor: torch.Tensor, sample: torch.Tensor) -> list[Trait]:
    """The last dimension along which the tensor is sorted, if there is one."""
    for dim in reversed(range(tensor.dim())):
        size = sample.shape[dim]
        chance = sample.numel() / max(size, 1) * math.lgamma(size + 1) / math.log(2)
        if size < 3 or chance < SORTED_BITS or bool((sample == sample.narrow(dim, 0, 1)).all()):
            continue
        for descending, word in ((False, "ascending"), (True, "descending")):

            def holds(t: torch.Tensor, dim: int = dim, descending: bool = descending) -> bool:
                steps = t.narrow(dim, 1, t.shape[dim] - 1), t.narrow(dim, 0, t.shape[dim] - 1)
                return bool((steps[1] >= steps[0] if descending else steps[1] <= steps[0]).all())

            if _throughout(holds, sample, tensor):
                name = f"{word} along dimension {dim}"
                return [Ascending(name, (dim - tensor.dim(),), descending)]
    return []


def _of_matrices(tensor: torch.Tensor, sample: torch.Tensor) -> list[Trait]:
    """Zeros, and what matrices in the last two dimensions are."""
    found: list[Trait] = []
    if float((sample == 0).float().mean()) > ZERO_SHARE:
        found.append(_zeros(tensor))
    if tensor.dim() < 2 or tensor.shape[-1] != tensor.shape[-2] or tensor.shape[-1] < 2:
        return found
    some = sampled(tensor, [-2, -1])
    if not _throughout(lambda t: torch.equal(t, t.mT), some, tensor):
        return found
    found.append(Symmetric("symmetric", (-2, -1)))
    if _definite(some):
        found.append(Definite("positive definite", (-2, -1)))
    return found


def _zeros(tensor: torch.Tensor) -> Zeros:
    """The trait, with the name that fits the places."""
    if tensor.dim() >= 2 and min(tensor.shape[-2:]) > 2:
        some = sampled(tensor, [-2, -1])
        used = (some != 0).reshape(-1, *some.shape[-2:]).any(0)
        rows, columns = used.nonzero(as_tuple=True)
        if rows.numel():
            below, above = int((rows - columns).max()), int((columns - rows).max())
            least = min(used.shape)
            if max(below, above) <= 0:
                return Zeros("diagonal", (-2, -1))
            if below <= 0 or above <= 0:
                return Zeros("upper triangular" if below <= 0 else "lower triangular", (-2, -1))
            if below < least // 2 and above < least // 2:
                return Zeros(f"banded ({below} below, {above} above the diagonal)", (-2, -1))
    return Zeros("zeros in places")


def _definite(some: torch.Tensor) -> bool:
    """Whether symmetric matrices are positive definite."""
    if not bool((some.diagonal(dim1=-2, dim2=-1) > 0).all()):
        return False
    few = some.reshape(-1, *some.shape[-2:])[:8, :LARGEST_FACTORED, :LARGEST_FACTORED].double()
    return not bool(torch.linalg.cholesky_ex(few).info.any())


def _orthogonal(tensor: torch.Tensor) -> bool:
    size = tensor.shape[-1]
    if tensor.dim() < 2 or tensor.shape[-2] != size or not 2 <= size <= LARGEST_FACTORED:
        return False
    first = tensor.reshape(-1, size, size)[0].float()
    if bool(((torch.linalg.vector_norm(first, dim=-1) - 1).abs() > _close(tensor)).any()):
        return False
    unit = torch.eye(size, device=tensor.device)
    return bool(((first @ first.mT - unit).abs() < _close(tensor)).all())
