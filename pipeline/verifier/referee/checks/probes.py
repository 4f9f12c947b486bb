"""Probes: is a correct candidate also right where the problem does not say? A failure here is a flag.

Other batch sizes, other sizes, one more dimension, inputs that are not contiguous, inputs that do not start
on an aligned address, and weights that a fresh model has not. The problem promises none of them, so a
candidate that is wrong there is `correct`, and its record says what it is made for. Probes come last: a
kernel that is driven out of its bounds may take the process with it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from kernelproof.types import Flag, Rigor, Status
from kernelproof.types.verification import VerifyRequest
from kernelproof.verifier.contestant import loop
from kernelproof.verifier.referee.checks.trials import Trials
from kernelproof.verifier.referee.checks.weights import OtherWeights, other_inputs
from kernelproof.verifier.referee.correctness.oracle import Oracle
from kernelproof.verifier.referee.inputs.problem import ProblemError, outputs_of
from kernelproof.verifier.referee.inputs.shapes import Shapes, Way, strided
from kernelproof.verifier.referee.inputs.variants import finite
from kernelproof.verifier.referee.ledger import Ledger
from kernelproof.verifier.referee.sides import CandidateProcess
from kernelproof.verifier.status_rules import PROBE, PROBES, Cause, CheckKind, Ended
from kernelproof.verifier.workers.shared_memory import (
    SharedMemory,
    SharedSlot,
    lay_out,
    slot_bytes,
    slots_that_fit,
)

BUDGET_SECONDS = 20.0
"""Probes begin only within this time."""
NEEDED_SLOTS = 4
"""A probe is left out when fewer than this many sets of its inputs would fit in memory."""
OFFSET = "offset inputs"
SHORT = "memory is short for another set of inputs"
BROKEN = "the probe before broke the process"
_ARENAS = ("probe inputs", "probe outputs")


@dataclass(frozen=True)
class Probe:
    """One set of arguments that the problem does not draw."""

    name: str
    flag: Flag
    ways: Sequence[Way]
    """Functions that make the arguments; of several, the first whose arguments the reference takes is
    used."""
    shift: int = 0
    growth: float = 1.0
    """How many times as large as the declared inputs and outputs it may be."""


class Probes:
    """Runs the probes of one verification."""

    def __init__(
        self,
        oracle: Oracle,
        memory: SharedMemory,
        request: VerifyRequest,
        device: torch.device,
        ledger: Ledger,
        slot: SharedSlot,
        form: loop.OutputMeta,
        others: OtherWeights,
    ) -> None:
        """`slot` and `form`: for inputs and outputs of the declared shapes, that is for `others`."""
        self._slot, self._form, self._others = slot, form, others
        self._oracle, self._memory = oracle, memory
        self._request, self._device, self._ledger = request, device, ledger
        self._input_bytes = 0

    def left_out(self, why: str) -> None:
        """Records that there were none."""
        self._ledger.skipped(PROBES, why)

    def run(self, candidate: CandidateProcess) -> None:
        """All probes; sets flags on the ledger, never ends the verification."""
        deadline = time.monotonic() + BUDGET_SECONDS
        gone = self._other_weights(candidate)
        for probe in self._probes():
            check = _check(probe.name)
            if gone or time.monotonic() > deadline:
                self._ledger.skipped(check, gone or "no time was left")
                continue
            if not self._probe(candidate, probe, check):
                gone = self._disorder(candidate)
        if self._request.settings.rigor is Rigor.QUICK:
            # A misaligned access ends the process: on a GPU that takes longer than all other probes.
            self._ledger.skipped(_check(OFFSET), "not at rigor quick")

    def _other_weights(self, candidate: CandidateProcess) -> str:
        """Other values for weights and inputs of one value throughout, where there are any.

        Returns why nothing more can be asked of the candidate, if so.
        """
        check = _check("other weights")
        names = self._others.chosen(candidate)
        settings, scratch = self._request.settings, Ledger(self._request)
        drawn = self._oracle.loaded.draw(self._ledger.seed("other weights"), self._device)
        generator = torch.Generator().manual_seed(self._ledger.seed("changed weights"))
        arguments, inputs = other_inputs(drawn, generator)
        del drawn
        if not names and not inputs:
            if self._others.names:
                self._ledger.skipped(check, "it holds them in a form of its own")
            return ""
        trials = Trials(
            self._oracle, [self._slot], self._form, settings, self._device, scratch, candidate.ask
        )
        figures: dict[str, Any] = {"changed": len(names), "inputs": inputs}
        figures |= {"first": names[0]} if names else {}
        try:
            self._others.change(candidate, names, generator)
            why = trials.try_arguments("other weights", arguments)
            if why is not None:
                self._ledger.skipped(check, why)
            else:
                self._ledger.passed(check, "it is", figures)
        except Ended as ended:
            if ended.status is Status.INFRASTRUCTURE_ERROR:
                raise
            seen = f"{ended.status}: {ended.reason}"[:500]
            self._ledger.flagged(check, Flag.WEIGHTS_SPECIALISED, seen, figures)
        except torch.OutOfMemoryError:
            self._ledger.skipped(check, SHORT)
        try:
            self._others.restore(candidate, names)
        except Ended:
            return BROKEN
        return ""

    def _probes(self) -> Iterator[Probe]:
        arguments = self._oracle.loaded.draw(self._ledger.seed("probes"), self._device)
        self._input_bytes = slot_bytes(arguments, [])
        few = self._request.settings.rigor is Rigor.QUICK
        shapes = Shapes(arguments)
        for other in shapes.batches(few=few):
            yield Probe(other.name, Flag.SHAPE_SPECIALISED, other.ways, growth=other.growth)
        turned = strided(arguments)
        if turned is not None:
            yield Probe("strided inputs", Flag.LAYOUT_SPECIALISED, [partial(list, turned)])
        # Odd sizes end the process of a candidate that reads several elements at a time, and all later probes
        # end with it.
        for other in (*(() if few else shapes.ranks()), *shapes.sizes(few=few)):
            yield Probe(other.name, Flag.SHAPE_SPECIALISED, other.ways, growth=other.growth)
        if not few:
            yield Probe(OFFSET, Flag.LAYOUT_SPECIALISED, [partial(list, arguments)], shift=1)

    def _probe(self, candidate: CandidateProcess, probe: Probe, check: CheckKind) -> bool:
        """Whether it is right, or nothing is known. Records the check."""
        try:
            found = self._usable_arguments(probe)
        except torch.OutOfMemoryError:
            found = SHORT
        if isinstance(found, str):
            self._ledger.skipped(check, found)
            return True
        arguments, sample = found
        outputs = outputs_of(sample, self._device)
        if self._short(slot_bytes(arguments, outputs)):
            self._ledger.skipped(check, SHORT)
            return True
        seconds = self._request.settings.call_seconds
        scratch = Ledger(self._request)  # its entries of a trial decide nothing here
        try:
            slots = lay_out(self._memory, arguments, outputs, 1, prefix="probe ", shift=probe.shift)
            message, fds = self._memory.announce(*_ARENAS)
            candidate.attach(message, fds)
            form = loop.describe(sample)
            del sample, outputs
            settings = self._request.settings
            trials = Trials(self._oracle, slots, form, settings, self._device, scratch, candidate.ask)
            why = trials.try_arguments(probe.name, arguments)
            candidate.ask({"op": "detach", "arenas": list(_ARENAS)}, seconds, Cause.RAISED_IN_RUNNER)
        except Ended as ended:
            if ended.status is Status.INFRASTRUCTURE_ERROR:
                raise
            seen = f"{ended.status}: {ended.reason}"[:500]
            self._ledger.flagged(check, probe.flag, seen, {"flag": probe.flag.value})
            return False
        finally:
            self._memory.give_back(*_ARENAS, "probe baseline")
        if why is not None:
            self._ledger.skipped(check, why)
        else:
            self._ledger.passed(check, "it is")
        return True

    def _usable_arguments(self, probe: Probe) -> tuple[list[Any], Any] | str:
        """Arguments that the reference takes, with its result; else why there are none."""
        if not probe.ways:
            return "the inputs' structure allows no other"
        if self._short(int(probe.growth * self._input_bytes)):
            return SHORT
        for made in probe.ways:
            try:
                arguments = made()
                sample = self._oracle.loaded.run(self._oracle.model, arguments, 0)
            except ProblemError:
                continue
            outputs = outputs_of(sample, self._device)
            if not finite(outputs):
                return "the reference is not finite on it"
            if not any(t.numel() for t in outputs):
                continue
            return arguments, sample
        return "the reference does not take it"

    def _short(self, bytes_each: int) -> bool:
        """Whether memory is short for a slot of so many bytes, and what its trial needs beside."""
        return slots_that_fit(bytes_each, self._device) < NEEDED_SLOTS

    def _disorder(self, candidate: CandidateProcess) -> str:
        """Why nothing more can be asked of the candidate, if so."""
        try:
            message = {"op": "detach", "arenas": list(_ARENAS)}
            candidate.ask(message, self._request.settings.call_seconds, Cause.RAISED_IN_RUNNER)
        except Ended:
            return BROKEN
        return ""


def _check(probe: str) -> CheckKind:
    return PROBE.of(probe, f"Is it right for {probe} too?")
