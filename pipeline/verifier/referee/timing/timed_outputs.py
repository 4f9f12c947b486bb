"""Outputs of timed calls: what is measured, and whether what it gave is right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from kernelproof.types import ErrorStatistics, VerifySettings
from kernelproof.verifier.referee.correctness import comparing, tolerance
from kernelproof.verifier.referee.correctness.oracle import Oracle, ReferenceOutputs, compare
from kernelproof.verifier.referee.correctness.tolerance import NORM_FLOOR, UNBELIEVABLE
from kernelproof.verifier.referee.inputs.problem import mapped
from kernelproof.verifier.referee.inputs.variants import Variant
from kernelproof.verifier.workers.shared_memory import SharedSlot


@dataclass(frozen=True)
class Subject:
    """What is measured, the same for every pair of processes."""

    oracle: Oracle
    slots: Sequence[SharedSlot]
    settings: VerifySettings
    device: torch.device
    next_seed: Callable[[], int]
    reference_error: Sequence[float]
    aliased: frozenset[int] = frozenset()
    """Numbers of the input tensors in which the reference's own result lies: they outlive the call."""
    variants: Sequence[Variant] = ()
    """Those that the candidate was right on in the trials."""
    spare: Sequence[SharedSlot] = ()
    """Further places for results, where there are few slots."""

    @property
    def seeded(self) -> bool:
        """Whether each timed call has a seed of its own: the reference draws random numbers in forward."""
        return self.oracle.loaded.draws_in_forward


class _Beside:
    """A place's outputs beside the right ones. How near they are is looked at once, whatever the floor."""

    def __init__(self, place: SharedSlot, known: ReferenceOutputs) -> None:
        self.mine, self.known = place.outputs, known
        self._near = list(map(comparing.Nearness, place.outputs, known.outputs))

    def surely_within(self, floors: Sequence[float]) -> bool:
        """Whether every output surely is within its floor."""
        return all(map(comparing.Nearness.within, self._near, floors))


class TimedOutputs:
    """Compares outputs of timed calls: with the native result, whose own error the tolerance includes."""

    def __init__(self, subject: Subject) -> None:
        self._subject, self._oracle = subject, subject.oracle
        self.beyond_trial = 0
        """Outputs that were right by `near_floor`, which for float32 is twice a trial's, and would be wrong
        in a trial. Counted and shown; nothing depends on it."""

    def wrong(self, place: SharedSlot, arguments: list[Any], seed: int) -> ErrorStatistics | None:
        """The first wrong output for these arguments, which are the referee's own, if any.

        `seed`: of the call; the reference ignores it where it draws no random numbers.
        """
        beside = _Beside(place, self._oracle.native(arguments, seed))
        found = self._as_in_trials("timed", beside, arguments, seed)
        return found or self._coarse(beside, arguments, seed)

    def wrong_beside(self, slot: SharedSlot, place: SharedSlot, seed: int) -> ErrorStatistics | None:
        """The same for a slot whose inputs both sides have had: the baseline has computed the answer.

        An output that seems wrong is held against the truth: the native result has an error of its own, so it
        does not tell how far off one element may be. Nor does it where it is rounding noise.
        """
        if self._oracle.open_indices:  # where torch leaves indices open, equal integers are too much to ask
            return self.wrong(place, slot.values(), seed)
        beside = _Beside(place, ReferenceOutputs(list(place.baseline.outputs)))
        if self._fits(beside):
            return None
        found = self._compared(beside, tolerance.timed_floor)
        if found is not None and not (_near(found) or self._oracle.noisy(found.output)):
            return found
        try:
            arguments = mapped(slot.values(), torch.Tensor.clone)
            native = self._oracle.native(arguments, seed)
            if not self._same(native, beside.known):
                return found  # the inputs are no longer those, or the reference never gives one thing twice
            beside = _Beside(place, native)
            if found is None:
                return self._coarse(beside, arguments, seed)
            return self._wrong_by_truth("timed", beside, arguments, seed)
        except torch.OutOfMemoryError:
            return found

    def wrong_decoy(
        self, place: SharedSlot, variant: Variant, arguments: list[Any], seed: int
    ) -> ErrorStatistics | None:
        """The same for a variant's inputs, which may be ill-conditioned."""
        beside = _Beside(place, self._oracle.native(arguments, seed))
        return self._as_in_trials(variant.name, beside, arguments, seed, forgiving=True)

    def _as_in_trials(
        self, name: str, beside: _Beside, arguments: list[Any], seed: int, *, forgiving: bool = False
    ) -> ErrorStatistics | None:
        """Compares an output with the truth. An output near enough to the native result needs no truth, which
        is expensive for large problems."""
        if self._compared(beside, tolerance.near_floor) is None:
            self._note_beyond_trial(name, beside, arguments, seed)
            return None
        return self._wrong_by_truth(name, beside, arguments, seed, forgiving=forgiving)

    def _note_beyond_trial(self, name: str, beside: _Beside, arguments: list[Any], seed: int) -> None:
        if self._compared(beside, tolerance.surely_right_floor) is None:
            return
        try:
            self.beyond_trial += self._wrong_by_truth(name, beside, arguments, seed) is not None
        except torch.OutOfMemoryError:
            return

    def _wrong_by_truth(
        self, name: str, beside: _Beside, arguments: list[Any], seed: int, *, forgiving: bool = False
    ) -> ErrorStatistics | None:
        """Held against the truth, as in a trial."""
        expected = self._oracle.expected(name, arguments, seed, native=beside.known, forgiving=forgiving)
        if any(
            (error > 0 or self._oracle.noisy(output)) and not stick.has_truth
            for output, (error, stick) in enumerate(
                zip(self._subject.reference_error, expected.sticks, strict=True)
            )
        ):  # there was a truth in the trials, and now no memory for it
            return self._compared(beside, tolerance.timed_floor)
        return self._oracle.judge(expected, beside.mine).wrong

    def _coarse(self, beside: _Beside, arguments: list[Any], seed: int) -> ErrorStatistics | None:
        """An output that the dtype's floor accepts, and not the bound that fits the problem. It is found out
        now for a candidate that was exact in its trials, and rounds its operands when timed."""
        if self._fits(beside):
            return None
        try:
            self._oracle.fit(self._oracle.expected("timed", arguments, seed, native=beside.known))
            if self._fits(beside):
                return None
            return self._wrong_by_truth("timed", beside, arguments, seed)
        except torch.OutOfMemoryError:
            return None

    def _fits(self, beside: _Beside) -> bool:
        """Whether float32 outputs are as near to the native result as the bound that fits the problem asks,
        twice like all bounds here."""
        bounds = [self._oracle.fitting(output) for output in range(len(beside.known.outputs))]
        return self._compared(beside, tolerance.timed_floor, bounds) is None

    def _compared(
        self, beside: _Beside, floor: Callable[..., float], fitting: Sequence[float | None] = ()
    ) -> ErrorStatistics | None:
        subject, known, numerics = self._subject, beside.known, self._subject.settings.numerics
        floors = [
            floor(native.dtype, error, numerics, *fitting[output : output + 1])
            for output, (native, error) in enumerate(zip(known.outputs, subject.reference_error, strict=True))
        ]
        if beside.surely_within(floors):
            return None
        sticks = [self._oracle.beside(output, native) for output, native in enumerate(known.outputs)]
        found = compare(known, sticks, beside.mine, floors, trial="timed", numerics=numerics)
        return next((each for each in found if each.wrong), None)

    def _same(self, native: ReferenceOutputs, known: ReferenceOutputs) -> bool:
        """Whether the reference gives again what the baseline gave, as nearly as it does at all."""
        numerics = self._subject.settings.numerics
        sticks = [self._oracle.beside(output, mine) for output, mine in enumerate(native.outputs)]
        floors = [tolerance.norm_floor(mine.dtype, numerics) for mine in native.outputs]
        found = compare(native, sticks, known.outputs, floors, trial="again", numerics=numerics)
        return not any(each.wrong for each in found)


def _near(error: ErrorStatistics) -> bool:
    """Whether a wrong output is near enough to right that the truth could tell otherwise."""
    return error.nan == 0 and error.relative_norm <= UNBELIEVABLE * NORM_FLOOR[torch.float32]
