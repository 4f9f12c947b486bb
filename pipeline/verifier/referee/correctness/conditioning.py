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
from collections.abc import Sequence
from typing import Any

import torch

from kernelproof.verifier.contestant.encoding import tensors
from kernelproof.verifier.referee.correctness.comparing import Yardstick
from kernelproof.verifier.referee.correctness.tolerance import norm_floor
from kernelproof.verifier.referee.inputs.problem import LoadedProblem, mapped, outputs_of, truth

WELL_CONDITIONED = 16.0
"""Beyond this amplification the tolerance is wider. The float32 floor is 840 roundings wide: what is left
for the algorithm's own errors, 840 / 16, is that of a sum of thousands of terms in any order."""
DIRECTIONS = 4
"""Each there and back: a comparison that a step does not turn over in one sense turns over in the other."""
_ROUNDING = {torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}


class Condition:
    """The change of a problem's float64 outputs when every element of the inputs is moved by a step.

    A step goes up or down at random. It is the norm floor divided by WELL_CONDITIONED (52 roundings of
    float32), or one rounding of a narrower dtype.
    """

    def __init__(
        self,
        loaded: LoadedProblem,
        model: torch.nn.Module,
        arguments: list[Any],
        sticks: Sequence[Yardstick],
        seed: int,
    ) -> None:
        """`sticks`: what outputs at `arguments` are held against, one at least, on the arguments' device."""
        self._loaded, self._model, self._arguments = loaded, model, arguments
        self._sticks, self._seed, self._device = sticks, seed, sticks[0].exact.device
        self._relative = _relative_step(arguments)
        self.amplification = 0.0
        """Largest relative change of an output in norm so far, over the relative change of the inputs."""
        self.moved: list[torch.Tensor | None] = [None] * len(sticks)
        """For every element of every floating output, the largest change so far."""

    def look(self, direction: int) -> bool:
        """Moves the inputs along a direction, and against it. False where there is no float64 form.

        Raises torch.OutOfMemoryError.
        """
        if self._relative == 0.0:
            return False
        return all(self._step(self._seed + direction, sense) for sense in (1, -1))

    def _step(self, seed: int, sense: int) -> bool:
        generator = torch.Generator(self._device).manual_seed(seed)

        def nudged(tensor: torch.Tensor) -> torch.Tensor:
            if not tensor.is_floating_point():
                return tensor
            up = torch.randint(0, 2, tensor.shape, generator=generator, dtype=torch.int8, device=self._device)
            step = sense * _step_of(tensor.dtype)
            return tensor.double() * up.double().mul_(2 * step).add_(1 - step)  # by 1 + step or 1 - step

        arguments = [mapped(argument, nudged) for argument in self._arguments]
        value = truth(self._loaded, self._model, arguments, self._seed)
        if value is None:
            return False
        outputs = outputs_of(value, self._device)
        for output, (stick, after) in enumerate(zip(self._sticks, outputs, strict=True)):
            if after.is_complex():
                after = torch.view_as_real(after)
            if stick.exact.is_floating_point():
                far = (after.reshape(-1).double() - stick.exact).nan_to_num_(0.0, 0.0, 0.0).abs_()
                change = float(far.norm()) / stick.truth_norm
                self.amplification = max(self.amplification, change / self._relative)
                most = self.moved[output]
                self.moved[output] = far if most is None else torch.maximum(most, far, out=most)
        return True


def _relative_step(arguments: list[Any]) -> float:
    """How far all floating inputs are moved together, relative to their norm; 0 where there are none."""
    floating = [tensor for tensor in tensors(arguments) if tensor.is_floating_point()]
    norms = [float(torch.linalg.vector_norm(tensor.double())) for tensor in floating]
    steps = [norm * _step_of(tensor.dtype) for norm, tensor in zip(norms, floating, strict=True)]
    return math.hypot(*steps) / math.hypot(*norms) if any(norms) else 0.0


def _step_of(dtype: torch.dtype) -> float:
    """How far an element is moved, relative to its size."""
    return max(_ROUNDING.get(dtype, 0.0), norm_floor(dtype) / WELL_CONDITIONED)
