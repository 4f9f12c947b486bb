"""One verification, from a candidate's source to a verdict. The stages, in order, are the methods."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import torch

from pipeline.contestant import loop
from pipeline.contestant.main import configure_torch
from pipeline.errors import MachineError
from pipeline.nouns import Status, Verification
from pipeline.referee import clock, seat
from pipeline.referee.environment import describe_environment
from pipeline.referee.host import BuildService, Contestant, ContestantFailed, ContestantGone
from pipeline.referee.inputs import describe
from pipeline.referee.ledger import Ended, Ledger
from pipeline.referee.memory import (
    SharedMemory,
    lay_out,
    same_bits,
    share_weights,
    slot_bytes,
    slots_that_fit,
)
from pipeline.referee.problem import LoadedProblem, ProblemError, tensors
from pipeline.referee.request import VerifyRequest
from pipeline.referee.trials import Trials

Progress = Callable[[str], None]


def judge(request: VerifyRequest, build: BuildService, progress: Progress) -> Verification:
    """Judges one candidate. Never raises for what a candidate or a problem does: that is in the record."""
    ledger = Ledger(request)
    bench = Bench(request, ledger, build, progress)
    try:
        bench.run()
        verdict = Ended(Status.CORRECT, "every check passed")
    except Ended as ended:
        verdict = ended
    except ProblemError as error:
        verdict = Ended(Status.INFRASTRUCTURE_ERROR, f"the problem itself failed: {error}")
    except torch.OutOfMemoryError as error:
        verdict = Ended(Status.INFRASTRUCTURE_ERROR, f"the referee ran out of device memory: {error}")
    except MachineError:
        raise
    except Exception as error:  # a bug of ours must cost one verification, not the referee
        why = f"a bug in the referee: {type(error).__name__}: {error}"
        verdict = Ended(Status.INFRASTRUCTURE_ERROR, why, traceback.format_exc())
    finally:
        bench.close()
    return ledger.close(verdict.status, verdict.reason, verdict.details)


class Bench:
    """What one verification needs: the loaded problem, the contestant, the memory they share."""

    def __init__(
        self, request: VerifyRequest, ledger: Ledger, build: BuildService, progress: Progress
    ) -> None:
        self._request, self._ledger, self._build, self._progress = request, ledger, build, progress
        self._settings = request.settings
        self._device = torch.device(request.device)
        self._memory = SharedMemory(self._device)
        self._contestant: Contestant | None = None
        self._baseline: Contestant | None = None

    def run(self) -> None:
        """All stages; returns when the candidate is correct, raises Ended otherwise."""
        ledger, settings = self._ledger, self._settings
        configure_torch(settings.threads)
        ledger.environment = describe_environment(self._device)
        loaded = LoadedProblem(self._request.problem, settings.size)
        weights_seed = ledger.seed("weights")
        with ledger.stage("reference"):
            self._progress("reference")
            model = loaded.construct(weights_seed, self._device)
            arguments = loaded.draw(ledger.seed("layout"), self._device)
            sample = loaded.run(model, arguments, 0)
            ledger.inputs = describe(arguments)
            if any(leaf["type"] == "float" for leaf in loop.describe(sample).leaves):
                why = "the problem cannot be judged: it returns Python floats; return tensors"
                raise Ended(Status.INFRASTRUCTURE_ERROR, why)
            if not same_bits(arguments, loaded.draw(ledger.seeds["layout"], self._device)):
                raise Ended(
                    Status.INFRASTRUCTURE_ERROR,
                    "the problem cannot be judged: its forward changes its inputs, "
                    "or get_inputs depends on more than the seed",
                )
        outputs = tensors(sample)
        count = slots_that_fit(slot_bytes(arguments, outputs), self._device)
        slots = lay_out(self._memory, arguments, outputs, count)
        weights = share_weights(self._memory, model.state_dict(), "weights")
        baseline_weights = share_weights(self._memory, model.state_dict(), "baseline_weights")
        expected = loop.describe(sample)
        del arguments, sample, outputs
        with ledger.stage("start"):
            self._progress("start")
            self._contestant = seat.start(self._build, self._memory, settings, self._device)
            ledger.sandbox = self._contestant.sandbox
            seat.greet(self._contestant, self._memory, seat.CANDIDATE_ARENAS, settings, self._device)
        with ledger.stage("load"):
            self._progress("load")
            self._load(loaded, weights_seed, weights)
        if settings.measure:  # comes up while the candidate is tried
            self._baseline = seat.start(seat.no_builds, self._memory, settings, self._device)
        with ledger.stage("correctness"):
            self._progress("correctness")
            trials = Trials(loaded, model, slots, expected, settings, self._device, ledger, self._ask)
            reference_error = trials.run()
        self._take_builds()
        if settings.own_kernel and not ledger.builds:
            raise ledger.failed(
                Status.NO_CUSTOM_KERNEL,
                "own_kernel",
                "Did the candidate build a kernel of its own?",
                "it is right, but it built no extension",
            )
        if settings.own_kernel:
            ledger.passed(
                "own_kernel",
                "Did the candidate build a kernel of its own?",
                f"it built {len(ledger.builds)} extension(s)",
            )
        if settings.measure:
            with ledger.stage("timing"):
                self._progress("timing")
                baseline = self._seated_baseline(loaded, baseline_weights, weights_seed)
                self._measure(loaded, model, baseline, slots, reference_error)

    def close(self) -> None:
        """Ends the contestant and gives all memory back."""
        if self._contestant is not None:
            self._take_builds()
            self._contestant.close()
        if self._baseline is not None:
            self._baseline.close()
        self._memory.close()
        if self._device.type == "cuda":
            torch.cuda.empty_cache()

    def _seated_baseline(
        self, loaded: LoadedProblem, weights: dict[str, dict[str, Any]], seed: int
    ) -> Contestant:
        assert self._baseline is not None
        seat.seat_baseline(self._baseline, loaded, self._memory, weights, seed, self._settings, self._device)
        return self._baseline

    def _load(
        self,
        loaded: LoadedProblem,
        seed: int,
        weights: dict[str, dict[str, Any]],
    ) -> None:
        seconds = self._settings.load_seconds
        source = self._request.source
        self._ask({"op": "load", "source": source, "seed": seed}, seconds, Status.LOAD_ERROR)
        arguments = seat.init_arguments(loaded)
        message = {"op": "construct", "class": "ModelNew", "arguments": arguments, "seed": seed}
        reply = self._ask(message, seconds, Status.LOAD_ERROR)
        mine = reply.get("state")
        mine = mine if isinstance(mine, dict) else {}
        shared = {k: v for k, v in weights.items() if mine.get(k) == [v["dtype"], v["shape"]]}
        if shared:
            self._ask({"op": "weights", "tensors": shared}, seconds, Status.LOAD_ERROR)
        asked = "Do the candidate's parameters start where the reference's do?"
        figures = {"reference": len(weights), "candidate": len(mine), "copied": len(shared)}
        if not weights:
            self._ledger.skipped("weights", asked, "the reference has no parameters", figures)
        else:
            seen = f"{len(shared)} of {len(weights)} tensors match by name and shape and were copied over"
            self._ledger.passed("weights", asked, seen, figures)

    def _measure(
        self,
        loaded: LoadedProblem,
        model: torch.nn.Module,
        baseline: Contestant,
        slots: list[Any],
        reference_error: list[float],
    ) -> None:
        ledger, numbers = self._ledger, iter(range(1, 1 << 30))
        watch = clock.Stopwatch(
            loaded,
            model,
            self._require(),
            baseline,
            slots,
            self._settings,
            self._device,
            lambda: ledger.seed(f"timed {next(numbers)}"),
            reference_error,
        )
        try:
            timed = watch.run()
        except (ContestantFailed, ContestantGone) as error:
            raise self._ended(error, Status.RUNTIME_ERROR) from None
        self._judge_timed(timed)

    def _judge_timed(self, timed: clock.Timed) -> None:
        ledger = self._ledger
        asked = "Are the outputs of timed calls right?"
        if timed.failure == "timed_outputs" and timed.bad is not None:
            ledger.errors.append(timed.bad)
            seen = f"{timed.bad.wrong} of {timed.bad.count} elements of a timed call's output are wrong"
            raise ledger.failed(Status.WRONG_OUTPUT, "timed_outputs", asked, seen)
        if timed.failure == "inputs_unchanged":
            raise ledger.failed(
                Status.MUTATED_INPUT,
                "timed_inputs",
                "Are the inputs of timed calls unchanged?",
                "an input of a timed call was changed",
            )
        if timed.failure == "inside_clock":
            raise ledger.failed(
                Status.CHEATING,
                "inside_clock",
                "Are the times of the contestant's clock possible?",
                "it reported times that no call can have taken",
            )
        ledger.passed("timed_outputs", asked, f"{timed.checked_calls} calls compared, all right")
        measurement = clock.conclude(timed, seat.flush_bytes(self._device))
        ledger.measurement = measurement
        inside, loop_ms = measurement.candidate_ms, measurement.overhead_ms
        allowed = inside + clock.allowed_unseen_ms(inside, loop_ms)
        figures = {
            "inside_ms": measurement.candidate_ms,
            "host_ms": measurement.host_ms,
            "allowed_ms": allowed,
        }
        asked = "Does the referee's own clock agree with the contestant's?"
        seen = f"inside {measurement.candidate_ms:.4g} ms, outside {measurement.host_ms:.4g} ms a call"
        if measurement.host_ms > allowed:
            raise ledger.failed(Status.CHEATING, "host_clock", asked, f"{seen}: timer mismatch", figures)
        ledger.passed("host_clock", asked, seen, figures)

    def _ask(self, message: dict[str, Any], seconds: float, failure: Status) -> dict[str, Any]:
        """Asks the contestant; what goes wrong there ends the verification with the fitting status."""
        try:
            return self._require().ask(message, seconds=seconds)
        except (ContestantFailed, ContestantGone) as error:
            raise self._ended(error, failure) from None

    def _ended(self, error: ContestantFailed | ContestantGone, failure: Status) -> Ended:
        self._take_builds()
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

    def _take_builds(self) -> None:
        if self._contestant is not None:
            self._ledger.builds[:] = self._contestant.builds

    def _require(self) -> Contestant:
        assert self._contestant is not None
        return self._contestant
