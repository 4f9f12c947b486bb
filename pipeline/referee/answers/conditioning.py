"""How strongly a problem amplifies rounding at given inputs.

Inputs that `get_inputs` would never draw may be ill-conditioned: layer norm of equal values divides what
rounding left of zero by a small number. There two honest algorithms differ by more than the tolerance, and
the native reference may have been lucky. So before a candidate is refused on an input variant, the problem's
own condition there is looked at: the float64 result at inputs that differ by one rounding.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from pipeline.referee.answers.problem import LoadedProblem, mapped, outputs_of, truth

WELL_CONDITIONED = 16.0
"""Beyond this amplification a variant decides nothing. The float32 floor is 840 roundings wide: what is left
for the algorithm's own errors, 840 / 16, is that of a sum of thousands of terms in any order."""
_ROUNDING = {torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8, torch.float64: 2.0**-53}


def amplification(
    loaded: LoadedProblem,
    model: torch.nn.Module,
    arguments: list[Any],
    exact: list[torch.Tensor],
    seed: int,
) -> float | None:
    """Largest relative change of an output in norm, over the relative change of the inputs.

    `exact`: the float64 outputs at `arguments`. None where the problem has no float64 form.
    """
    generator = torch.Generator().manual_seed(seed)
    change_squared = input_squared = 0.0

    def nudged(tensor: torch.Tensor) -> torch.Tensor:
        nonlocal change_squared, input_squared
        if not tensor.is_floating_point():
            return tensor
        noise = torch.rand(tensor.shape, generator=generator, dtype=torch.float32).to(tensor.device)
        wide = tensor.double()
        step = wide * (2 * noise - 1) * _ROUNDING.get(tensor.dtype, 2.0**-24)
        change_squared += float(step.square().sum())
        input_squared += float(wide.square().sum())
        return wide + step

    moved = truth(loaded, model, [mapped(argument, nudged) for argument in arguments], seed)
    if moved is None or input_squared == 0.0 or change_squared == 0.0:
        return None
    relative = math.sqrt(change_squared / input_squared)
    return (
        max((_change(a, b) for a, b in zip(exact, _wide(moved, exact), strict=True)), default=0.0) / relative
    )


def _wide(value: Any, like: list[torch.Tensor]) -> list[torch.Tensor]:
    device = like[0].device if like else torch.device("cpu")
    return [torch.view_as_real(t) if t.is_complex() else t for t in outputs_of(value, device)]


def _change(before: torch.Tensor, after: torch.Tensor) -> float:
    """Relative change in norm; 0 for what is not floating."""
    if not before.is_floating_point() or before.numel() == 0:
        return 0.0
    step = float((after.reshape(-1).double() - before.reshape(-1).double()).norm())
    return step / max(float(before.double().norm()), 1e-300)
