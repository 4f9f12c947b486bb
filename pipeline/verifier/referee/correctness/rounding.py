"""What rounding does to a problem's outputs: where they are noise, and how strongly it is amplified.

Outputs that are rounding noise: large terms cancel, and the result is what rounding left of them.

The mean of a group norm is an example: zero, but for 1e-17 in float64 and 1e-8 in float32, and another 1e-8
from every kernel. Such a native result is far from its float64 twin. So is that of a problem whose twin
computes something else: with a state, with other random numbers, with a branch on the dtype. To tell them
apart the native reference runs again with inputs and weights that are moved by one rounding. Noise comes out
anew each time, and differs by as much as native result and twin do. A state, a mask, a branch stays.

How far each element moved is then what it may be off by (see `correctness.tolerance`).

`Condition` says how strongly a problem amplifies rounding at given inputs. Inputs that `get_inputs` would
never draw may be ill-conditioned: layer norm of equal values divides what rounding left of zero by a small
number; attention whose scores are millions picks another key where two are equal but for rounding. There two
honest algorithms differ by more than the tolerance, and the native reference may have been lucky. So before
a candidate is refused on an input variant, the problem's own condition there is looked at: the float64
results at inputs that differ by a step. An honest result is the exact one of inputs that are nearly these.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from kernelproof.verifier.contestant.encoding import tensors
from kernelproof.verifier.contestant.loop import outputs_of
from kernelproof.verifier.referee.correctness.comparing import (
    CHUNK,
    Yardstick,
    chunks,
    compare_with,
    measured,
    yardstick,
)
from kernelproof.verifier.referee.correctness.tolerance import (
    ELEMENT_MULTIPLE,
    NOISE_RUNS,
    REFERENCE_MULTIPLE,
    UNBELIEVABLE,
    VANISHING,
    norm_floor,
)
from kernelproof.verifier.referee.inputs.problem import LoadedProblem, ProblemError, mapped, truth

Outputs = Sequence[torch.Tensor]


def yardsticks(
    loaded: LoadedProblem,
    model: torch.nn.Module,
    arguments: list[Any],
    seed: int,
    native: Outputs,
    device: torch.device,
) -> list[Yardstick]:
    """What each of the `native` outputs for these arguments is held against.

    Integers are equal or wrong and need no float64 twin. Raises torch.OutOfMemoryError.
    """
    exact: list[torch.Tensor | None] = [None] * len(native)
    if any(t.is_floating_point() or t.is_complex() for t in native):
        value = truth(loaded, model, arguments, seed)
        if value is not None:
            exact = [*outputs_of(value, device)]
    sticks = [yardstick(mine, sure) for mine, sure in zip(native, exact, strict=True)]
    suspects = [number for number, stick in enumerate(sticks) if _suspect(stick, exact[number])]
    moves = _moves(loaded, model, arguments, seed, native, device, suspects) if suspects else {}
    for number, far in moves.items():
        sticks[number] = _as_noise(sticks[number], exact[number], far) or sticks[number]
    return sticks


def loosened(stick: Yardstick, far: torch.Tensor) -> Yardstick:
    """`stick`, whose elements may be off as `far` says where that is beyond the tolerance.

    `far`: flat, float64.
    """
    noise = far.clone()
    for where in chunks(noise):
        sure, part = stick.exact[where].double(), noise[where]
        bound = sure.abs().clamp_(min=stick.rms) * (ELEMENT_MULTIPLE * norm_floor(stick.native.dtype))
        part.masked_fill_(~(part > bound), 0.0)
    return replace(stick, noise=noise)


def _suspect(stick: Yardstick, exact: torch.Tensor | None) -> bool:
    """Whether it may be noise: its twin was not believed, or says nothing of rounding, since it is no wider
    than the output or zero throughout."""
    if exact is None or not stick.native.is_floating_point():
        return False
    return not stick.has_truth or stick.native.dtype == torch.float64 or stick.rms <= VANISHING


def _flat(tensor: torch.Tensor) -> torch.Tensor:
    tensor = torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor
    return tensor.reshape(-1)


def _as_noise(stick: Yardstick, exact: torch.Tensor | None, moved: torch.Tensor) -> Yardstick | None:
    """The yardstick of an output that is noise; None if it is none: if `moved` is small beside the output, or
    does not explain how far the native result is from the truth."""
    if exact is None:
        return None
    found = measured(stick.native, _flat(exact), stick.shape)
    # Beside noise of 1e-8 a truth of 1e-17 is no size to be relative to.
    size = max(found.truth_norm, found.reference_norm)
    found = replace(found, truth_norm=size, rms=found.rms * size / found.truth_norm)
    far = moved.clamp(min=middle(moved))
    if float(torch.linalg.vector_norm(far)) * REFERENCE_MULTIPLE < found.truth_norm:
        return None
    noise = loosened(found, far)
    return None if compare_with(noise, stick.native, trial="noise", output=0).wrong else noise


def middle(moved: torch.Tensor) -> float:
    """How far half of the elements moved. Rounding leaves one element or another as it was by chance."""
    few = moved[:: max(1, moved.numel() // CHUNK)]
    return float(few.median()) if few.numel() else 0.0


def _moves(
    loaded: LoadedProblem,
    model: torch.nn.Module,
    arguments: list[Any],
    seed: int,
    native: Outputs,
    device: torch.device,
    wanted: Sequence[int],
) -> dict[int, torch.Tensor]:
    """How far the `wanted` native outputs move with their inputs: the largest of several moves, by element.

    Empty where nothing moves, or where that says nothing: the reference does not give the same twice, or
    cannot be run so.
    """

    def outputs(change: Any) -> list[torch.Tensor]:
        twin = copy.deepcopy(model)  # each time, so that a model with a state is in the same one
        for parameter in twin.parameters():
            parameter.data = change(parameter.data)
        return outputs_of(loaded.run(twin, mapped(arguments, change), seed), device)

    try:
        again = outputs(torch.clone)
        sticks = {number: yardstick(native[number], None) for number in wanted}
        far = {number: torch.zeros_like(s.native, dtype=torch.float64) for number, s in sticks.items()}
        if any(compare_with(s, again[n], trial="again", output=n).wrong for n, s in sticks.items()):
            return {}
        for run in range(NOISE_RUNS):
            after = outputs(_nudge(seed + run, (run + 0.5) / NOISE_RUNS, device))
            for number, stick in sticks.items():
                step = (_flat(after[number]).double() - stick.native.double()).abs_()
                torch.maximum(far[number], step.nan_to_num_(0.0, 0.0, 0.0), out=far[number])
            if run and all(float(far[n].norm()) * UNBELIEVABLE < s.truth_norm for n, s in sticks.items()):
                return {}
    except (ProblemError, torch.OutOfMemoryError, RuntimeError):
        return {}
    return far


def _nudge(seed: int, share: float, device: torch.device) -> Any:
    """Moves every element of a floating or complex tensor by one rounding, a `share` of them up, others down.

    Half of them each way would leave a mean as it is, and with it every rounding of what is computed from it.
    """
    generator = torch.Generator(device).manual_seed(seed)

    def nudged(tensor: torch.Tensor) -> torch.Tensor:
        if not (tensor.is_floating_point() or tensor.is_complex()):
            return tensor.clone()
        step = torch.finfo(tensor.dtype).eps
        up = torch.rand(tensor.shape, generator=generator, device=device) < share
        return tensor * (up.to(tensor.dtype) * (2 * step) + (1 - step))

    return nudged


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
