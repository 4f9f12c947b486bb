"""What the reference makes of some arguments, and whether another answer to them is right.

`ReferenceOutputs` compares the reference's outputs with others: by values, or by the elements that indices
point at.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

import torch

from kernelproof.types import ErrorStatistics
from kernelproof.verifier.contestant import loop
from kernelproof.verifier.contestant.loop import outputs_of
from kernelproof.verifier.referee.correctness import comparing, indices, precision, tolerance
from kernelproof.verifier.referee.correctness.indices import IndexLeaf, IndexTrace
from kernelproof.verifier.referee.correctness.plain_arithmetic import Arithmetic, Inputs
from kernelproof.verifier.referee.correctness.rounding import (
    DIRECTIONS,
    WELL_CONDITIONED,
    Condition,
    loosened,
    middle,
    yardsticks,
)
from kernelproof.verifier.referee.inputs.problem import LoadedProblem

INDEX_DTYPES = ("int64", "int32")


@dataclass(frozen=True)
class ReferenceOutputs:
    """The reference's outputs for one set of arguments."""

    outputs: list[torch.Tensor]
    indices: dict[int, IndexLeaf] = field(default_factory=dict)
    """The outputs that are indices, by place."""

    @property
    def open(self) -> bool:
        """Whether another answer than these very integers may be right."""
        return any(not leaf.exact for leaf in self.indices.values())


def may_hold_indices(form: loop.OutputMeta) -> bool:
    """Whether a result of this form may hold indices."""
    return any(leaf.get("dtype") in INDEX_DTYPES for leaf in form.leaves)


def run_reference(
    loaded: LoadedProblem,
    model: torch.nn.Module,
    arguments: list[Any],
    seed: int,
    device: torch.device,
    *,
    indexed: bool,
) -> ReferenceOutputs:
    """Runs the reference; with `indexed`, it also finds out which outputs are indices of what."""
    if not indexed:
        return ReferenceOutputs(outputs_of(loaded.run(model, arguments, seed), device))
    with IndexTrace(arguments) as trace:
        value = loaded.run(model, arguments, seed)
    outputs = outputs_of(value, device)
    return ReferenceOutputs(outputs, trace.leaves(outputs))


def compare(
    known: ReferenceOutputs,
    sticks: Sequence[comparing.Yardstick],
    mine: Sequence[torch.Tensor],
    floors: Sequence[float],
    *,
    trial: str,
    numerics: str,
    moved: Sequence[torch.Tensor | None] | None = None,
) -> list[ErrorStatistics]:
    """Compares every output of `mine`. Floating values are compared with `sticks`, `floors` and `moved`: see
    `comparing.compare_with`."""
    found = []
    moved = moved or [None] * len(sticks)
    for output, (value, stick, floor, far) in enumerate(zip(mine, sticks, floors, moved, strict=True)):
        leaf = known.indices.get(output)
        if leaf is not None:
            native, searched = known.outputs[output], tolerance.norm_floor(leaf.source.dtype, numerics)
            found.append(indices.compare(leaf, native, value, trial=trial, output=output, floor=searched))
        else:
            judged = comparing.compare_with(stick, value, trial=trial, output=output, floor=floor, moved=far)
            found.append(judged)
    return found


GROSS = ("constant", "sparse")
"""Variants that are judged by a wide floor: on equal terms rounding errors add up instead of cancelling."""
FEW_LARGE = ("spikes",)
"""Variants on which few elements are large: an algorithm that is stable in norm only may err in others."""


@dataclass(frozen=True)
class Expected:
    """The reference's results for one set of arguments."""

    name: str
    arguments: list[Any]
    seed: int
    """Seed of forward's own randomness; the arguments were drawn from another."""
    native: ReferenceOutputs
    sticks: list[comparing.Yardstick]
    forgiving: bool
    """Whether these inputs may turn out too ill-conditioned to refuse a candidate."""


@dataclass(frozen=True)
class Comparison:
    """How another answer compares."""

    errors: list[ErrorStatistics]
    """Of every output."""
    amplification: float | None = None
    """By how much the problem amplifies rounding there in norm, if only rounding excuses what was found."""

    plain: bool = False
    """Whether only the error of plain arithmetic there makes it right."""
    plain_error: float | None = None
    """How far off plain arithmetic is in norm there, if only that excuses what was found."""
    by_hand_error: float | None = None
    """The same of functions that are made of exponentials, as kernels make them."""
    precision: list[dict[str, Any]] = field(default_factory=list)
    """What the bound that fits the problem says of each output that only the dtype's floor accepts."""

    @property
    def excused(self) -> str | None:
        """Why what was found decides nothing, if so, in words."""
        if self.amplification is not None:
            return f"the problem amplifies rounding {self.amplification:.3g}-fold in norm there"
        if self.plain_error is not None:
            return f"plain float32 sums are off by {self.plain_error:.3g} of the result in norm there"
        if self.by_hand_error is not None:
            return f"functions made of exponentials are off by {self.by_hand_error:.3g} of the result there"
        return None

    @property
    def wrong(self) -> ErrorStatistics | None:
        """The first output that is wrong, if there is one and nothing excuses it."""
        if self.excused is not None:
            return None
        return next((each for each in self.errors if each.wrong), None)


class Oracle:
    """One problem's reference, with its weights, on one device."""

    def __init__(
        self,
        loaded: LoadedProblem,
        model: torch.nn.Module,
        form: loop.OutputMeta,
        device: torch.device,
        numerics: str,
    ) -> None:
        self.loaded, self.model = loaded, model
        self.open_indices = False
        """Whether an output seen so far is indices that torch does not settle."""
        self._farthest: dict[int, float] = {}
        self._noise: dict[int, float] = {}
        self._arithmetic = Arithmetic(loaded, model)
        self._precision = precision.Precision(loaded, model, self._arithmetic)
        self._bounds: dict[str, list[precision.Bound] | str] = {}
        """By kind of inputs: what the bound that fits the problem is, or why it is not known."""
        self._fitted: set[int] = set()
        """Outputs to which such a bound applies."""
        self._lost: dict[int, float] | None = None
        """What float32 loses in scores that are searched, by the output; None: not found out yet."""
        self._device, self._numerics = device, numerics
        self._indexed = may_hold_indices(form)

    def native(self, arguments: list[Any], seed: int) -> ReferenceOutputs:
        """The reference's own answer.

        It runs on memory that the contestant cannot reach: a thread of the candidate's could change shared
        inputs under it, and with them the yardstick.
        """
        found = run_reference(self.loaded, self.model, arguments, seed, self._device, indexed=self._indexed)
        self.open_indices |= found.open
        leaves = {n: replace(leaf, lost=partial(self._lost_in, n, seed)) for n, leaf in found.indices.items()}
        return replace(found, indices=leaves) if self._numerics == "fp32" else found

    def _lost_in(self, output: int, seed: int) -> float:
        """What float32 loses in the scores whose indices this output is, on drawn inputs."""
        if self._lost is None:
            at = Inputs(self.loaded.draw(seed, self._device), seed, self._device)
            self._lost = self._precision.lost_in_search(at)
        return self._lost.get(output, math.inf)

    def expected(
        self,
        name: str,
        arguments: list[Any],
        seed: int,
        *,
        native: ReferenceOutputs | None = None,
        forgiving: bool = False,
    ) -> Expected:
        """With what each output is held against."""
        native = native or self.native(arguments, seed)
        if forgiving:
            leaves = {number: replace(leaf, lost=None) for number, leaf in native.indices.items()}
            native = replace(native, indices=leaves)
        sticks = yardsticks(self.loaded, self.model, arguments, seed, native.outputs, self._device)
        if name in FEW_LARGE:
            shares = [tolerance.few_large_slack(stick.native.dtype) for stick in sticks]
            sticks = [replace(s, slack=share * s.truth_norm) for s, share in zip(sticks, shares, strict=True)]
        if not forgiving:
            for output, stick in enumerate(sticks):
                if stick.noise is not None:
                    self._noise[output] = max(middle(stick.noise), self._noise.get(output, 0.0))
                elif stick.has_truth and stick.rms > 0.0 and stick.native.itemsize > 2:
                    far = stick.reference_max / stick.rms
                    self._farthest[output] = max(far, self._farthest.get(output, 0.0))
        return Expected(name, arguments, seed, native, sticks, forgiving)

    def beside(self, output: int, native: torch.Tensor) -> comparing.Yardstick:
        """The yardstick of an output where only the native result is known. One element of that result may
        be off as far, in proportion to all, as any was on the inputs drawn so far. The same holds for the
        compared output. (Errors of narrow outputs are their own rounding, which the floors include.) What was
        rounding noise may be as large again."""
        stick = comparing.yardstick(native, None)
        if self.noisy(output):
            return loosened(stick, torch.full_like(stick.native, self._noise[output], dtype=torch.float64))
        return replace(stick, reference_max=2 * self._farthest.get(output, 0.0) * stick.rms)

    def noisy(self, output: int) -> bool:
        """Whether an output was rounding noise on inputs drawn so far."""
        return output in self._noise

    def multiplies(self, expected: Expected) -> bool:
        """Whether the reference has a product there that a tensor core could do."""
        return self._arithmetic.products(Inputs(expected.arguments, expected.seed, self._device)) > 0

    def compare(self, expected: Expected, mine: Sequence[torch.Tensor]) -> Comparison:
        """Every output against its yardstick. The error of plain arithmetic may excuse a wrong output; on
        forgiving inputs the condition may excuse it too."""
        found = self._compared(expected, mine)
        if not any(each.wrong for each in found):
            return Comparison(found)
        at = Inputs(expected.arguments, expected.seed, self._device)
        widened = self._arithmetic.with_extra_tolerance(
            at, expected.sticks, found, drawn=not expected.forgiving
        )
        if widened is not None:
            again = self._compared(replace(expected, sticks=widened), mine)
            if not any(each.wrong for each in again):
                return Comparison(again, plain=True)
        if not expected.forgiving:
            return Comparison(found)
        condition = Condition(self.loaded, self.model, expected.arguments, expected.sticks, expected.seed)
        for direction in range(DIRECTIONS):
            if not condition.look(direction):
                break
            excused = self._compared(expected, mine, condition)
            if not any(each.wrong for each in excused):
                return Comparison(found, condition.amplification)
        unlimited = self._arithmetic.with_plain_error(at, expected.sticks)
        if unlimited is not None:
            excused = self._compared(replace(expected, sticks=unlimited[0]), mine)
            if not any(each.wrong for each in excused):
                return Comparison(found, plain_error=unlimited[1])
        lost = self._precision.by_hand_errors(at, expected.sticks)
        if lost is not None and not any(each.wrong for each in self._compared(expected, mine, lost=lost)):
            return Comparison(found, by_hand_error=max(lost))
        return Comparison(found)

    def judge(self, expected: Expected, mine: Sequence[torch.Tensor]) -> Comparison:
        """`compare`, and the bound that fits the problem in place of the dtype's floor: for float32 outputs,
        and narrow ones that may be moved only, that only the floor accepts, on drawn inputs and on `signed`
        ones."""
        found, name = self.compare(expected, mine), precision.JUDGED.get(expected.name.split()[0])
        settled = found.excused is not None or found.wrong is not None
        if settled or self._numerics != "fp32" or name is None:
            return found
        errors = list(found.errors)

        def held(output: int, floor: float) -> ErrorStatistics:
            stick = expected.sticks[output]
            return comparing.compare_with(
                stick, mine[output], trial=expected.name, output=output, floor=floor
            )

        narrow = {
            output
            for output, stick in enumerate(expected.sticks)
            if stick.native.itemsize == 2 and stick.reference_norm == 0.0  # as where it is only moved
        }
        fitted = {
            output
            for output, stick in enumerate(expected.sticks)
            if stick.native.dtype == torch.float32 or output in narrow
            if stick.has_truth and stick.noise is None
            if output not in expected.native.indices
        }
        self._fitted |= fitted
        near = [
            output
            for output in sorted(fitted)
            if not _surely_within(errors[output], precision.LEAST)
            if held(output, precision.LEAST).wrong
            and not held(output, tolerance.norm_floor(expected.sticks[output].native.dtype)).wrong
        ]
        bounds = self.fit(expected) if near else ""
        records = []
        for output in near:
            record: dict[str, Any] = {"output": output, "error": errors[output].relative_norm}
            if isinstance(bounds, str):
                if output not in narrow:
                    records.append(record | {"flagged": True, "unknown": bounds})
                continue
            bound = bounds[output]
            beyond = bound.doubtful(errors[output].relative_norm)
            doubtful = beyond is not None and held(output, beyond).wrong > 0
            errors[output] = held(output, bound.bound)
            record |= {"refused": errors[output].wrong > 0, "separable": bound.separable}
            records.append(record | {"flagged": doubtful} | asdict(bound))
        return replace(found, errors=errors, precision=records)

    def fit(self, expected: Expected) -> list[precision.Bound] | str:
        """The bounds that fit the problem, found out at the first inputs of each kind; or why they are not
        known."""
        name = precision.JUDGED[expected.name.split()[0]]
        if name not in self._bounds:
            at = Inputs(expected.arguments, expected.seed, self._device)
            self._bounds[name] = self._precision.bounds(at, expected.sticks)
        return self._bounds[name]

    def fitting(self, output: int) -> float | None:
        """The bound that fits the problem, for an output of a timed call: the least while nobody has asked
        for it, None where the dtype's floor stays."""
        bounds = self._bounds.get("drawn")
        if output not in self._fitted or isinstance(bounds, str):
            return None
        return precision.LEAST if bounds is None else bounds[output].bound

    def _compared(
        self,
        expected: Expected,
        mine: Sequence[torch.Tensor],
        condition: Condition | None = None,
        lost: Sequence[float] | None = None,
    ) -> list[ErrorStatistics]:
        """With floors as wide as the problem's condition there asks for, or `lost` where that is more."""
        floor = tolerance.gross_floor if expected.name in GROSS else tolerance.norm_floor
        factor = max(1.0, condition.amplification / WELL_CONDITIONED) if condition else 1.0
        floors = [factor * floor(stick.native.dtype, self._numerics) for stick in expected.sticks]
        floors = list(map(max, floors, lost or floors))
        return compare(
            expected.native,
            expected.sticks,
            mine,
            floors,
            trial=expected.name,
            numerics=self._numerics,
            moved=condition.moved if condition else None,
        )


def _surely_within(error: ErrorStatistics, floor: float) -> bool:
    """Whether the floor alone accepts an output of this error."""
    return error.relative_norm <= floor and error.max_rel <= tolerance.ELEMENT_MULTIPLE * floor
