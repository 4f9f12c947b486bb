"""The candidate as the referee deals with it: a contestant whose every failure has a status."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from pipeline.nouns import Status, VerifySettings
from pipeline.referee.answers.problem import LoadedProblem
from pipeline.referee.ledger import Ended, Ledger
from pipeline.referee.seats import seat
from pipeline.referee.seats.host import Contestant, ContestantFailed, ContestantGone
from pipeline.referee.seats.memory import SharedMemory, SharedWeights, same_bits

_WEIGHTS = "Do the candidate's parameters start where the reference's do?"
_STATE = "Are parameters and buffers unchanged?"


class Candidate:
    """One process with the candidate in it. What goes wrong there raises Ended with the fitting status."""

    def __init__(
        self,
        contestant: Contestant,
        memory: SharedMemory,
        settings: VerifySettings,
        device: torch.device,
        ledger: Ledger,
    ) -> None:
        self._memory, self._settings, self._device, self._ledger = memory, settings, device, ledger
        self.contestant = contestant
        self._shared: dict[str, dict[str, Any]] = {}
        """Specs of the weights that reference and candidate have in common, by name."""

    def sit(self) -> None:
        """Waits for the process and gives it device and memory."""
        self._ledger.sandbox = self.contestant.sandbox
        seat.greet(self.contestant, self._memory, seat.CANDIDATE_ARENAS, self._settings, self._device)

    def load(
        self,
        source: str,
        loaded: LoadedProblem,
        seed: int,
        weights: SharedWeights,
        pristine: SharedWeights,
    ) -> None:
        """Imports the candidate, constructs ModelNew, and lets its weights start where the reference's do.

        `weights` lies where the candidate can write, `pristine` does not.
        """
        seconds = self._settings.load_seconds
        self.ask({"op": "load", "source": source, "seed": seed}, seconds, Status.LOAD_ERROR)
        arguments = seat.init_arguments(loaded)
        message = {"op": "construct", "class": "ModelNew", "arguments": arguments, "seed": seed}
        reply = self.ask(message, seconds, Status.LOAD_ERROR)
        found = reply.get("state")
        mine = found if isinstance(found, dict) else {}
        self._shared = {
            name: spec
            for name, spec in weights.specs.items()
            if mine.get(name) == [spec["dtype"], spec["shape"]]
        }
        equal = self._transferred(weights, pristine) if self._shared else 0
        figures = {
            "reference": len(weights.specs),
            "candidate": len(mine),
            "matched": len(self._shared),
            "equal_before": equal,
        }
        if not weights.specs:
            self._ledger.skipped("weights", _WEIGHTS, "the reference has no parameters", figures)
            return
        seen = (
            f"{len(self._shared)} of {len(weights.specs)} tensors match by name and shape; "
            f"{equal} held the reference's values already, the others got them now"
        )
        self._ledger.passed("weights", _WEIGHTS, seen, figures)

    def _transferred(self, weights: SharedWeights, pristine: SharedWeights) -> int:
        """Copies the reference's weights over; returns how many held the same values by themselves."""
        seconds = self._settings.load_seconds
        message = {"op": "state", "tensors": self._shared}
        self.ask(message, seconds, Status.LOAD_ERROR)
        equal = sum(same_bits(weights.views[name], pristine.views[name]) for name in self._shared)
        for name in self._shared:
            weights.views[name].copy_(pristine.views[name])
        seat.settled(self._device)
        self.ask({"op": "weights", "tensors": self._shared}, seconds, Status.LOAD_ERROR)
        return equal

    def check_state(
        self, weights: SharedWeights, pristine: SharedWeights, reference: dict[str, torch.Tensor]
    ) -> None:
        """Whether what matched is as it was, where the reference, in the state `reference`, left it alone."""
        kept = {n: s for n, s in self._shared.items() if same_bits(reference[n], pristine.views[n])}
        if not kept:
            why = "no tensor matched by name" if not self._shared else "the reference changes its own"
            self._ledger.skipped("state_unchanged", _STATE, why)
            return
        reply = self.ask({"op": "state", "tensors": kept}, self._settings.call_seconds, Status.RUNTIME_ERROR)
        gone = reply.get("missing")
        missing = {str(name) for name in gone} if isinstance(gone, list) else set()
        for name in kept:
            if name not in missing and not same_bits(weights.views[name], pristine.views[name]):
                seen = f"{name} was changed by forward"
                raise self._ledger.failed(
                    Status.MUTATED_INPUT, "state_unchanged", _STATE, seen, {"name": name}
                )
        counts = {"compared": len(kept) - len(missing), "no_longer_there": len(missing)}
        self._ledger.passed("state_unchanged", _STATE, "the same bytes after all trials", counts)

    def ask(self, message: dict[str, Any], seconds: float, failure: Status) -> dict[str, Any]:
        """Asks the contestant; what goes wrong there ends the verification with the fitting status."""
        try:
            return self.contestant.ask(message, seconds=seconds)
        except (ContestantFailed, ContestantGone) as error:
            raise self.ended(error, failure) from None

    def ended(self, error: ContestantFailed | ContestantGone, failure: Status) -> Ended:
        """How the verification ends when the contestant failed so; `failure`: when it raised."""
        self.take_builds()
        if isinstance(error, ContestantFailed):
            if error.kind == "oom":
                return Ended(Status.OUT_OF_MEMORY, f"it ran out of memory: {error.message}", error.traceback)
            broken = self._ledger.build_failure()
            if broken is not None:
                return broken
            return Ended(failure, f"{error.type}: {error.message}"[:500], error.traceback)
        outcome = error.outcome
        if outcome.state in ("ok", "error", "crash"):  # its own end, not ours
            ending = f"signal {outcome.signal}" if outcome.signal else f"exit {outcome.exit_code}"
            self._ledger.exit = ending
        else:
            ending = "stopped by us" if outcome.state == "killed" else outcome.reason
        details = "\n".join(part for part in (outcome.stdout, outcome.stderr) if part)
        if error.timed_out:
            return Ended(Status.TIMEOUT, "it did not answer within its time limit", details)
        if outcome.state == "memory":
            return Ended(Status.OUT_OF_MEMORY, "its processes exceeded the memory limit", details)
        if outcome.state in ("timeout", "cpu"):
            return Ended(Status.TIMEOUT, f"it exceeded its {outcome.state} limit", details)
        return Ended(Status.CRASH, f"{error} ({ending})", details)

    def attach(self, message: dict[str, Any], fds: Sequence[int]) -> None:
        """Gives the process more memory to share. Raises as `ask` does."""
        try:
            self.contestant.ask(message, seconds=self._settings.load_seconds, fds=fds)
        except (ContestantFailed, ContestantGone) as error:
            raise self.ended(error, Status.CRASH) from None

    def take_builds(self) -> None:
        """Notes what the candidate had built so far."""
        self._ledger.builds[:] = self.contestant.builds

    def close(self) -> None:
        """Ends the process."""
        self.take_builds()
        self.contestant.close()
