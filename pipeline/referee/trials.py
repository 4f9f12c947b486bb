"""The correctness trials: the same inputs for reference and candidate, and what is asked of the answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from pipeline.contestant import loop
from pipeline.nouns import Determinism, ErrorClass, ErrorStatistics, Status, VerifySettings
from pipeline.referee import tolerance
from pipeline.referee.answer import Answer, answer, compare, may_hold_indices
from pipeline.referee.conditioning import WELL_CONDITIONED, amplification
from pipeline.referee.form import FORM, check_form
from pipeline.referee.inputs import ACCURATE, VARIANTS, Variant, finite
from pipeline.referee.ledger import Ended, Ledger
from pipeline.referee.memory import SharedSlot, raw, same_bits
from pipeline.referee.problem import LoadedProblem, outputs_of, tensors, truth

LATER_CALLS = 4
"""So many later calls an earlier result must survive."""
GROSS = "constant"
"""The variant that is judged by a wide floor: on equal terms rounding errors add up instead of cancelling."""

Ask = Callable[[dict[str, Any], float, Status], dict[str, Any]]

_INPUTS = "Are the inputs unchanged, bit by bit?"
_VALUES = "Do the outputs agree with the reference within the tolerance?"
_APART = "Do results lie apart from the inputs?"
_KEPT = "Does a later call leave an earlier result alone?"
_REPEAT = "Does the same call give the same result again?"


@dataclass(frozen=True)
class Expected:
    """What the reference makes of one set of arguments."""

    name: str
    arguments: list[Any]
    seed: int
    """Seed of forward's own randomness; the arguments were drawn from another."""
    native: Answer
    sticks: list[tolerance.Yardstick]
    forgiving: bool
    """Whether these inputs may turn out too ill-conditioned to refuse anybody on."""


class Trials:
    """Runs the trials of one verification on the first slot (and the second, to see results overwritten)."""

    def __init__(
        self,
        loaded: LoadedProblem,
        model: torch.nn.Module,
        slots: list[SharedSlot],
        form: loop.OutputMeta,
        settings: VerifySettings,
        device: torch.device,
        ledger: Ledger,
        ask: Ask,
    ) -> None:
        self._loaded, self._model, self._slots = loaded, model, slots
        self._form, self._settings, self._device = form, settings, device
        self._ledger, self._ask = ledger, ask
        self._indexed = may_hold_indices(form)
        self.open_indices = False
        """Whether an output is indices that torch does not settle."""
        self.reference_error = [0.0] * len(slots[0].outputs)
        """For each output, the native reference's largest relative error in norm on drawn inputs."""

    def run(self, *, aliased: bool) -> None:
        """All trials. `aliased`: the reference's own result lies in its inputs.

        Raises Ended with the status of the first trial that fails.
        """
        for number in range(self._settings.trials):
            expected = self._drawn("drawn" if number == 0 else f"drawn {number + 1}")
            self._trial(expected)
            if number == 0:
                self._repeat(expected)
            del expected
        for variant in VARIANTS:
            self._variant(variant)
        self._kept_result(aliased)
        self._ledger.passed("output_form", FORM, "the same in every trial")
        self._ledger.strides_said()
        self._ledger.passed("inputs_unchanged", _INPUTS, "the same bytes after every trial")

    def try_arguments(self, name: str, arguments: list[Any]) -> str | None:
        """One trial on arguments from elsewhere. Returns why it decides nothing, if so; raises Ended."""
        native = self._native(arguments, seed := self._ledger.seed(f"forward {name}"))
        if not finite(native.outputs):
            return "the reference is not finite on it"
        expected = self._expected(name, arguments, seed, native, forgiving=True)
        if not _accurate(expected.sticks):
            return "the reference itself is not accurate on it"
        self._trial(expected)
        return None

    def _drawn(self, name: str) -> Expected:
        arguments = self._loaded.draw(self._ledger.seed(f"trial {name}"), self._device)
        seed = self._ledger.seed(f"forward {name}")
        return self._expected(name, arguments, seed, self._native(arguments, seed), forgiving=False)

    def _variant(self, variant: Variant) -> None:
        drawn = self._loaded.draw(self._ledger.seed(f"trial {variant.name}"), self._device)
        arguments = variant.apply(drawn, self._ledger.seed(f"variant {variant.name}"))
        del drawn
        why = "no input whose values may be changed"
        if arguments is not None:
            why = self.try_arguments(variant.name, arguments) or ""
        if why:
            self._ledger.skipped(f"values: {variant.name}", _VALUES, why)

    def _native(self, arguments: list[Any], seed: int) -> Answer:
        # The reference runs on memory that the contestant cannot reach: a thread of the candidate's could
        # change shared inputs under it, and with them the yardstick.
        found = answer(self._loaded, self._model, arguments, seed, self._device, indexed=self._indexed)
        self.open_indices |= found.open
        return found

    def _expected(
        self, name: str, arguments: list[Any], seed: int, native: Answer, *, forgiving: bool
    ) -> Expected:
        """With what each output is held against. Integers are equal or wrong and need no float64 twin."""
        outputs = native.outputs
        exact: list[torch.Tensor | None] = [None] * len(outputs)
        if any(t.is_floating_point() or t.is_complex() for t in outputs):
            value = truth(self._loaded, self._model, arguments, seed)
            if value is not None:
                exact = [*outputs_of(value, self._device)]
        sticks = [tolerance.yardstick(mine, sure) for mine, sure in zip(outputs, exact, strict=True)]
        return Expected(name, arguments, seed, native, sticks, forgiving)

    def _trial(self, expected: Expected) -> None:
        slot = self._slots[0]
        slot.fill(expected.arguments)
        self._called(expected, slot)
        self._check_values(expected, slot)

    def _called(self, expected: Expected, slot: SharedSlot) -> None:
        """The call itself, the form of its result, and the inputs afterwards."""
        reply = self._call(slot, expected.seed)
        check_form(reply, self._form, self._ledger)
        for index, (view, pristine) in enumerate(zip(slot.views, tensors(expected.arguments), strict=True)):
            if not same_bits(view, pristine):
                seen = f"input {index} was changed"
                raise self._ledger.failed(
                    Status.MUTATED_INPUT, "inputs_unchanged", _INPUTS, seen, {"input": index}
                )

    def _call(self, slot: SharedSlot, seed: int, **more: Any) -> dict[str, Any]:
        message = {"op": "call", "seed": seed, **slot.message(), **more}
        return self._ask(message, self._settings.call_seconds, Status.RUNTIME_ERROR)

    def _compared(self, expected: Expected, slot: SharedSlot, factor: float = 1.0) -> list[ErrorStatistics]:
        """Every output against its yardstick, with floors `factor` times as wide."""
        numerics = self._settings.numerics
        floor = tolerance.gross_floor if expected.name == GROSS else tolerance.norm_floor
        floors = [factor * floor(stick.native.dtype, numerics) for stick in expected.sticks]
        known, sticks = expected.native, expected.sticks
        return compare(known, sticks, slot.outputs, floors, trial=expected.name, numerics=numerics)

    def _check_values(self, expected: Expected, slot: SharedSlot) -> None:
        name, found = f"values: {expected.name}", self._compared(expected, slot)
        wrong = next((each for each in found if each.wrong), None)
        if wrong is not None and expected.forgiving:
            factor = self._amplification(expected)
            if factor is not None and factor > WELL_CONDITIONED:
                excused = self._compared(expected, slot, factor / WELL_CONDITIONED)
                if not any(each.wrong for each in excused):
                    why = (
                        f"the problem amplifies rounding {factor:.3g}-fold on it: right results may differ so"
                    )
                    self._ledger.skipped(name, _VALUES, why, {"amplification": factor})
                    return
        self._ledger.errors.extend(found)
        if wrong is not None:
            raise self._wrong(name, wrong)
        if expected.name.startswith("drawn"):
            for index, each in enumerate(found):
                self.reference_error[index] = max(self.reference_error[index], each.reference_relative_norm)
        if expected.name != GROSS:
            self._ledger.saw_class(tolerance.error_class(each, self._settings.numerics) for each in found)
        self._ledger.passed(name, _VALUES, _summary(found))

    def _amplification(self, expected: Expected) -> float | None:
        exact = [stick.exact for stick in expected.sticks]
        return amplification(self._loaded, self._model, expected.arguments, exact, expected.seed)

    def _wrong(self, name: str, found: ErrorStatistics) -> Ended:
        first = ""
        if found.first_bad is not None:
            first = f", first at {list(found.first_bad)} ({found.first_bad_values})"
        kind = tolerance.error_class(found, self._settings.numerics)
        hint = f"; its error is {kind}" if kind in (ErrorClass.TF32_CLASS, ErrorClass.HALF_CLASS) else ""
        seen = (
            f"output {found.output}: {found.wrong} of {found.count} elements wrong{first}; "
            f"relative error {found.relative_norm:.3g} in norm{hint}"
        )
        figures = found.model_dump(mode="json")
        return self._ledger.failed(Status.WRONG_OUTPUT, name, _VALUES, seen, figures)

    def _repeat(self, expected: Expected) -> None:
        """The first trial once more, at other addresses where there are any."""
        name = "values: repeat"
        native = self._native(expected.arguments, expected.seed)  # a model with a state stays in step
        if not _agree(native.outputs, expected.native.outputs):
            self._ledger.skipped(name, _REPEAT, "the reference itself gives another result")
            return
        first, again = self._slots[0], self._slots[-1]
        before = [raw(place).clone() for place in first.outputs]
        again.fill(expected.arguments)
        self._called(expected, again)
        if all(torch.equal(raw(now), then) for now, then in zip(again.outputs, before, strict=True)):
            self._ledger.determinism = Determinism.BIT_EQUAL
            self._ledger.passed(name, _REPEAT, "the same bits")
            return
        wrong = next((found for found in self._compared(expected, again) if found.wrong), None)
        if wrong is not None:
            self._ledger.errors.append(wrong)
            seen = f"right once, then {wrong.wrong} of {wrong.count} elements of output {wrong.output} wrong"
            figures = wrong.model_dump(mode="json")
            raise self._ledger.failed(Status.NONDETERMINISTIC, name, _REPEAT, seen, figures)
        self._ledger.determinism = Determinism.WITHIN_ERROR
        self._ledger.passed(name, _REPEAT, "other bits, within the tolerance")

    def _kept_result(self, aliased: bool) -> None:
        """A result must survive its inputs' being overwritten, and a second call."""
        first, second = self._slots[0], self._slots[-1]
        name = "kept"
        first.fill(self._loaded.draw(self._ledger.seed(f"trial {name}"), self._device))
        self._call(first, self._ledger.seed(f"forward {name}"))
        before = [raw(place).clone() for place in first.outputs]
        if aliased:
            self._ledger.skipped("output_apart", _APART, "the reference's own result lies in its inputs")
        else:
            first.scramble()
            self._unchanged("output_apart", _APART, first, before, "it changed with the inputs")
        if second is first:
            self._ledger.skipped("result_kept", _KEPT, "memory holds one set of inputs only")
            return
        for number in range(2, 2 + LATER_CALLS):  # one of several buffers in turn comes round again
            second.fill(self._loaded.draw(self._ledger.seed(f"trial {name} {number}"), self._device))
            self._call(second, self._ledger.seed(f"forward {name} {number}"), hold=True)
        self._unchanged("result_kept", _KEPT, first, before, "a later call overwrote it")

    def _unchanged(
        self, name: str, asked: str, slot: SharedSlot, before: list[torch.Tensor], otherwise: str
    ) -> None:
        """Has the kept result copied out again, and compares it with what it was."""
        slot.poison()
        message = {"op": "again", "outputs": slot.message()["outputs"]}
        self._ask(message, self._settings.call_seconds, Status.RUNTIME_ERROR)
        if not all(torch.equal(raw(now), then) for now, then in zip(slot.outputs, before, strict=True)):
            raise self._ledger.failed(Status.WRONG_OUTPUT, name, asked, otherwise)
        self._ledger.passed(name, asked, "the result is unchanged")


def _agree(left: list[torch.Tensor], right: list[torch.Tensor]) -> bool:
    return same_bits(left, right) or all(
        tolerance.compare(a, b, None, trial="again", output=i).wrong == 0
        for i, (a, b) in enumerate(zip(left, right, strict=True))
    )


def _accurate(sticks: list[tolerance.Yardstick]) -> bool:
    return all(
        stick.reference_relative_norm < ACCURATE
        for stick in sticks
        if stick.native.dtype in (torch.float32, torch.float64)
    )


def _summary(found: list[ErrorStatistics]) -> str:
    worst = max(found, key=lambda e: e.relative_norm, default=None)
    if worst is None:
        return "no tensor outputs"
    return (
        f"relative error {worst.relative_norm:.3g} in norm "
        f"(the reference's own {worst.reference_relative_norm:.3g})"
    )
