"""The correctness trials: the same inputs for reference and candidate, and what is asked of the answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from pipeline.contestant import loop
from pipeline.nouns import ErrorStatistics, Status, VerifySettings
from pipeline.referee import tolerance
from pipeline.referee.inputs import VARIANTS, WELL_CONDITIONED, Variant, finite
from pipeline.referee.ledger import Ended, Ledger
from pipeline.referee.memory import SharedSlot, raw, same_bits
from pipeline.referee.problem import LoadedProblem, tensors, truth

Ask = Callable[[dict[str, Any], float, Status], dict[str, Any]]

_FORM = "Have the outputs the structure, type, shape, dtype and device of the reference's?"
_INPUTS = "Are the inputs unchanged, bit by bit?"
_VALUES = "Do the outputs agree with the reference within the tolerance?"
_KEPT = "Does a later call leave an earlier result alone?"


class Trials:
    """Runs the trials of one verification on the first slot (and the second, to see results overwritten)."""

    def __init__(
        self,
        loaded: LoadedProblem,
        model: torch.nn.Module,
        slots: list[SharedSlot],
        expected: loop.OutputMeta,
        settings: VerifySettings,
        device: torch.device,
        ledger: Ledger,
        ask: Ask,
    ) -> None:
        self._loaded, self._model, self._slots = loaded, model, slots
        self._expected, self._settings, self._device = expected, settings, device
        self._ledger, self._ask = ledger, ask
        self.reference_error = [0.0] * len(slots[0].outputs)

    def run(self) -> list[float]:
        """All trials; returns, for each output, the native reference's largest relative error in norm.

        Raises Ended with the status of the first trial that fails.
        """
        for number in range(self._settings.trials):
            self._trial("drawn" if number == 0 else f"drawn {number + 1}", None)
        for variant in VARIANTS:
            self._trial(variant.name, variant)
        self._kept_result()
        self._ledger.passed("output_form", _FORM, "the same in every trial")
        self._ledger.passed("inputs_unchanged", _INPUTS, "the same bytes after every trial")
        return self.reference_error

    def _trial(self, name: str, variant: Variant | None) -> None:
        seed = self._ledger.seed(f"trial {name}")
        arguments = self._loaded.draw(seed, self._device)
        if variant is not None:
            changed = variant.apply(arguments, seed ^ 1)
            if changed is None:
                self._skip(name, "no input whose values may be changed")
                return
            arguments = changed
        # The reference runs on memory that the contestant cannot reach: a thread of the candidate's could
        # change shared inputs under it, and with them the yardstick.
        native = tensors(self._loaded.run(self._model, arguments, seed))
        if variant is not None and not finite(native):
            self._skip(name, "the reference is not finite on it")
            return
        sticks = self._yardsticks(arguments, native, seed)
        if variant is not None and not _well_conditioned(sticks):
            self._skip(name, "the reference itself is not accurate on it")
            return
        slot = self._slots[0]
        slot.fill(arguments)
        reply = self._call(slot, seed)
        self._check_form(reply)
        self._check_inputs(slot, arguments)
        self._check_values(name, slot, sticks)

    def _yardsticks(
        self, arguments: list[Any], native: list[torch.Tensor], seed: int
    ) -> list[tolerance.Yardstick]:
        """What each output is held against. Integers are equal or wrong and need no float64 twin."""
        value = None
        if any(t.is_floating_point() or t.is_complex() for t in native):
            value = truth(self._loaded, self._model, arguments, seed)
        exact: list[torch.Tensor | None] = [None] * len(native) if value is None else [*tensors(value)]
        return [tolerance.yardstick(mine, sure) for mine, sure in zip(native, exact, strict=True)]

    def _call(self, slot: SharedSlot, seed: int, op: str = "call") -> dict[str, Any]:
        message = {"op": op, "seed": seed, **slot.message()}
        return self._ask(message, self._settings.call_seconds, Status.RUNTIME_ERROR)

    def _check_form(self, reply: dict[str, Any]) -> None:
        output = reply.get("output")
        found = output if isinstance(output, dict) else {}
        if _loose(found.get("structure")) != _loose(self._expected.structure):
            seen = f"structure {found.get('structure')!s:.200} instead of {self._expected.structure!s:.200}"
            raise self._ledger.failed(Status.WRONG_SHAPE, "output_form", _FORM, seen)
        leaves = found.get("leaves")
        if not isinstance(leaves, list) or len(leaves) != len(self._expected.leaves):
            raise self._ledger.failed(Status.WRONG_SHAPE, "output_form", _FORM, "another number of outputs")
        for index, (mine, wanted) in enumerate(zip(leaves, self._expected.leaves, strict=True)):
            self._check_leaf(index, mine if isinstance(mine, dict) else {}, wanted)
        if reply.get("copied") is not True:
            raise self._ledger.failed(
                Status.WRONG_SHAPE, "output_form", _FORM, "the outputs could not be copied"
            )

    def _check_leaf(self, index: int, mine: dict[str, Any], wanted: dict[str, Any]) -> None:
        for key, status in (
            ("type", Status.WRONG_DTYPE),
            ("shape", Status.WRONG_SHAPE),
            ("dtype", Status.WRONG_DTYPE),
            ("device", Status.WRONG_DTYPE),
            ("value", Status.WRONG_OUTPUT),
        ):
            if mine.get(key) != wanted.get(key):
                seen = f"output {index}: {key} {mine.get(key)!s:.100} instead of {wanted.get(key)!s:.100}"
                figures = {"output": index, "found": str(mine.get(key))[:100], "expected": wanted.get(key)}
                raise self._ledger.failed(status, "output_form", _FORM, seen, figures)

    def _check_inputs(self, slot: SharedSlot, arguments: list[Any]) -> None:
        for index, (view, pristine) in enumerate(zip(slot.views, tensors(arguments), strict=True)):
            if not same_bits(view, pristine):
                seen = f"input {index} was changed"
                raise self._ledger.failed(
                    Status.MUTATED_INPUT, "inputs_unchanged", _INPUTS, seen, {"input": index}
                )

    def _check_values(self, name: str, slot: SharedSlot, sticks: list[tolerance.Yardstick]) -> None:
        for index, (mine, stick) in enumerate(zip(slot.outputs, sticks, strict=True)):
            found = tolerance.compare_with(stick, mine, trial=name, output=index)
            self._ledger.errors.append(found)
            if name.startswith("drawn"):
                worst = max(self.reference_error[index], found.reference_relative_norm)
                self.reference_error[index] = worst
            if found.wrong:
                raise self._wrong(name, found)
        self._ledger.passed(f"values: {name}", _VALUES, _summary(self._ledger.errors[-len(sticks) :]))

    def _wrong(self, name: str, found: ErrorStatistics) -> Ended:
        first = ""
        if found.first_bad is not None:
            first = f", first at {list(found.first_bad)} ({found.first_bad_values})"
        seen = (
            f"output {found.output}: {found.wrong} of {found.count} elements wrong{first}; "
            f"relative error {found.relative_norm:.3g} in norm"
        )
        figures = found.model_dump(mode="json")
        return self._ledger.failed(Status.WRONG_OUTPUT, f"values: {name}", _VALUES, seen, figures)

    def _kept_result(self) -> None:
        """Calls twice with different inputs; the first result must survive the second call."""
        if len(self._slots) < 2:
            self._ledger.skipped("result_kept", _KEPT, "memory holds one set of inputs only")
            return
        first, second = self._slots[:2]
        seed = self._ledger.seed("trial kept")
        for number, slot in enumerate((first, second)):
            slot.fill(self._loaded.draw(seed ^ number, self._device))
        self._call(first, seed)
        before = [raw(place).clone() for place in first.outputs]
        message_slot = second.message() | {"outputs": list(first.output_specs)}
        message = {"op": "recheck", "seed": seed, **message_slot}
        self._ask(message, self._settings.call_seconds, Status.RUNTIME_ERROR)
        if not all(torch.equal(raw(now), then) for now, then in zip(first.outputs, before, strict=True)):
            raise self._ledger.failed(
                Status.WRONG_OUTPUT, "result_kept", _KEPT, "the second call overwrote the first one's result"
            )
        self._ledger.passed("result_kept", _KEPT, "the first result is unchanged after a second call")

    def _skip(self, name: str, why: str) -> None:
        self._ledger.skipped(f"values: {name}", _VALUES, why)


def _well_conditioned(sticks: list[tolerance.Yardstick]) -> bool:
    return all(
        stick.reference_relative_norm < WELL_CONDITIONED
        for stick in sticks
        if stick.native.dtype in (torch.float32, torch.float64)
    )


def _loose(structure: Any) -> Any:
    """A structure in which a list counts as a tuple: callers unpack both alike."""
    if isinstance(structure, list) and len(structure) == 2 and structure[0] in ("tuple", "list"):
        items = structure[1] if isinstance(structure[1], list) else []
        return ["sequence", [_loose(item) for item in items]]
    return structure


def _summary(found: list[ErrorStatistics]) -> str:
    worst = max(found, key=lambda e: e.relative_norm, default=None)
    if worst is None:
        return "no tensor outputs"
    return (
        f"relative error {worst.relative_norm:.3g} in norm "
        f"(the reference's own {worst.reference_relative_norm:.3g})"
    )
