"""What the reference makes of some arguments, and whether another answer to them is right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from pipeline.contestant import loop
from pipeline.nouns import ErrorStatistics
from pipeline.referee.answers import comparing, tolerance
from pipeline.referee.answers.answer import Answer, answer, compare, may_hold_indices
from pipeline.referee.answers.conditioning import DIRECTIONS, WELL_CONDITIONED, Condition
from pipeline.referee.answers.problem import LoadedProblem, outputs_of, truth

GROSS = ("constant", "sparse")
"""Variants that are judged by a wide floor: on equal terms rounding errors add up instead of cancelling."""


@dataclass(frozen=True)
class Expected:
    """What the reference makes of one set of arguments."""

    name: str
    arguments: list[Any]
    seed: int
    """Seed of forward's own randomness; the arguments were drawn from another."""
    native: Answer
    sticks: list[comparing.Yardstick]
    forgiving: bool
    """Whether these inputs may turn out too ill-conditioned to refuse anybody on."""


@dataclass(frozen=True)
class Judgement:
    """How another answer compares."""

    found: list[ErrorStatistics]
    """Of every output."""
    amplification: float | None = None
    """By how much the problem amplifies rounding there in norm, if only rounding excuses what was found."""

    @property
    def wrong(self) -> ErrorStatistics | None:
        """The first output that is wrong, if there is one and nothing excuses it."""
        if self.amplification is not None:
            return None
        return next((each for each in self.found if each.wrong), None)


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
        self._device, self._numerics = device, numerics
        self._indexed = may_hold_indices(form)

    def native(self, arguments: list[Any], seed: int) -> Answer:
        """The reference's own answer.

        It runs on memory that the contestant cannot reach: a thread of the candidate's could change shared
        inputs under it, and with them the yardstick.
        """
        found = answer(self.loaded, self.model, arguments, seed, self._device, indexed=self._indexed)
        self.open_indices |= found.open
        return found

    def expected(
        self,
        name: str,
        arguments: list[Any],
        seed: int,
        *,
        native: Answer | None = None,
        forgiving: bool = False,
    ) -> Expected:
        """With what each output is held against. Integers are equal or wrong and need no float64 twin."""
        native = native or self.native(arguments, seed)
        outputs = native.outputs
        exact: list[torch.Tensor | None] = [None] * len(outputs)
        if any(t.is_floating_point() or t.is_complex() for t in outputs):
            value = truth(self.loaded, self.model, arguments, seed)
            if value is not None:
                exact = [*outputs_of(value, self._device)]
        sticks = [comparing.yardstick(mine, sure) for mine, sure in zip(outputs, exact, strict=True)]
        return Expected(name, arguments, seed, native, sticks, forgiving)

    def judge(self, expected: Expected, mine: Sequence[torch.Tensor]) -> Judgement:
        """Every output against its yardstick; on forgiving inputs the condition may excuse it."""
        found = self._compared(expected, mine)
        if not expected.forgiving or not any(each.wrong for each in found):
            return Judgement(found)
        condition = Condition(self.loaded, self.model, expected.arguments, expected.sticks, expected.seed)
        for direction in range(DIRECTIONS):
            if not condition.look(direction):
                break
            excused = self._compared(expected, mine, condition)
            if not any(each.wrong for each in excused):
                return Judgement(found, condition.amplification)
        return Judgement(found)

    def _compared(
        self, expected: Expected, mine: Sequence[torch.Tensor], condition: Condition | None = None
    ) -> list[ErrorStatistics]:
        """With floors as wide as the problem's condition there asks for."""
        floor = tolerance.gross_floor if expected.name in GROSS else tolerance.norm_floor
        factor = max(1.0, condition.amplification / WELL_CONDITIONED) if condition else 1.0
        floors = [factor * floor(stick.native.dtype, self._numerics) for stick in expected.sticks]
        return compare(
            expected.native,
            expected.sticks,
            mine,
            floors,
            trial=expected.name,
            numerics=self._numerics,
            moved=condition.moved if condition else None,
        )
