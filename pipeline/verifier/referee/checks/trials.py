"""The correctness trials: the same inputs for reference and candidate, and what is asked of the answer.

`check_form` comes first: structure, type, shape, dtype and device of an output, as the contestant describes
them.

`first_trial` decides whose weights a candidate is tried with: the reference's are copied over those of the
same name, unless that makes a candidate wrong which folded something into its own.

self.conv.weight.data.mul_(scale) # the scale that Model applies after the convolution

ModelNew is constructed from the same state of the generator as Model, so a layer that is drawn in the same
order has the reference's values already, and what differs may be meant. Copying the reference's values over
it undoes the folding. So a candidate that is wrong in the first trial, and had made such tensors, is
constructed afresh in a new process, keeps them, and is tried again on other inputs. This gives nobody
anything: weights under names of the candidate's own are never copied over either.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable
from typing import Any

import torch

from kernelproof.types import (
    CheckOutcome,
    Determinism,
    ErrorClass,
    ErrorStatistics,
    Flag,
    Status,
    VerifySettings,
)
from kernelproof.verifier.contestant import loop
from kernelproof.verifier.contestant.encoding import tensors
from kernelproof.verifier.referee import sides
from kernelproof.verifier.referee.correctness import comparing, tolerance
from kernelproof.verifier.referee.correctness.oracle import FEW_LARGE, GROSS, Comparison, Expected, Oracle
from kernelproof.verifier.referee.inputs.structure import Forms
from kernelproof.verifier.referee.inputs.variants import ACCURATE, VARIANTS, Variant, finite, mixed_rows
from kernelproof.verifier.referee.ledger import Ledger
from kernelproof.verifier.status_rules import (
    INPUTS_LATE,
    INPUTS_UNCHANGED,
    OUTPUT_APART,
    OUTPUT_FORM,
    PRECISION,
    REPEAT,
    RESULT_KEPT,
    VALUES,
    WEIGHTS,
    Cause,
    CheckKind,
    Ended,
)
from kernelproof.verifier.workers.shared_memory import MAX_SLOTS, SharedSlot, bits, same_bits
from kernelproof.wording import counted

_KEYS = ("type", "shape", "dtype", "device", "value")


def check_form(reply: dict[str, Any], wanted: loop.OutputMeta, ledger: Ledger) -> None:
    """Raises Ended where the described output is not like the reference's. The reply is untrusted.

    A list counts as a tuple. Other strides are harmless, since values are read in the reference's order: they
    are noted, once.
    """
    output = reply.get("output")
    found = output if isinstance(output, dict) else {}
    if _loose(found.get("structure")) != _loose(wanted.structure):
        seen = f"structure {found.get('structure')!s:.200} instead of {wanted.structure!s:.200}"
        raise ledger.failed(OUTPUT_FORM, seen)
    leaves = found.get("leaves")
    if not isinstance(leaves, list) or len(leaves) != len(wanted.leaves):
        raise ledger.failed(OUTPUT_FORM, "another number of outputs")
    for index, (mine, other) in enumerate(zip(leaves, wanted.leaves, strict=True)):
        _check_leaf(index, mine if isinstance(mine, dict) else {}, other, ledger)
    if reply.get("copied") is not True:
        raise ledger.failed(OUTPUT_FORM, "the outputs could not be copied")


def _check_leaf(index: int, mine: dict[str, Any], wanted: dict[str, Any], ledger: Ledger) -> None:
    for key in _KEYS:
        if mine.get(key) != wanted.get(key):
            seen = f"output {index}: {key} {mine.get(key)!s:.100} instead of {wanted.get(key)!s:.100}"
            figures = {"output": index, "found": str(mine.get(key))[:100], "expected": wanted.get(key)}
            raise ledger.failed(OUTPUT_FORM, seen, figures, fact=key)
    if mine.get("stride") != wanted.get("stride"):
        ledger.note_strides(index, str(mine.get("stride"))[:100], str(wanted.get("stride"))[:100])


def _loose(structure: Any) -> Any:
    """A structure in which a list counts as a tuple: callers unpack both alike."""
    if isinstance(structure, list) and len(structure) == 2 and structure[0] in ("tuple", "list"):
        items = structure[1] if isinstance(structure[1], list) else []
        return ["sequence", [_loose(item) for item in items]]
    return structure


LATER_DRAWS = 4
"""The number of later calls on other inputs that an earlier result must survive."""
LATER_SECONDS = 0.15
"""And more on the last of these inputs, for so long, until there are more than slots, and than there are
slots where memory allows them: in timed calls all results of a block are kept, so a candidate with a ring of
buffers must have more buffers than that."""
RING_SECONDS = 10.0
"""Where two results that are kept lie in one block of memory, until as many were made as fit in that."""
FAR_SLOWER, DEAR_SECONDS = 10.0, {"cuda": 0.02, "cpu": 0.5}
"""A candidate whose call takes so many times as long as the reference's, and so long, is tried on variants
in the rows of one draw: nobody uses it, and each of its calls holds the device. Where it is timed, and turns
out not to be so slow, it is tried on each of them then."""
FEW_WRONG = 1 / 64
"""Coarse operands spoil more than this share of the elements."""
_AS_LARGE_AS = {
    ErrorClass.TF32_CLASS: "products of TF32 or float16 operands",
    ErrorClass.HALF_CLASS: "products of bfloat16 operands",
}
Ask = Callable[[dict[str, Any], float, Cause], dict[str, Any]]


class Trials:
    """Runs the trials of one verification on the first slot (and the second, to see results overwritten)."""

    def __init__(
        self,
        oracle: Oracle,
        slots: list[SharedSlot],
        form: loop.OutputMeta,
        settings: VerifySettings,
        device: torch.device,
        ledger: Ledger,
        ask: Ask,
    ) -> None:
        self._oracle, self._loaded, self._slots = oracle, oracle.loaded, slots
        self._form, self._settings, self._device = form, settings, device
        self._ledger, self._ask = ledger, ask
        self._structure = Forms()
        """The structure of drawn inputs, which variants keep."""
        self._used: list[Variant] = []
        """Variants that the candidate was asked on."""
        self._right_on: set[str] = set()
        self._exact_when_drawn = False
        """Whether a trial on drawn inputs showed float32's accuracy: other errors are not of its operands."""
        self._seconds = {"reference": math.inf, "candidate": 0.0}
        """Of the reference's call that is repeated, and of the candidate's last one."""
        self._put_off = False
        """Whether the variants were tried in the rows of one draw only."""
        self._doubtful: list[dict[str, Any]] = []
        """Outputs whose precision is not separable, as found by `Oracle.judge`."""
        self.reference_error = [0.0] * len(slots[0].outputs)
        """For each output, the native reference's largest relative error in norm on drawn inputs."""

    def first(self) -> None:
        """The first trial on drawn inputs, twice: most wrong candidates end here. Raises as `run` does."""
        self._seconds["candidate"] = 0.0
        arguments, seed = self._draw("drawn")
        native = self._oracle.native(arguments, seed)
        slot = self._slots[0]
        slot.fill(arguments)
        self._called(arguments, seed, slot)
        # The truth in float64 takes longest. A candidate that raises or returns another shape needs none.
        expected = self._oracle.expected("drawn", arguments, seed, native=native)
        self._check_values(expected, slot)
        self._repeat(expected)

    def run(self, *, aliased: Collection[int]) -> None:
        """All other trials. `aliased`: numbers of the input tensors in which the reference's own result lies.

        Raises Ended with the status of the first trial that fails.
        """
        for number in range(1, self._settings.trials):
            name = f"drawn {number + 1}"
            self._trial(self._oracle.expected(name, *self._draw(name)))
        self._put_off = self._settings.measure and self._is_far_slower() and self._all_in_rows()
        if not self._put_off:
            self._variants()
        self._kept_result(aliased)
        self._ledger.passed(OUTPUT_FORM, "the same in every trial")
        self._ledger.record_strides()
        self._ledger.passed(INPUTS_UNCHANGED, "the same bytes after every trial")
        self._flag_doubtful()

    def finish(self) -> None:
        """The variants that were put off, for a candidate that is not far slower after all. Raises Ended."""
        if self._put_off:
            self._put_off, flagged = False, bool(self._doubtful)
            self._variants()
            if not flagged:
                self._flag_doubtful()

    def _flag_doubtful(self) -> None:
        if self._doubtful:
            first = self._doubtful[0]
            self._ledger.flagged(PRECISION, Flag.PRECISION_NOT_SEPARABLE, _doubt(first), first)

    @property
    def has_answered(self) -> bool:
        """Whether any call came back since the first trial began."""
        return self._seconds["candidate"] > 0

    @property
    def passed_variants(self) -> list[Variant]:
        """The variants that the candidate was right on, with nothing excused."""
        return [variant for variant in self._used if variant.name in self._right_on]

    def try_arguments(self, name: str, arguments: list[Any], *, probing: bool = False) -> str | None:
        """One trial on arguments from elsewhere. Returns why it decides nothing, if so; raises Ended.

        `probing`: a result that is half as far from the native one as it may be from the truth is right, and
        the truth, which takes longest, is not asked."""
        native = self._oracle.native(arguments, seed := self._ledger.seed(f"forward {name}"))
        if not finite(native.outputs):
            return "the reference is not finite on it"
        if probing and self._near(arguments, seed, native.outputs):
            return None
        expected = self._oracle.expected(name, arguments, seed, native=native, forgiving=True)
        if not _accurate(expected.sticks):
            return "the reference itself is not accurate on it"
        self._trial(expected)
        return None

    def _near(self, arguments: list[Any], seed: int, native: list[torch.Tensor]) -> bool:
        slot, numerics = self._slots[0], self._settings.numerics
        slot.fill(arguments)
        self._called(arguments, seed, slot)
        floors = [tolerance.norm_floor(each.dtype, numerics) / 2 for each in native]
        near = map(comparing.Nearness, slot.outputs, native)
        return all(map(comparing.Nearness.within, near, floors))

    def _draw(self, name: str) -> tuple[list[Any], int]:
        """Arguments as drawn, and the seed of forward."""
        arguments = self._loaded.draw(self._ledger.seed(f"trial {name}"), self._device)
        self._structure.see(arguments)
        return arguments, self._ledger.seed(f"forward {name}")

    def _is_far_slower(self) -> bool:
        candidate = self._seconds["candidate"]
        return candidate > max(DEAR_SECONDS[self._device.type], FAR_SLOWER * self._seconds["reference"])

    def _all_in_rows(self) -> bool:
        """All variants in one draw. False where the reference cannot do with that."""
        rows = _in_rows(VARIANTS).keeping(self._structure)
        if self._try_variant(rows) is not None:
            return False
        self._used.append(rows)
        return True

    def _variants(self) -> None:
        for variant in VARIANTS:
            self._variant(variant)
        rows = _in_rows(self.passed_variants)
        if rows.name not in self._right_on:  # where the others were put off, it came first
            self._variant(rows)

    def _variant(self, variant: Variant) -> None:
        reasons = []
        for way in variant.ways:
            kept = way.keeping(self._structure)
            why = self._try_variant(kept)
            if why is None:
                self._used.append(kept)
                return
            reasons.append(why)
        self._ledger.skipped(VALUES.of(variant.name), reasons[0], self._structure.traits_by_input)

    def _try_variant(self, variant: Variant) -> str | None:
        """A trial on a variant. Returns why it decides nothing, if so; raises Ended."""
        name = variant.name
        arguments = self._loaded.draw(self._ledger.seed(f"trial {name}"), self._device)
        if self._structure.draws < 2:  # a single draw may look like anything by chance
            self._structure.see(arguments)
        changed = variant.apply(arguments, self._ledger.seed(f"variant {name}"))
        del arguments
        if changed is None:
            return "no input whose values may be changed"
        return self.try_arguments(name, changed)

    def _trial(self, expected: Expected) -> None:
        slot = self._slots[0]
        slot.fill(expected.arguments)
        self._called(expected.arguments, expected.seed, slot)
        self._check_values(expected, slot)

    def _called(self, arguments: list[Any], seed: int, slot: SharedSlot, **more: Any) -> None:
        """The call itself, the form of its result, and the inputs afterwards."""
        reply = self._call(slot, seed, **more)
        check_form(reply, self._form, self._ledger)
        for index, (view, pristine) in enumerate(zip(slot.views, tensors(arguments), strict=True)):
            if not same_bits(view, pristine):
                seen = f"input {index} was changed"
                raise self._ledger.failed(INPUTS_UNCHANGED, seen, {"input": index})

    def _call(self, slot: SharedSlot, seed: int, **more: Any) -> dict[str, Any]:
        sides.make_room(self._device, slot.input_bytes)
        message = {"op": "call", "seed": seed, **slot.message(), **more}
        began = time.monotonic()
        reply = self._ask(message, self._settings.call_seconds, Cause.RAISED_IN_CALL)
        self._seconds["candidate"] = time.monotonic() - began
        return reply

    def _check_values(self, expected: Expected, slot: SharedSlot) -> None:
        check, judged = VALUES.of(expected.name), self._oracle.judge(expected, slot.outputs)
        found = judged.errors
        if judged.excused is not None:
            figures = {"amplification": judged.amplification, "plain_error": judged.plain_error}
            known = {key: value for key, value in figures.items() if value is not None}
            self._ledger.skipped(check, f"{judged.excused}: right results may differ so", known)
            return
        self._ledger.errors.extend(found)
        if judged.wrong is not None:
            raise self._wrong(check, judged.wrong, expected, judged.precision)
        classes = [tolerance.error_class(each, self._settings.numerics) for each in found]
        if expected.name.startswith("drawn"):
            self._exact_when_drawn |= set(classes) - {None} == {ErrorClass.FP32_EQUIVALENT}
            for index, (each, stick) in enumerate(zip(found, expected.sticks, strict=True)):
                own = each.reference_relative_norm if stick.noise is None else 0.0
                self.reference_error[index] = max(self.reference_error[index], own)
        if expected.name not in GROSS:
            self._ledger.saw_class(classes)
        self._right_on.add(expected.name)
        kept: dict[str, Any] = dict(self._structure.traits_by_input) if expected.forgiving else {}
        if judged.precision:
            kept["precision"] = judged.precision
        self._ledger.passed(check, _summary(judged, expected), kept)
        self._doubtful.extend(each for each in judged.precision if each.get("flagged"))

    def _wrong(
        self, check: CheckKind, error: ErrorStatistics, expected: Expected, precision: list[dict[str, Any]]
    ) -> Ended:
        seen = f"output {error.output}: {error.in_words}"
        told = next((each for each in precision if each["output"] == error.output), None)
        if told is not None:
            seen = f"{seen}; {_told(told)}"
        kind = tolerance.error_class(error, self._settings.numerics)
        telling = expected.name.startswith("drawn") or not self._exact_when_drawn
        telling &= not 0 < error.wrong < FEW_WRONG * error.count
        if telling and kind in _AS_LARGE_AS and self._oracle.multiplies(expected):
            seen = f"{seen}; the error is as large as {_AS_LARGE_AS[kind]} would make it"
        # Other weights are off by as much as weights are: by far more than any arithmetic.
        if expected.name.startswith("drawn") and error.relative_norm > tolerance.HALF_FLOOR:
            seen = "; ".join(filter(None, (seen, self._ledger.own_weights)))
        figures = error.model_dump(mode="json")
        return self._ledger.failed(check, seen, figures | ({"precision": precision} if precision else {}))

    def _repeat(self, expected: Expected) -> None:
        """The first trial once more, at other addresses where there are any; on a GPU its inputs are then
        written by work that is queued right before the call."""
        began = time.monotonic()
        native = self._oracle.native(expected.arguments, expected.seed)  # a model with a state stays in step
        sides.settled(self._device)
        self._seconds["reference"] = time.monotonic() - began
        if not _agree(native.outputs, expected.native.outputs):
            self._ledger.skipped(REPEAT, "the reference itself gives another result")
            return
        first, again = self._slots[0], self._slots[-1]
        before = [bits(place).clone() for place in first.outputs]
        if again is not first and self._device.type == "cuda":
            self._late(expected, first, again)
        else:
            again.fill(expected.arguments)
            self._called(expected.arguments, expected.seed, again)
        if all(torch.equal(bits(now), then) for now, then in zip(again.outputs, before, strict=True)):
            self._ledger.determinism = Determinism.BIT_EQUAL
            self._ledger.passed(REPEAT, "the same bits")
            return
        wrong = self._oracle.judge(expected, again.outputs).wrong
        if wrong is not None:
            self._ledger.errors.append(wrong)
            seen = f"right once, then output {wrong.output}: {wrong.in_words}"
            figures = wrong.model_dump(mode="json")
            raise self._ledger.failed(REPEAT, seen, figures)
        self._ledger.determinism = Determinism.WITHIN_ERROR
        self._ledger.passed(REPEAT, "other bits, within the tolerance")

    def _late(self, expected: Expected, source: SharedSlot, slot: SharedSlot) -> None:
        """The call on inputs that come from `source`, where they are, while it is made. Leaves its outputs
        in `slot`."""
        slot.poison()
        meanwhile = self._loaded.draw(self._ledger.seed("trial late"), self._device)
        late = slot.await_from(source, meanwhile)
        del meanwhile
        self._called(expected.arguments, expected.seed, slot, late=late)
        if self._oracle.compare(expected, slot.outputs).wrong is None:
            self._ledger.passed(INPUTS_LATE, "it is right on inputs that were still to be written")
            return
        # A candidate that is right every second time has another fault, which the repeat names.
        for _ in range(2):
            slot.fill(expected.arguments)
            self._called(expected.arguments, expected.seed, slot)
            if self._oracle.compare(expected, slot.outputs).wrong is not None:
                return
        seen = "right only when its inputs are there before it is called"
        raise self._ledger.failed(INPUTS_LATE, seen)

    def _kept_result(self, aliased: Collection[int]) -> None:
        """A result must survive its inputs' being overwritten, and a second call."""
        first, second = self._slots[0], self._slots[-1]
        name = "kept"
        first.fill(self._loaded.draw(self._ledger.seed(f"trial {name}"), self._device))
        self._call(first, self._ledger.seed(f"forward {name}"))
        before = [bits(place).clone() for place in first.outputs]
        if aliased and len(aliased) == len(first.views):
            self._ledger.skipped(OUTPUT_APART, "the reference's own result lies in its inputs")
        else:
            first.scramble(aliased)
            self._unchanged(OUTPUT_APART, first, before, "it changed with the inputs")
        if second is first:
            self._ledger.skipped(RESULT_KEPT, "memory holds one set of inputs only")
            return
        for number in range(2, 2 + LATER_DRAWS):  # one of several buffers in turn comes round again
            second.fill(self._loaded.draw(self._ledger.seed(f"trial {name} {number}"), self._device))
            seed = self._ledger.seed(f"forward {name} {number}")
            ring = self._call(second, seed, hold=True).get("ring")
        most, seconds = max(len(self._slots), MAX_SLOTS), LATER_SECONDS
        if isinstance(ring, int) and ring > most:
            most, seconds = ring, RING_SECONDS
        until = time.monotonic() + seconds
        while (most := most - 1) > 0 and time.monotonic() < until:
            self._call(second, seed, hold=True)
        self._unchanged(RESULT_KEPT, first, before, "a later call overwrote it")

    def _unchanged(
        self, check: CheckKind, slot: SharedSlot, before: list[torch.Tensor], otherwise: str
    ) -> None:
        """Has the kept result copied out again, and compares it with what it was."""
        slot.poison()
        message = {"op": "again", "outputs": slot.message()["outputs"]}
        self._ask(message, self._settings.call_seconds, Cause.RAISED_IN_CALL)
        if not all(torch.equal(bits(now), then) for now, then in zip(slot.outputs, before, strict=True)):
            raise self._ledger.failed(check, otherwise)
        self._ledger.passed(check, "the result is unchanged")


def _in_rows(variants: Iterable[Variant]) -> Variant:
    """Rows of these. Equal terms have a tolerance of their own, and spikes are single elements already."""
    return mixed_rows([variant for variant in variants if variant.name not in (*GROSS, *FEW_LARGE)])


def _agree(left: list[torch.Tensor], right: list[torch.Tensor]) -> bool:
    return same_bits(left, right) or all(
        comparing.compare(a, b, None, trial="again", output=i).wrong == 0
        for i, (a, b) in enumerate(zip(left, right, strict=True))
    )


def _accurate(sticks: list[comparing.Yardstick]) -> bool:
    return all(
        stick.reference_relative_norm < ACCURATE
        for stick in sticks
        if stick.native.dtype in (torch.float32, torch.float64) and stick.noise is None
    )


def _told(found: dict[str, Any]) -> str:
    """Why an output that the dtype's floor accepts is wrong."""
    if found["moved"]:
        return "the reference only moves data there, which costs no rounding"
    return f"coarse operands (TF32, half, 16-bit integers) make it {found['coarse']:.3g} there"


def _doubt(found: dict[str, Any]) -> str:
    """Why nobody can say what operands an output had."""
    seen = f"output {found['output']} is off by {found['error']:.3g}"
    if "unknown" in found:
        return f"{seen}, and what coarse operands make there is not known: {found['unknown']}"
    return (
        f"{seen}, where coarse operands make as little as {found['smallest']:.3g}, "
        f"and honest float32 up to {found['honest']:.3g}"
    )


def _summary(judged: Comparison, expected: Expected) -> str:
    for stick, found in zip(expected.sticks, judged.errors, strict=True):
        if stick.noise is not None:
            few, size = int((stick.noise > 0).sum()), float(stick.noise.max())
            return (
                f"output {found.output} is rounding noise in {few} of {counted(found.count, 'element')}: "
                f"off by {found.max_abs:.3g} at most, and one rounding of the inputs alone makes {size:.3g}"
            )
    worst = max(judged.errors, key=lambda e: e.relative_norm, default=None)
    if worst is None:
        return "no tensor outputs"
    if worst.allowed_norm is None:
        return "all elements right"
    why = ", since the plainest float32 sums are off by a quarter of that" if judged.plain else ""
    return (
        f"relative error {worst.relative_norm:.3g} in norm "
        f"(the reference's own {worst.reference_relative_norm:.3g}; allowed {worst.allowed_norm:.3g}{why})"
    )


Afresh = Callable[[Collection[str]], None]
"""Seats the candidate in a new process, where tensors of these names stay as ModelNew made them."""


def first_trial(
    trials: Trials,
    ledger: Ledger,
    differed: Callable[[], Collection[str]],
    afresh: Afresh,
    after_late_call: Callable[[], None] | None,
) -> frozenset[str]:
    """The first trial, with the reference's weights or else with those that ModelNew made.

    `differed`: names of the tensors that ModelNew made with other values. `after_late_call` makes the process
    in which a late first call is made again, if given. Returns the names of the tensors that are kept as
    ModelNew made them. Raises Ended as `Trials.first` does: with what failed by less, if both ways are wrong,
    and with the second if that is late: it may have been right.
    """
    errors = len(ledger.errors)
    try:
        _first(trials, ledger, after_late_call)
        return frozenset()
    except Ended as ended:
        by, others = _wrong_by(ledger, ended), differed()
        if by is None or not others:
            raise
        copied = ended
    weights = _weights_at(ledger)
    before = ledger.since(weights, errors)
    try:
        afresh(others)
        _first(trials, ledger, after_late_call)
    except Ended as ended:
        if ended.status is Status.INFRASTRUCTURE_ERROR:
            raise
        still = _wrong_by(ledger, ended)
        if ended.status is Status.TIMEOUT or (still is not None and still < by):
            _add(ledger, f"; with the reference's values over them it was wrong by {by:.3g} in norm")
            raise
        ledger.since(weights, errors)
        ledger.checks.extend(before[0])
        ledger.errors.extend(before[1])
        rest = "fails too" if still is None else f"is wrong by {still:.3g} in norm"
        _add(ledger, f"; with the {len(others)} as ModelNew made them it {rest}")
        raise copied from None
    _add(ledger, f"; with the reference's values over them the first trial was wrong by {by:.3g} in norm")
    return frozenset(others)


def _first(trials: Trials, ledger: Ledger, after_late_call: Callable[[], None] | None) -> None:
    """The first trial. A first call also reads libraries from a disk, which may be slow for reasons that are
    not the candidate's: a late one is made again in the process that `after_late_call` makes, if given."""
    try:
        trials.first()
    except Ended as ended:
        if ended.status is not Status.TIMEOUT or after_late_call is None or trials.has_answered:
            raise
        before = _weights_at(ledger)
        after_late_call()
        del ledger.checks[before]  # the fresh process has its own
        _add(ledger, "; its first call was late, so it was made again in a fresh process")
        trials.first()


def _weights_at(ledger: Ledger) -> int:
    return next(index for index, check in enumerate(ledger.checks) if check.name == WEIGHTS.name)


def _wrong_by(ledger: Ledger, ended: Ended) -> float | None:
    """By how much the values were wrong in norm, relative to the reference's; None if something else was."""
    last = ledger.checks[-1] if ledger.checks else None
    if last is None or last.outcome is not CheckOutcome.FAIL or last.name != "values: drawn":
        return None
    found = last.figures.get("relative_norm")
    if ended.status is not Status.WRONG_OUTPUT or not isinstance(found, int | float):
        return None
    return float(found) if math.isfinite(found) else math.inf


def _add(ledger: Ledger, words: str) -> None:
    """Adds to what the check of the weights saw."""
    for index, check in enumerate(ledger.checks):
        if check.name == "weights":
            ledger.checks[index] = check.model_copy(update={"seen": check.seen + words})
