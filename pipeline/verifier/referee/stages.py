"""What each stage of the plan does with the session, in the plan's order.

`limit_calls` says how long a call may take: no longer than a person who has the reference would wait.
`check_held` asks whether a candidate did nothing while it was held between its turns.
"""

from __future__ import annotations

import re
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from functools import partial

import torch

from kernelproof.backends import backend
from kernelproof.pysource import compiles_itself
from kernelproof.types import Flag, VerifySettings
from kernelproof.verifier.contestant import loop
from kernelproof.verifier.contestant.encoding import tensors
from kernelproof.verifier.contestant.loop import outputs_of
from kernelproof.verifier.devices import locks
from kernelproof.verifier.referee import sides
from kernelproof.verifier.referee.checks.probes import Probes
from kernelproof.verifier.referee.checks.trials import Trials, first_trial
from kernelproof.verifier.referee.checks.weights import OtherWeights, State
from kernelproof.verifier.referee.correctness.oracle import Oracle
from kernelproof.verifier.referee.inputs.problem import LoadedProblem
from kernelproof.verifier.referee.inputs.variants import describe
from kernelproof.verifier.referee.ledger import Ledger
from kernelproof.verifier.referee.provenance.kernels import (
    ReferenceTrace,
    check_kernels,
    check_timed_kernels,
)
from kernelproof.verifier.referee.session import Session, alone
from kernelproof.verifier.referee.timing.measuring import Measuring
from kernelproof.verifier.referee.timing.timed_outputs import Subject
from kernelproof.verifier.sandbox import on_cores
from kernelproof.verifier.status_rules import HELD_STILL, Cause
from kernelproof.verifier.workers.client import Contestant
from kernelproof.verifier.workers.shared_memory import (
    free_bytes,
    lay_out,
    same_bits,
    share_weights,
    slot_bytes,
    slots_that_fit,
    spare_places,
)

LEAST_SECONDS, TIMES = {"cuda": 5.0, "cpu": 10.0}, 300.0
"""By kind of device. A call may take so long, or so many times as long as the reference's, if that is more: a
candidate that needs longer holds the device for something that nobody would use. Its first call may load
libraries, and compile (builds that we serve are not counted); a processor does that beside other work."""
BUILT_SECONDS = 3.0
"""On a GPU for a candidate whose source names nothing that compiles or tries out ways in its first call: that
loads libraries only, which the reference has just had read from the disk."""
_BUSY_AT_FIRST = re.compile(
    r"torch\s*\.\s*(?:compile|jit)|inductor|dynamo|benchmark|tun(?:e|ing)|warm|event|elapsed|chrono|perf_counter",
    re.IGNORECASE,
)


def limit_calls(
    settings: VerifySettings,
    loaded: LoadedProblem,
    model: torch.nn.Module,
    seed: int,
    device: torch.device,
    source: str,
) -> VerifySettings:
    """The settings with `call_seconds` as this reference and the candidate's `source` make sense of, at most
    as they say.

    Where kernels are interpreted they stay as they are: that takes thousands of times as long.

    The reference is called once more on the inputs of `seed`: its first call may have loaded libraries.
    """
    if device.type == "cpu" and backend(settings.backend).on_gpu:  # interpreted
        return settings
    arguments = loaded.draw(seed, device)
    sides.settled(device)
    began = time.monotonic()
    loaded.tried(model, arguments, 0)
    sides.settled(device)
    most = max(least_seconds(device.type, source), TIMES * (time.monotonic() - began))
    return settings.model_copy(update={"call_seconds": min(settings.call_seconds, most)})


def least_seconds(device: str, source: str) -> float:
    """What a call of this candidate may take in any case, on this kind of device."""
    at_first = compiles_itself(source) or _BUSY_AT_FIRST.search(source) is not None
    return LEAST_SECONDS[device] if at_first or device != "cuda" else BUILT_SECONDS


def check_held(contestant: Contestant, ledger: Ledger, pair: int = 0) -> None:
    """Judges all holds of one candidate's process so far. `pair`: the number of its pair, from 0.

    Raises Ended when it worked while it was held. For that something outside of its processes must let them
    go on, such as a timer of the kernel's: a process that is held does nothing by itself. Time that may have
    been booked late accuses nobody; the rounds count it as the candidate's.
    """
    held = contestant.held_still()
    check = HELD_STILL if pair == 0 else HELD_STILL.of(f"pair {pair + 1}")
    figures = asdict(held) | {"allowed_ms": held.allowed_ms}
    if held.holds == 0:
        ledger.skipped(check, "it was not held", figures)
    elif held.woken or held.certain_ms > held.allowed_ms:
        seen = f"it used {held.ran_ms:.3g} ms of processor time in {held.holds} holds"
        seen += f", and had gone on before {held.woken} of them ended" if held.woken else ""
        raise ledger.failed(check, seen, figures)
    else:
        seen = f"it ran for {held.ran_ms:.3g} ms in {held.holds} holds"
        if held.watched:
            seen += f", some of which were made longer: {held.certain_ms:.3g} ms of it were certainly work"
        ledger.passed(check, seen, figures)


UNTIMED_SLOTS = 2
"""Slots of a verification without timing: a result, and another that must leave it alone."""
WORK_SLOTS = 8
"""What the trials need beside the slots, in slots: inputs, variants of them and the truth in float64."""


def always(_: Session) -> bool:
    """In every verification."""
    return True


def measured(session: Session) -> bool:
    """Where times are asked for."""
    return session.settings.measure


def not_far_slower(session: Session) -> bool:
    """Where the times that were measured do not show the candidate far slower than the baseline."""
    return measured(session) and not session.measuring.far_slower()


def worth_a_claim(session: Session) -> bool:
    """Where the times that were measured could make a claim."""
    return not_far_slower(session) and not session.measuring.below_bar()


def worth_another_look(session: Session) -> bool:
    """Where, besides, it matters whose kernels ran."""
    return worth_a_claim(session) and session.settings.kernels_matter


def reference(session: Session) -> None:
    """The reference at work once. Raises Ended for a problem that cannot be judged."""
    settings, cleanup = session.settings, session.tools.warm.cleanup
    session.loaded = LoadedProblem(session.request.problem, settings.size)
    if cleanup.nbytes > free_bytes(session.device):  # what the verification before gives back is needed
        cleanup.wait()
    session.start_candidate()
    session.tools.warm.prepare(settings, session.device, lambda: session.candidate.is_up())
    if measured(session):  # the baseline's process comes up too: one that is not used is left for the next
        gpus = sides.gpus(session.device)
        session.tools.warm.pool.refill(gpus, settings.memory_bytes, unsafe=settings.unsafe, count=1)
    with session.baseline_meanwhile() if measured(session) else nullcontext():
        session.model = session.loaded.construct(session.weights_seed, session.device)
    _lay_out(session)
    state = session.model.state_dict()
    session.weights = share_weights(session.memory, state, "weights")
    session.pristine = share_weights(session.memory, state, "baseline_weights")


def _lay_out(session: Session) -> None:
    """Slots for the reference's inputs and outputs; the form of its result, and whether that lies in them."""
    ledger, device, cleanup = session.ledger, session.device, session.tools.warm.cleanup
    arguments = session.loaded.draw(ledger.seed("layout"), device)
    sample = session.loaded.tried(session.model, arguments, 0)
    ledger.inputs = describe(arguments)
    outputs, session.form = outputs_of(sample, device), loop.describe(sample)
    places = {t.untyped_storage().data_ptr() for t in outputs}
    session.aliased = frozenset(
        number for number, t in enumerate(tensors(arguments)) if t.untyped_storage().data_ptr() in places
    )
    bytes_each = slot_bytes(arguments, outputs)
    coming, free = cleanup.nbytes, free_bytes(device)
    count = slots_that_fit(bytes_each, device, free + coming)
    if (count + WORK_SLOTS) * bytes_each > free:  # what is not free yet is needed
        cleanup.wait()
        count = slots_that_fit(bytes_each, device, free_bytes(device))
    del sample
    count = count if measured(session) else min(count, UNTIMED_SLOTS)
    spare = spare_places(count, bytes_each, outputs) if measured(session) and not session.on_gpu else 0
    laid = lay_out(session.memory, arguments, outputs, count, spare=spare)
    session.slots, session.spare = laid[:count], laid[count:]
    del outputs
    if not same_bits(arguments, session.loaded.draw(ledger.seeds["layout"], device)):
        why = "its forward changes its inputs, or get_inputs depends on more than the seed"
        raise Cause.PROBLEM_FAILED.ended(f"the problem cannot be judged: {why}")


def start(session: Session) -> None:
    """Waits for the candidate's process. Raises Ended when it does not come up."""
    session.candidate.wait_started()


def load(session: Session) -> None:
    """Waits for ModelNew, whose weights start where the reference's do. Raises Ended."""
    session.candidate.load(session.weights, session.pristine)


def correctness(session: Session) -> None:
    """All trials, and the state that they leave. Raises Ended for the first that fails."""
    ledger, settings, device = session.ledger, session.settings, session.device
    session.oracle = Oracle(session.loaded, session.model, session.form, device, settings.numerics)
    layout, source = ledger.seeds["layout"], session.request.source
    limited = limit_calls(settings, session.loaded, session.model, layout, device, source)
    session.longest_call = limited.call_seconds
    session.trials = Trials(session.oracle, session.slots, session.form, limited, device, ledger, session.ask)
    session.kept_weights = first_trial(
        session.trials,
        ledger,
        lambda: session.candidate.differed,
        session.construct_afresh,
        None if session.request.long_first_call else session.construct_after_late_call,
    )
    if measured(session):  # it loads while the candidate is tried further, if it has not begun before
        session.start_baseline()
    session.trials.run(aliased=session.aliased)
    state = State(session.oracle, session.weights, session.pristine, settings, ledger)
    state.check_unchanged(session.candidate)
    state.check_updated(session.candidate, session.slots[0], device)
    session.candidate.take_builds()
    if session.request.interpreted:
        ledger.flags.add(Flag.INTERPRETED)


def kernels(session: Session) -> None:
    """Whose kernels run. A candidate without any of its own is not timed. Raises Ended."""
    session.tools.warm.pool.nearly_enough()
    baseline = (lambda: session.baseline) if measured(session) and session.on_gpu else None
    session.traced = ReferenceTrace(
        session.loaded, session.model, session.settings, baseline, session.waiting
    )
    _look_at_kernels(session, timed_next=measured(session))
    session.candidate.take_builds()
    failure = session.ledger.build_failure()
    if failure is not None and not session.has_other_kernels:
        raise failure
    session.probes = Probes(
        session.oracle,
        session.memory,
        session.request,
        session.device,
        session.ledger,
        session.slots[0],
        session.form,
        OtherWeights(session.model, session.loaded.drawn_constants, session.weights, session.pristine),
    )


def put_off_variants(session: Session) -> None:
    """The trials that a candidate was spared because it seemed far slower. Raises Ended."""
    session.trials.finish()


def kernels_again(session: Session) -> None:
    """A candidate may compute itself until it is timed. So one more block was made, in which it was watched.
    Raises Ended."""
    looks = session.measuring.timed.looks
    if not looks:  # in the pairs that were measured it seemed far slower, but all in all it is not
        _look_at_kernels(session, timed_next=False)
    settings, source = session.settings, session.request.source
    check_timed_kernels(looks, session.traced.works, session.ledger, settings, source)


def _look_at_kernels(session: Session, *, timed_next: bool) -> None:
    check_kernels(
        session.candidate.ask,
        session.slots[0],
        session.loaded.draw,
        session.ledger,
        session.settings,
        session.device,
        session.request.source,
        session.traced.begin,
        again=session.ledger.kernels is not None,
        timed_next=timed_next,
    )


def own_cores(session: Session) -> AbstractContextManager[None]:
    """The cores of a measurement: beside a GPU some that are kept for it, on a CPU all of them."""
    if session.on_gpu:
        return on_cores(session.tools.warm.pool.shares.referee)
    return alone(locks.CPU, session.ledger, session.tools)


def settling(session: Session) -> None:
    """Waits until both sides are up, and nothing else is. Raises Ended when the baseline's process failed."""
    warm = session.tools.warm
    session.ready.result()
    warm.settle()
    subject = Subject(
        session.oracle,
        session.slots,
        session.settings,
        session.device,
        partial(next, session.ledger.seeds_of("timed")),
        session.trials.reference_error,
        session.aliased,
        session.trials.passed_variants,
        session.spare,
    )
    session.measuring = Measuring(
        subject,
        ledger=session.ledger,
        memory=session.memory,
        pristine=session.pristine,
        weights_seed=session.weights_seed,
        cache=session.tools.cache,
        toolchain=session.tools.toolchain,
        pool=warm.pool,
        longest_call=session.longest_call,
    )


def pairs(session: Session) -> None:
    """Pairs of processes are measured, as many as the rigor or a close call wants. Raises Ended."""
    _pair(session)
    while session.measuring.wants_pair(session.pairs):
        session.candidate.close()
        session.measuring.alone(session.pairs - 1)
        session.restart()
        _pair(session)
    session.candidate.contestant.resume()


def _pair(session: Session) -> None:
    """Measures the next pair, and judges whether the candidate waited its turns."""
    if not session.measuring.pair(session.candidate, session.baseline, session.pairs):
        session.restart()  # the machine may have stood still: fresh processes have to show it too
        session.measuring.pair(session.candidate, session.baseline, session.pairs)
    check_held(session.candidate.contestant, session.ledger, session.pairs)
    session.pairs += 1


def replays(session: Session) -> None:
    """Times of launch-bound calls without their launches."""
    session.measuring.replays(session.candidate, session.baseline)


def probes(session: Session) -> None:
    """Sets flags; ends nothing."""
    if measured(session) and session.measuring.far_slower():
        session.probes.left_out("it is far slower than the baseline")
    elif measured(session) and session.measuring.below_bar():
        session.probes.left_out("it is slower than the best of its search")
    elif session.request.interpreted:
        session.probes.left_out("its kernels are interpreted, which takes long")
    else:
        session.probes.run(session.candidate)


def conclusion(session: Session) -> None:
    """The candidate's process ends, the baseline is measured alone, and the times are judged.

    Raises Ended for a false claim.
    """
    measuring = session.measuring
    session.candidate.close()
    measuring.alone(session.pairs - 1)
    if measuring.much_slowed():  # or the machine itself changed: another pair has to show it too
        session.restart()
        _pair(session)
        session.candidate.close()
        measuring.alone(session.pairs - 1)
    measuring.conclude(session.baseline)
    session.is_concluded = True


def further_baselines(session: Session) -> None:
    """Measures the other baselines that were asked for."""
    session.measuring.further_baselines(session.baseline, session.tools.progress)
