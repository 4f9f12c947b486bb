"""A wider tolerance for what the plainest honest kernel is off by, where coarse operands find none.

A candidate that the tolerance refuses by little is looked at again. The reference is run with plain
arithmetic (`correctness.plain_arithmetic`) at these very inputs, and PLAIN_MULTIPLE times
its error is allowed: since kernels add in other orders, and are none of them the plainest one exactly.

On drawn inputs that must not help TF32, float16 or worse. So there the reference is run once more for each of
its operators, with that operator's operands rounded to the 11 bits of both; then with all rounded so, with
its inputs, and with its outputs. Wherever the tolerance refuses such a result, room ends at half its error. A
candidate that rounds there is off by as much itself, and stays refused.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from kernelproof.types import ErrorStatistics
from kernelproof.verifier.referee.correctness import tolerance
from kernelproof.verifier.referee.correctness.comparing import Room, Yardstick, compare_with, measured
from kernelproof.verifier.referee.correctness.plain_arithmetic import Steps, eleven_bits
from kernelproof.verifier.referee.inputs.problem import LoadedProblem, ProblemError, mapped, outputs_of

INPUTS = (-1,)
"""Stands for no operator, but the problem's own inputs, as coarse."""


@dataclass(frozen=True)
class Inputs:
    """Arguments and seed for a run of the reference."""

    arguments: list[Any]
    seed: int
    """The seed of forward's own randomness."""
    device: torch.device


class Arithmetic:
    """A problem's outputs when its steps use other arithmetic."""

    def __init__(self, loaded: LoadedProblem, model: torch.nn.Module) -> None:
        self._loaded, self._model = loaded, model
        self._ends: dict[int, float] = {}
        """The largest allowed error on drawn inputs, by output: relative to the truth in norm."""

    def products(self, at: Inputs) -> int:
        """How many products the reference has that a tensor core could do."""
        return self._outputs(at, coarse=())[1].products

    def room(
        self, at: Inputs, sticks: Sequence[Yardstick], found: Sequence[ErrorStatistics], *, drawn: bool
    ) -> list[Yardstick] | None:
        """The yardsticks with room for what a candidate's outputs are found to be without; or None."""
        widest = tolerance.plain_ceiling(drawn=drawn)
        if not all(_within_reach(stick, each, widest) for stick, each in zip(sticks, found, strict=True)):
            return None
        outputs, seen = self._outputs(at, coarse=None)
        sized = any(each.wrong and stick.noise is None for stick, each in zip(sticks, found, strict=True))
        if outputs is None or (drawn and sized and not self._know_ends(at, sticks, seen.count)):
            return None
        widened = list(sticks)
        for number, (stick, each, plain) in enumerate(zip(sticks, found, outputs, strict=True)):
            if each.wrong and stick.noise is not None:
                widened[number] = _noisier(stick, plain, stick.noise)
            elif each.wrong:
                ceiling = min(widest, self._ends.get(number, widest)) if drawn else widest
                widened[number] = replace(stick, room=_room(stick, plain, ceiling))
        return widened

    def hopeless(self, at: Inputs, sticks: Sequence[Yardstick]) -> tuple[list[Yardstick], float] | None:
        """Yardsticks with all the room that plain arithmetic asks for, where that is more than any tolerance
        allows, and its error in norm; None where it is not so."""
        outputs, _ = self._outputs(at, coarse=None)
        if outputs is None:
            return None
        rooms = [_room(stick, plain, math.inf) for stick, plain in zip(sticks, outputs, strict=True)]
        sizes = zip(sticks, rooms, strict=True)
        worst = max((room.norm / stick.truth_norm for stick, room in sizes if room), default=0.0)
        if worst <= tolerance.PLAIN_MULTIPLE * tolerance.HALF_FLOOR:
            return None
        widened = [replace(stick, room=room) for stick, room in zip(sticks, rooms, strict=True)]
        return widened, worst / tolerance.PLAIN_MULTIPLE

    def _know_ends(self, at: Inputs, sticks: Sequence[Yardstick], steps: int) -> bool:
        """Finds out once what coarse operands are off by, step by step. False where they are too many."""
        if self._ends:
            return True
        if steps > tolerance.COARSE_STEPS:
            return False
        ends = dict.fromkeys(range(len(sticks)), math.inf)
        for coarse in [*((number,) for number in range(steps)), range(steps), INPUTS]:
            outputs, _ = self._outputs(at, coarse=coarse)
            if outputs is None:
                return False
            for number, (stick, there) in enumerate(zip(sticks, outputs, strict=True)):
                seen = compare_with(stick, there, trial="coarse", output=number)
                if seen.wrong:
                    ends[number] = min(ends[number], seen.relative_norm / tolerance.COARSE_DISTANCE)
        self._ends = ends
        return True

    def _outputs(
        self, at: Inputs, *, coarse: Collection[int] | None
    ) -> tuple[list[torch.Tensor] | None, Steps]:
        """The outputs, in the problem's own dtypes, and the steps (see there). None where memory is short, or
        where the problem cannot be run so."""
        steps = Steps(coarse)
        change = eleven_bits if coarse is INPUTS else torch.Tensor.clone
        try:
            twin = copy.deepcopy(self._model)
            with steps:
                value = self._loaded.run(twin, mapped(at.arguments, change), at.seed)
            return outputs_of(value, at.device), steps
        except (ProblemError, torch.OutOfMemoryError, RuntimeError):
            return None, steps


def _within_reach(stick: Yardstick, found: ErrorStatistics, ceiling: float) -> bool:
    """Whether an output is right, or wrong by so little that room up to the ceiling could help."""
    if found.wrong == 0:
        return True
    if stick.native.dtype != torch.float32 or not stick.has_truth or found.nan or not stick.all_finite:
        return False
    if stick.noise is not None:
        return True
    return found.relative_norm <= ceiling and found.max_rel <= tolerance.ELEMENT_MULTIPLE * ceiling


def _noisier(stick: Yardstick, plain: torch.Tensor, noise: torch.Tensor) -> Yardstick:
    """The yardstick of an output that is noise, with as much of it as plain arithmetic makes."""
    if plain.dtype != torch.float32 or plain.shape != stick.shape:
        return stick
    error = (plain.reshape(-1).double() - stick.exact).masked_fill_(noise == 0.0, 0.0).abs_()
    share = tolerance.PLAIN_MULTIPLE / tolerance.ELEMENT_MULTIPLE
    far = share * float(error.nan_to_num_(0.0, 0.0, 0.0).max())
    return replace(stick, noise=torch.where(noise > 0.0, noise.clamp(min=far), noise))


def _room(stick: Yardstick, plain: torch.Tensor, ceiling: float) -> Room | None:
    if not stick.native.dtype == plain.dtype == torch.float32 or plain.shape != stick.shape:
        return None
    found = measured(plain.reshape(-1), stick.exact, stick.shape)
    multiple = tolerance.PLAIN_MULTIPLE
    return Room(multiple * found.reference_norm, multiple * found.reference_max, ceiling)
