"""The verification plan: what is asked of a candidate, in this order. The first stage that fails ends it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from kernelproof.types import Status
from kernelproof.verifier import status_rules as rules
from kernelproof.verifier.contestant.main import configure_torch
from kernelproof.verifier.referee import stages
from kernelproof.verifier.referee.session import Session
from kernelproof.verifier.status_rules import Cause, CheckKind


@dataclass(frozen=True)
class PlanStage:
    """One stage of the plan."""

    name: str
    """Under which the record keeps its seconds; stages of one name add up."""
    does: str
    """What it does, in a few words: for the documentation."""
    run: Callable[[Session], None]
    """Raises Ended when the candidate fails it."""
    checks: tuple[CheckKind, ...] = ()
    """What it asks, and records."""
    causes: tuple[Cause, ...] = ()
    """Why it may end a verification without a check."""
    wanted: Callable[[Session], bool] = stages.always
    holds: Callable[[Session], AbstractContextManager[None]] | None = None
    """A context that is held from this stage to the end of the plan. The stage's seconds exclude its wait."""
    announced: bool = True
    """Whether the progress of the verification names this stage when it begins."""

    @property
    def may_end(self) -> tuple[Status, ...]:
        """The statuses in which it may end a verification. Any stage may also find a crash, a timeout, no
        memory, or a fault of ours."""
        causes = [cause.status for cause in self.causes]
        return tuple(dict.fromkeys((*causes, *(status for each in self.checks for status in each.may_end))))


PLAN = (
    PlanStage(
        "reference",
        "runs the reference once, and lays out memory; the candidate is imported and constructed meanwhile",
        stages.reference,
    ),
    PlanStage("start", "waits for the candidate's process", stages.start),
    PlanStage(
        "load",
        "waits for `ModelNew`, and gives it the reference's weights",
        stages.load,
        (rules.WEIGHTS,),
        (Cause.RAISED_IN_LOAD,),
    ),
    PlanStage(
        "correctness",
        "drawn inputs, variants of them, results kept, state",
        stages.correctness,
        (
            *(rules.OUTPUT_FORM, rules.OUTPUT_STRIDES, rules.INPUTS_UNCHANGED, rules.VALUES, rules.REPEAT),
            *(rules.INPUTS_LATE, rules.OUTPUT_APART, rules.RESULT_KEPT, rules.STATE_UNCHANGED),
            *(rules.STATE_UPDATED, rules.PRECISION),
        ),
        (Cause.RAISED_IN_CALL, Cause.NOT_COMPILED),
    ),
    PlanStage(
        "kernels",
        "whose kernels ran in one call",
        stages.kernels,
        (rules.OWN_KERNEL, rules.OWN_COMPUTE),
        (Cause.NOT_COMPILED, Cause.RAISED_IN_CALL),
        announced=False,
    ),
    PlanStage(
        "settling",
        "waits until nothing else takes time",
        stages.settling,
        (rules.EXCLUSIVE,),  # recorded when the device is taken: a GPU before the first stage, by the verdict
        wanted=stages.measured,
        holds=stages.own_cores,
    ),
    PlanStage(
        "timing",
        "rounds of both sides, in one pair of processes or several",
        stages.pairs,
        (
            *(rules.TIMED_OUTPUTS, rules.TIMED_INPUTS, rules.RESULTS_LATE, rules.INSIDE_CLOCK),
            rules.HELD_STILL,
        ),
        (Cause.RAISED_IN_CALL,),
        stages.measured,
    ),
    PlanStage(
        "correctness",
        "variants that a slow candidate was spared, if it was not that slow",
        stages.put_off_variants,
        (rules.VALUES,),
        (Cause.RAISED_IN_CALL,),
        stages.not_far_slower,
        announced=False,
    ),
    PlanStage(
        "timing",
        "launch-bound calls as CUDA graphs",
        stages.replays,
        wanted=stages.worth_a_claim,
        announced=False,
    ),
    PlanStage(
        "kernels",
        "whose kernels ran, once more",
        stages.kernels_again,
        (rules.OWN_KERNEL.again(), rules.OWN_COMPUTE.again()),
        (Cause.RAISED_IN_CALL,),
        stages.worth_another_look,
        announced=False,
    ),
    PlanStage(
        "probes",
        "what the problem does not promise: flags",
        stages.probes,
        (rules.PROBES, rules.PROBE),
        announced=False,
    ),
    PlanStage(
        "timing",
        "the baseline alone, and the verdict on the times",
        stages.conclusion,
        (
            *(rules.HOST_CLOCK, rules.BEYOND_ROOFLINE, rules.BASELINE_ALONE, rules.UNDISTURBED),
            rules.RESOLVED,
        ),
        wanted=stages.measured,
        announced=False,
    ),
    PlanStage(
        "baselines",
        "further baselines, where they are asked for",
        stages.further_baselines,
        wanted=stages.measured,
        announced=False,
    ),
)


def run(session: Session) -> None:
    """All stages; returns when the candidate is correct, raises Ended otherwise."""
    configure_torch(session.settings.threads, tf32=session.settings.numerics == "tf32")
    with session.held:
        for stage in PLAN:
            if not stage.wanted(session):
                continue
            if stage.holds is not None:
                session.held.enter_context(stage.holds(session))
            with session.ledger.stage(stage.name):
                if stage.announced:
                    session.tools.progress(stage.name)
                stage.run(session)
