"""Input variants: inputs of the same shapes and dtypes that `get_inputs` would not draw.

A candidate that is right only on the declared distribution (identity for relu on non-negative inputs, a
constant where the mean is near zero) is wrong on these. A variant changes floating tensors only, and
leaves alone those whose values carry a meaning: probabilities, masks, symmetric (positive-definite)
matrices, and constants. The referee uses a variant only where the native reference stays finite on it
and agrees with its own float64 result, so an unmet precondition never costs an honest candidate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from pipeline.referee.answers.problem import mapped, seed_torch, tensors

LARGE, LARGE_HALF = 64.0, 16.0
"""Factors of `large`: exp of 64 times a normal value overflows float32; float16 ends at 65504."""
BELOW = 16.0
"""How far below zero `negative` goes at least: row maxima, running maxima and one-sided bounds see it."""
DEEP = 2.0**10
"""How far `deep` goes. Further down products of inputs would pass what honest kernels put in for minus
infinity (-1e9 behind a mask)."""
TINY = 2.0**-10
TIE_STEP = 0.5
KEPT_SHARE = 0.1
"""Share of elements that `sparse` does not set to zero."""
ACCURATE = 1e-3
"""A variant is used when the native reference's relative error in norm is below this."""


@dataclass(frozen=True)
class Variant:
    """A named change of drawn inputs."""

    name: str
    purpose: str
    change: Callable[[torch.Tensor], torch.Tensor]

    def apply(self, arguments: list[Any], seed: int) -> list[Any] | None:
        """The changed arguments, or None when there is no tensor that may be changed."""
        seed_torch(seed)
        touched = 0

        def change(tensor: torch.Tensor) -> torch.Tensor:
            nonlocal touched
            if not free(tensor):
                return tensor
            touched += 1
            return self.change(tensor)

        changed = [mapped(argument, change) for argument in arguments]
        return changed if touched else None


def _signed(tensor: torch.Tensor) -> torch.Tensor:
    spread = tensor.double().std() if tensor.numel() < 1 << 24 else tensor.flatten()[: 1 << 24].double().std()
    return torch.randn_like(tensor) * spread.clamp(min=0.5).to(tensor.dtype)


def _large(tensor: torch.Tensor) -> torch.Tensor:
    return tensor * (LARGE_HALF if tensor.dtype == torch.float16 else LARGE)


def _constant(tensor: torch.Tensor) -> torch.Tensor:
    value = float(torch.randn(()))  # one secret value
    return torch.full_like(tensor, value + (0.5 if value > 0 else -0.5))


VARIANTS: tuple[Variant, ...] = (
    Variant("signed", "both signs, whatever get_inputs draws", _signed),
    Variant("large", f"{LARGE:g} times as large (float16: {LARGE_HALF:g})", _large),
    Variant("negative", f"all far below zero: -{BELOW:g} and less", lambda t: -BELOW * (1 + t.abs())),
    Variant("deep", f"all further below zero: -{DEEP:g} and less", lambda t: -DEEP * (1 + t.abs())),
    Variant("tiny", "1024 times smaller", lambda tensor: tensor * TINY),
    Variant(
        "ties",
        f"normal, rounded to multiples of {TIE_STEP:g}, so that many are equal",
        lambda tensor: (torch.randn_like(tensor) / TIE_STEP).round_() * TIE_STEP,
    ),
    Variant("constant", "one value everywhere", _constant),
    Variant(
        "sparse",
        "nine of ten elements are zero",
        lambda tensor: tensor * (torch.rand_like(tensor) < KEPT_SHARE),
    ),
)


def other_batches(arguments: list[Any]) -> Iterator[tuple[str, list[list[Any]]]]:
    """Other batch sizes, each with the ways to get there: in all tensors that share the first one's
    leading size, or in the first tensor alone."""
    leaves = tensors(arguments)
    if not leaves or leaves[0].dim() == 0:
        return
    size = leaves[0].shape[0]
    for other in sorted({1, size // 2 + 1} - {size}) if size > 1 else [2]:
        ways = [_resized(arguments, size, other, alone=False)]
        if sum(leaf.dim() > 0 and leaf.shape[0] == size for leaf in leaves) > 1:
            ways.append(_resized(arguments, size, other, alone=True))
        yield f"batch {other}", ways


def _resized(arguments: list[Any], size: int, other: int, *, alone: bool) -> list[Any]:
    done = False

    def change(tensor: torch.Tensor) -> torch.Tensor:
        nonlocal done
        if tensor.dim() == 0 or tensor.shape[0] != size or (alone and done):
            return tensor
        done = True
        return tensor[:other].clone() if other <= size else torch.cat([tensor, tensor[: other - size]])

    return [mapped(argument, change) for argument in arguments]


def strided(arguments: list[Any]) -> list[Any] | None:
    """The same values in memory whose last two dimensions are swapped; None where no tensor has two."""
    if not any(t.dim() >= 2 and t.numel() > 1 for t in tensors(arguments)):
        return None

    def change(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.dim() < 2:
            return tensor
        return tensor.transpose(-1, -2).contiguous().transpose(-1, -2)

    return [mapped(argument, change) for argument in arguments]


def free(tensor: torch.Tensor) -> bool:
    """Whether a tensor's values may be replaced: floating, and neither mask, probabilities nor symmetric."""
    if not tensor.is_floating_point() or tensor.numel() < 2:
        return False
    sample = tensor.flatten()[: 1 << 20]
    low, high = float(sample.min()), float(sample.max())
    if low == high or bool(((sample == 0) | (sample == 1)).all()):
        return False
    if low >= 0 and high <= 1 and _sums_to_one(tensor):
        return False
    return not _symmetric(tensor)


def _sums_to_one(tensor: torch.Tensor) -> bool:
    """Whether slices along some dimension sum to one: a distribution."""
    return any(
        bool(
            ((tensor.narrow(0, 0, 1) if dim else tensor).sum(dim, dtype=torch.float64) - 1).abs().max() < 1e-2
        )
        for dim in range(tensor.dim())
        if tensor.shape[dim] > 1
    )


def _symmetric(tensor: torch.Tensor) -> bool:
    if tensor.dim() < 2 or tensor.shape[-1] != tensor.shape[-2] or tensor.shape[-1] < 2:
        return False
    first = tensor.reshape(-1, tensor.shape[-2], tensor.shape[-1])[0]
    return bool(torch.equal(first, first.T))


def finite(value: Any) -> bool:
    """Whether every floating tensor in `value` is finite throughout."""
    return all(bool(torch.isfinite(t).all()) for t in tensors(value) if t.is_floating_point())


def describe(arguments: list[Any]) -> tuple[dict[str, Any], ...]:
    """Shape, dtype and strides of each input tensor, for the record."""
    return tuple(
        {"shape": list(t.shape), "dtype": str(t.dtype).removeprefix("torch."), "stride": list(t.stride())}
        for t in tensors(arguments)
    )
