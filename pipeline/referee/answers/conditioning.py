"""How strongly a problem amplifies rounding at given inputs.

Inputs that `get_inputs` would never draw may be ill-conditioned: layer norm of equal values divides what
rounding left of zero by a small number; attention whose scores are millions picks another key where two are
equal but for rounding. There two honest algorithms differ by more than the tolerance, and the native
reference may have been lucky. So before a candidate is refused on an input variant, the problem's own
condition there is looked at: the float64 results at inputs that differ by a step. An honest result is the
exact one of inputs that are nearly these.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from pipeline.referee.answers.problem import LoadedProblem, mapped, outputs_of, truth
from pipeline.referee.answers.tolerance import norm_floor

WELL_CONDITIONED = 16.0
"""Beyond this amplification the tolerance is wider. The float32 floor is 840 roundings wide: what is left
for the algorithm's own errors, 840 / 16, is that of a sum of thousands of terms in any order."""
DIRECTIONS = 4
"""Each there and back: what a step does not turn over in one sense it turns over in the other."""
_ROUNDING = {torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}


class Condition:
    """What becomes of a problem's float64 outputs when every element of the inputs is moved by a step.

    A step is what WELL_CONDITIONED times over gives the norm floor, 52 roundings of float32, or one rounding
    of a narrower dtype, up or down at random.
    """

    def __init__(
        self,
        loaded: LoadedProblem,
        model: torch.nn.Module,
        arguments: list[Any],
        exact: list[torch.Tensor],
        seed: int,
    ) -> None:
        """`exact`: the float64 outputs at `arguments`, flat."""
        self._loaded, self._model, self._arguments = loaded, model, arguments
        self._exact, self._seed = exact, seed
        self.amplification = 0.0
        """Largest relative change of an output in norm so far, over the relative change of the inputs."""
        self.moved: list[torch.Tensor | None] = [None] * len(exact)
        """For every element of every floating output, the largest change so far."""

    def look(self, direction: int) -> bool:
        """Moves the inputs along a direction, and against it. False where there is no float64 form.

        Raises torch.OutOfMemoryError.
        """
        return all(self._step(self._seed + direction, sense) for sense in (1.0, -1.0))

    def _step(self, seed: int, sense: float) -> bool:
        generator: dict[torch.device, torch.Generator] = {}
        change_squared = input_squared = 0.0

        def nudged(tensor: torch.Tensor) -> torch.Tensor:
            nonlocal change_squared, input_squared
            if not tensor.is_floating_point():
                return tensor
            place = tensor.device
            if place not in generator:
                generator[place] = torch.Generator(place).manual_seed(seed)
            signs = torch.randint(
                0, 2, tensor.shape, generator=generator[place], dtype=torch.int8, device=place
            )
            wide, step = tensor.double(), _step_of(tensor.dtype)
            squared = float(torch.linalg.vector_norm(wide)) ** 2
            input_squared += squared
            change_squared += squared * step**2
            factors = signs.double().mul_(2 * step).add_(1 - step)  # 1 + step or 1 - step
            return wide * (factors if sense > 0 else factors.neg_().add_(2))

        arguments = [mapped(argument, nudged) for argument in self._arguments]
        value = truth(self._loaded, self._model, arguments, self._seed)
        if value is None or input_squared == 0.0 or change_squared == 0.0:
            return False
        relative = math.sqrt(change_squared / input_squared)
        for output, (before, after) in enumerate(zip(self._exact, _wide(value, self._exact), strict=True)):
            if before.is_floating_point() and before.numel():
                far = (after.reshape(-1).double() - before).nan_to_num_(0.0, 0.0, 0.0).abs_()
                size = float(torch.linalg.vector_norm(before, dtype=torch.float64))
                change = float(far.norm()) / max(size, 1e-300)
                self.amplification = max(self.amplification, change / relative)
                most = self.moved[output]
                self.moved[output] = far if most is None else torch.maximum(most, far, out=most)
        return True


def _step_of(dtype: torch.dtype) -> float:
    """How far an element is moved, relative to its size."""
    return max(_ROUNDING.get(dtype, 0.0), norm_floor(dtype) / WELL_CONDITIONED)


def _wide(value: Any, like: list[torch.Tensor]) -> list[torch.Tensor]:
    device = like[0].device if like else torch.device("cpu")
    return [torch.view_as_real(t) if t.is_complex() else t for t in outputs_of(value, device)]
