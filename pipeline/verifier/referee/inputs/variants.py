"""Input variants: inputs of the same shapes and dtypes that `get_inputs` would not draw.

A candidate that is right only on the declared distribution (identity for relu on non-negative inputs, a
constant where the mean is near zero) is wrong on these. A variant changes floating tensors only, and keeps
what is structure of the drawn ones (`inputs.structure`). The referee uses a variant only
where the native reference stays finite on it and agrees with its own float64 result, so an unmet precondition
never costs an honest candidate.

Most variants change all elements alike, so a candidate that looks at a few of them knows. `spikes` and `mixed
rows` do not: nearly all is as it was drawn, and the changed places are secret. A candidate has to read
everything to notice them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch

from kernelproof.verifier.contestant.encoding import tensors
from kernelproof.verifier.contestant.random_draws import seed_torch
from kernelproof.verifier.referee.inputs.problem import mapped
from kernelproof.verifier.referee.inputs.structure import Fixed, Forms, Trait, Twin, sampled

Change = Callable[[torch.Tensor], torch.Tensor]

LARGE, LARGE_HALF = 64.0, 16.0
"""Factors of `large`: exp of 64 times a normal value overflows float32; float16 ends at 65504."""
NEAR_ONE = 2.0**-8
"""How far from one, in standard deviations, values are where `large` ones have no result: a running product
neither ends nor vanishes then."""
BELOW = 16.0
"""How far below zero `negative` goes at least: row maxima, running maxima and one-sided bounds see it."""
DEEP = 2.0**10
"""How far `deep` goes. Further down products of inputs would pass what honest kernels put in for minus
infinity (-1e9 behind a mask)."""
TINY = 2.0**-10
TIE_STEP = 0.5
KEPT_SHARE = 0.1
"""Share of elements that `sparse` does not set to zero."""
SPIKE_SHARE, FEWEST_SPIKES = 1e-4, 4
"""There are as many spikes as a secret number between these says, hundreds as likely as tens. A candidate
that looks at one element in a hundred misses all of four spikes in 96 calls of 100. With many spikes it is
wrong in many places."""
SPIKES, MILD_SPIKES = (128.0, 512.0), (4.0, 16.0)
"""Sizes of spikes, in units of the drawn values' root mean square, or of one if that is more. exp of 128 is
infinite in float32. Where the reference itself cannot do with such (an exp of its own), mild ones; where it
cannot do with the other sign (a root, a logarithm), those of the sign that all drawn values have."""
ROWS_SHARE, FEWEST_ROWS = 0.25, 4
"""`mixed rows` changes a secret number of rows between these."""
ACCURATE = 1e-3
"""A variant is used when the native reference's relative error in norm is below this."""


@dataclass(frozen=True)
class Variant:
    """A named change of drawn inputs."""

    name: str
    purpose: str
    change: Change
    milder: tuple[Change, ...] = ()
    """What to do instead where the reference cannot do with the change, one after the other."""
    forms: Forms | None = None
    """What structure to keep; None: that which a draw itself shows."""

    def apply(self, arguments: list[Any], seed: int) -> list[Any] | None:
        """The changed arguments, or None when there is no tensor that may be changed."""
        forms = self.forms or Forms(arguments)
        seed_torch(seed)
        leaves = tensors(arguments)
        changed: list[torch.Tensor] = []
        for index, leaf in enumerate(leaves):
            changed.append(self._changed(leaf, forms.of(index), leaves, changed))
        if all(now is then for now, then in zip(changed, leaves, strict=True)):
            return None
        ready = iter(changed)
        return [mapped(argument, lambda _: next(ready)) for argument in arguments]

    def keeping(self, forms: Forms) -> Variant:
        """The same, for inputs whose structure is known from several draws."""
        return replace(self, forms=forms)

    @property
    def ways(self) -> list[Variant]:
        """Itself, and then its milder forms, as variants without any."""
        return [replace(self, change=change, milder=()) for change in (self.change, *self.milder)]

    def _changed(
        self,
        tensor: torch.Tensor,
        traits: Sequence[Trait],
        leaves: Sequence[torch.Tensor],
        before: Sequence[torch.Tensor],
    ) -> torch.Tensor:
        """One tensor changed, or itself. `before`: what became of those before it."""
        if not tensor.is_floating_point() or any(isinstance(trait, Fixed) for trait in traits):
            return tensor
        if traits and isinstance(traits[0], Twin):
            of = traits[0].of
            return tensor if before[of] is leaves[of] else torch.empty_like(tensor).copy_(before[of])
        changed = self.change(tensor)
        if not traits:
            return changed  # the tensor itself where there is nothing to do
        for trait in traits:
            changed = trait.restored(changed, tensor)
        return tensor if torch.equal(changed, tensor) else torch.empty_like(tensor).copy_(changed)


def _signed(tensor: torch.Tensor) -> torch.Tensor:
    spread = _finite(tensor).std(correction=0)
    return torch.randn_like(tensor) * spread.clamp(min=0.5).to(tensor.dtype)


def _large(tensor: torch.Tensor) -> torch.Tensor:
    return tensor * (LARGE_HALF if tensor.dtype == torch.float16 else LARGE)


def _near_one(tensor: torch.Tensor) -> torch.Tensor:
    return 1 + NEAR_ONE * torch.randn_like(tensor)


def _constant(tensor: torch.Tensor) -> torch.Tensor:
    value = float(torch.randn(()))  # one secret value
    return torch.full_like(tensor, value + (0.5 if value > 0 else -0.5))


def _sparse(tensor: torch.Tensor) -> torch.Tensor:
    return tensor * (torch.rand_like(tensor) < KEPT_SHARE)


def _with_zero_rows(tensor: torch.Tensor) -> torch.Tensor:
    """Sparse, and nothing but zeros at secret places of the first dimension, as padding is."""
    changed = _sparse(tensor)
    depth = next((d for d in range(1, tensor.dim()) if math.prod(tensor.shape[:d]) > 1), 1)
    rows = changed.reshape(math.prod(tensor.shape[:depth]), -1)
    if len(rows) > 1:  # a single one would be the whole input
        count = _secret(1, int(len(rows) * ROWS_SHARE))
        rows[torch.randint(len(rows), (count,), device=tensor.device)] = 0
    return rows.reshape(tensor.shape)


def _spikes(tensor: torch.Tensor, sizes: tuple[float, float], *, one_sided: bool = False) -> torch.Tensor:
    """Every second one is negative; or all have the sign that all drawn values have, if they have one."""
    few = min(FEWEST_SPIKES, max(1, tensor.numel() // 2))
    count = _secret(few, int(tensor.numel() * SPIKE_SHARE))
    places = torch.randint(tensor.numel(), (count,), device=tensor.device)
    least, most = sizes
    values = least + (most - least) * torch.rand(count, device=tensor.device)
    values *= _finite(tensor).square().mean().sqrt().clamp(min=1.0).float()
    low, high = (float(end) for end in tensor.aminmax()) if one_sided else (-1.0, 1.0)
    if high <= 0:
        values.neg_()
    elif low < 0:
        values[1::2].neg_()
    changed = tensor.clone()
    changed[torch.unravel_index(places, tensor.shape)] = values.to(tensor.dtype)
    return changed


def _mixed_rows(tensor: torch.Tensor, changes: Sequence[Change]) -> torch.Tensor:
    """The meaning of a row is secret too: all that some of the leading dimensions' indices name."""
    if not changes:
        return tensor
    depths = [d for d in range(1, tensor.dim()) if math.prod(tensor.shape[:d]) > 1] or [tensor.dim()]
    depth = depths[int(torch.randint(len(depths), ()))]
    leading = tensor.shape[:depth]
    rows = math.prod(leading)
    count = _secret(min(FEWEST_ROWS, (rows + 1) // 2), int(rows * ROWS_SHARE))
    places = torch.unique(torch.randint(rows, (count,), device=tensor.device))
    places = places[torch.randperm(len(places)).to(tensor.device)]
    order = torch.randperm(len(changes)).tolist()
    changed = tensor.clone()
    for number, part in zip(order, places.tensor_split(len(changes)), strict=True):
        if len(part):
            index = torch.unravel_index(part, leading)
            changed[index] = changes[number](tensor[index])
    return changed


def _finite(tensor: torch.Tensor) -> torch.Tensor:
    """A sample of the values, with zeros for infinities."""
    return sampled(tensor).double().nan_to_num(0.0, 0.0, 0.0)


def _secret(fewest: int, most: int) -> int:
    """A random number between both, as likely to be small as large by its order of magnitude."""
    most = max(fewest, most)
    share = float(torch.rand(()))
    return min(most, round(fewest * math.pow(most / fewest, share)))


VARIANTS: tuple[Variant, ...] = (
    Variant("signed", "both signs, whatever get_inputs draws", _signed),
    Variant("large", f"{LARGE:g} times as large (float16: {LARGE_HALF:g})", _large, (_near_one,)),
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
        "nine of ten elements are zero, and whole rows",
        _with_zero_rows,
        (_sparse,),
    ),
    Variant(
        "spikes",
        f"as drawn, but for few elements at secret places: beyond {SPIKES[0]:g} and -{SPIKES[0]:g}",
        partial(_spikes, sizes=SPIKES),
        (
            partial(_spikes, sizes=MILD_SPIKES),
            partial(_spikes, sizes=SPIKES, one_sided=True),
            partial(_spikes, sizes=MILD_SPIKES, one_sided=True),
        ),
    ),
)


def mixed_rows(parts: Sequence[Variant]) -> Variant:
    """As drawn, but for rows at secret places, each with the values of one of these variants."""
    return Variant(
        "mixed rows",
        "as drawn, but for rows at secret places, each with another variant's values",
        partial(_mixed_rows, changes=[part.change for part in parts]),
    )


def finite(value: Any) -> bool:
    """Whether every floating tensor in `value` is finite throughout."""
    return all(bool(torch.isfinite(t).all()) for t in tensors(value) if t.is_floating_point())


def describe(arguments: list[Any]) -> tuple[dict[str, Any], ...]:
    """Shape, dtype and strides of each input tensor, for the record."""
    return tuple(
        {"shape": list(t.shape), "dtype": str(t.dtype).removeprefix("torch."), "stride": list(t.stride())}
        for t in tensors(arguments)
    )
