"""Probes: is a correct candidate also right where the problem does not say? What fails here is a flag.

Other batch sizes, inputs that are not contiguous, inputs that do not start on an aligned address. The
problem promises none of them, so a candidate that is wrong there is `correct`, and its record says what it
is made for. Probes come last: a kernel that is driven out of its bounds may take the process with it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from pipeline.contestant import loop
from pipeline.nouns import Flag, Rigor, Status
from pipeline.referee.answers.inputs import finite, other_batches, strided
from pipeline.referee.answers.oracle import Oracle
from pipeline.referee.answers.problem import ProblemError, outputs_of
from pipeline.referee.checks.trials import Trials
from pipeline.referee.ledger import Ended, Ledger
from pipeline.referee.request import VerifyRequest
from pipeline.referee.seats.candidate import Candidate
from pipeline.referee.seats.memory import SharedMemory, lay_out, slot_bytes, slots_that_fit

BUDGET_SECONDS = 20.0
"""Probes begin only within this time."""
NEEDED_SLOTS = 4
"""A probe is left out when fewer than this many sets of its inputs would fit in memory."""
OFFSET = "offset inputs"
_ARENAS = ("probe inputs", "probe outputs")


@dataclass(frozen=True)
class Probe:
    """One set of arguments that the problem does not draw."""

    name: str
    flag: Flag
    ways: list[list[Any]]
    """The arguments; where there are several, the first that the reference takes."""
    shift: int = 0


class Probes:
    """Runs the probes of one verification."""

    def __init__(
        self,
        oracle: Oracle,
        memory: SharedMemory,
        request: VerifyRequest,
        device: torch.device,
        ledger: Ledger,
    ) -> None:
        self._oracle, self._memory = oracle, memory
        self._request, self._device, self._ledger = request, device, ledger

    def run(self, candidate: Candidate) -> None:
        """All probes; sets flags on the ledger, never ends the verification."""
        deadline = time.monotonic() + BUDGET_SECONDS
        gone = ""
        for probe in self._probes():
            asked = f"Is it right for {probe.name} too?"
            if gone or time.monotonic() > deadline:
                self._ledger.skipped(f"probe: {probe.name}", asked, gone or "no time was left")
                continue
            why = self._probe(candidate, probe, asked)
            if why is not None:
                self._ledger.flags.add(probe.flag)
                gone = self._disorder(candidate)
        if self._request.settings.rigor is Rigor.QUICK:
            # A misaligned access ends the process: on a GPU that takes longer than all other probes.
            self._ledger.skipped(f"probe: {OFFSET}", f"Is it right for {OFFSET} too?", "not at rigor quick")

    def _probes(self) -> Iterator[Probe]:
        arguments = self._oracle.loaded.draw(self._ledger.seed("probes"), self._device)
        for name, ways in other_batches(arguments):
            yield Probe(name, Flag.SHAPE_SPECIALISED, ways)
        turned = strided(arguments)
        if turned is not None:
            yield Probe("strided inputs", Flag.LAYOUT_SPECIALISED, [turned])
        if self._request.settings.rigor is not Rigor.QUICK:
            yield Probe(OFFSET, Flag.LAYOUT_SPECIALISED, [arguments], shift=1)

    def _probe(self, candidate: Candidate, probe: Probe, asked: str) -> str | None:
        """What went wrong, or None. Records the check."""
        name = f"probe: {probe.name}"
        found = self._taken(probe)
        if isinstance(found, str):
            self._ledger.skipped(name, asked, found)
            return None
        arguments, sample = found
        outputs = outputs_of(sample, self._device)
        if slots_that_fit(slot_bytes(arguments, outputs), self._device) < NEEDED_SLOTS:
            self._ledger.skipped(name, asked, "memory is short for another set of inputs")
            return None
        seconds = self._request.settings.call_seconds
        scratch = Ledger(self._request)  # what a trial says there decides nothing here
        try:
            slots = lay_out(self._memory, arguments, outputs, 1, prefix="probe ", shift=probe.shift)
            message, fds = self._memory.announce(*_ARENAS)
            candidate.attach(message, fds)
            form = loop.describe(sample)
            del sample, outputs
            settings = self._request.settings
            trials = Trials(self._oracle, slots, form, settings, self._device, scratch, candidate.ask)
            why = trials.try_arguments(probe.name, arguments)
            candidate.ask({"op": "detach", "arenas": list(_ARENAS)}, seconds, Status.CRASH)
        except Ended as ended:
            if ended.status is Status.INFRASTRUCTURE_ERROR:
                raise
            seen = f"{ended.status}: {ended.reason}"[:500]
            self._ledger.failed(Status.CORRECT, name, asked, seen, {"flag": probe.flag.value})
            return seen
        finally:
            self._memory.give_back(*_ARENAS, "probe baseline")
        if why is not None:
            self._ledger.skipped(name, asked, why)
        else:
            self._ledger.passed(name, asked, "it is")
        return None

    def _taken(self, probe: Probe) -> tuple[list[Any], Any] | str:
        """Arguments that the reference takes, with its result; else why there are none."""
        for arguments in probe.ways:
            try:
                sample = self._oracle.loaded.run(self._oracle.model, arguments, 0)
            except ProblemError:
                continue
            if not finite(outputs_of(sample, self._device)):
                return "the reference is not finite on it"
            return arguments, sample
        return "the reference does not take it"

    def _disorder(self, candidate: Candidate) -> str:
        """Why nothing more can be asked of the candidate, if so."""
        try:
            message = {"op": "detach", "arenas": list(_ARENAS)}
            candidate.ask(message, self._request.settings.call_seconds, Status.CRASH)
        except Ended:
            return "the probe before broke the process"
        return ""
