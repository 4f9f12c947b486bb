"""Traits: what is true of an input in every draw, and how a variant makes it true again.

`kernelproof.verifier.referee.inputs.structure` finds them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field

import torch


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
