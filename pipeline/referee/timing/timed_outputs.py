"""Outputs of timed calls: what is measured, and whether what it gave is right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from pipeline.nouns import ErrorStatistics, VerifySettings
from pipeline.referee.answers import tolerance
from pipeline.referee.answers.answer import Answer, compare
from pipeline.referee.answers.inputs import Variant
from pipeline.referee.answers.oracle import Oracle
from pipeline.referee.seats.memory import SharedSlot


@dataclass(frozen=True)
class Subject:
    """What is measured, the same for every pair of processes."""

    oracle: Oracle
    slots: Sequence[SharedSlot]
    settings: VerifySettings
    device: torch.device
    next_seed: Callable[[], int]
    reference_error: Sequence[float]
    aliased: bool = False
    """Whether the reference's own result lies in its inputs, which then have to outlive the call."""
    variants: Sequence[Variant] = ()
    """Those that the candidate was right on in the trials."""


class TimedOutputs:
    """Compares outputs of timed calls: with the native result, whose own error the tolerance includes."""

    def __init__(self, subject: Subject) -> None:
        self._subject, self._oracle = subject, subject.oracle

    def wrong(self, place: SharedSlot, arguments: list[Any]) -> ErrorStatistics | None:
        """The first wrong output for these arguments, if any."""
        return self._compared(place, self._oracle.native(arguments, 0))

    def wrong_beside(self, slot: SharedSlot, place: SharedSlot) -> ErrorStatistics | None:
        """The same for a slot whose inputs both sides have had: the baseline has computed the answer."""
        if self._oracle.open_indices:  # where torch leaves indices open, equal integers are too much to ask
            return self.wrong(place, slot.values())
        return self._compared(place, Answer(list(place.baseline)))

    def wrong_decoy(
        self, place: SharedSlot, variant: Variant, arguments: list[Any]
    ) -> ErrorStatistics | None:
        """The same for a variant's inputs. They may be ill-conditioned: an output that differs from the
        native result is held against the truth, as in the trials."""
        native = self._oracle.native(arguments, 0)
        if self._compared(place, native) is None:
            return None
        expected = self._oracle.expected(variant.name, arguments, 0, native=native, forgiving=True)
        return self._oracle.judge(expected, place.outputs).wrong

    def _compared(self, place: SharedSlot, known: Answer) -> ErrorStatistics | None:
        subject, numerics = self._subject, self._subject.settings.numerics
        floors = [
            tolerance.timed_floor(native.dtype, error, numerics)
            for native, error in zip(known.outputs, subject.reference_error, strict=True)
        ]
        if all(map(tolerance.surely_within, place.outputs, known.outputs, floors)):
            return None
        sticks = [tolerance.yardstick(native, None) for native in known.outputs]
        found = compare(known, sticks, place.outputs, floors, trial="timed", numerics=numerics)
        return next((each for each in found if each.wrong), None)
