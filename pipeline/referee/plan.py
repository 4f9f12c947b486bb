"""The verification plan: what is asked of a candidate, in this order. The first stage that fails ends it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from kernelproof.contestant.main import configure_torch
from kernelproof.referee import stages
from kernelproof.referee.session import Session
from kernelproof.types import Status


@dataclass(frozen=True)
class PlanStage:
    """One stage of the plan."""

    name: str
    """Under which the record keeps its seconds; stages of one name add up."""
    does: str
    """What it does, in a few words: for the documentation."""
    run: Callable[[Session], None]
    """Raises Ended when the candidate fails it."""
    may_end: tuple[Status, ...] = ()
    """The statuses in which it may end a verification. Any stage may also find a crash, a timeout, no memory,
    or a fault of ours."""
    wanted: Callable[[Session], bool] = stages.always
    holds: Callable[[Session], AbstractContextManager[None]] | None = None
    """A context that is held from this stage to the end of the plan. The stage's seconds exclude its wait."""
    told: bool = True
    """Whether the progress of the verification names this stage when it begins."""


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
        (Status.LOAD_ERROR,),
    ),
    PlanStage(
        "correctness",
        "drawn inputs, variants of them, results kept, state",
        stages.correctness,
        (
            *(Status.RUNTIME_ERROR, Status.WRONG_SHAPE, Status.WRONG_DTYPE, Status.WRONG_OUTPUT),
            *(Status.MUTATED_INPUT, Status.NONDETERMINISTIC, Status.BUILD_ERROR),
        ),
    ),
    PlanStage(
        "kernels",
        "whose kernels ran in one call",
        stages.kernels,
        (Status.NO_CUSTOM_KERNEL, Status.BUILD_ERROR, Status.RUNTIME_ERROR),
        told=False,
    ),
    PlanStage(
        "settling",
        "waits until nothing else takes time",
        stages.settling,
        wanted=stages.measured,
        holds=stages.own_cores,
    ),
    PlanStage(
        "timing",
        "rounds of both sides, in one pair of processes or several",
        stages.pairs,
        (Status.WRONG_OUTPUT, Status.MUTATED_INPUT, Status.CHEATING, Status.RUNTIME_ERROR),
        stages.measured,
    ),
    PlanStage(
        "timing", "launch-bound calls as CUDA graphs", stages.replays, wanted=stages.worth_a_claim, told=False
    ),
    PlanStage(
        "kernels",
        "whose kernels ran, once more",
        stages.kernels_again,
        (Status.NO_CUSTOM_KERNEL, Status.RUNTIME_ERROR),
        stages.worth_another_look,
        told=False,
    ),
    PlanStage("probes", "what the problem does not promise: flags", stages.probes, told=False),
    PlanStage(
        "timing",
        "the baseline alone, and the verdict on the times",
        stages.conclusion,
        (Status.CHEATING,),
        stages.measured,
        told=False,
    ),
    PlanStage(
        "baselines",
        "further baselines, where they are asked for",
        stages.further_baselines,
        wanted=stages.measured,
        told=False,
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
                if stage.told:
                    session.tools.progress(stage.name)
                stage.run(session)
