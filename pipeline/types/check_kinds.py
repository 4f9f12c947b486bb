"""The checks that a verification may record: what each asks, and the statuses in which it may end one.

The plan (`pipeline/verifier/referee/plan.py`) says in which stage each is asked; the pages of checks and of
the plan are made from both. Names are stored, so they stay.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kernelproof.choices import Flag
from kernelproof.types.status import Status


@dataclass(frozen=True)
class CheckKind:
    """One check, whatever came of it."""

    name: str
    question: str
    may_end: tuple[Status, ...] = ()
    """The statuses in which a verification ends that fails it; empty: it goes on."""
    flags: tuple[Flag, ...] = ()
    """The flags that a candidate gets which fails it."""

    def of(self, detail: str, question: str = "") -> CheckKind:
        """The same, asked once more of something: a variant of the inputs, another pair of processes."""
        return replace(self, name=f"{self.name}: {detail}", question=question or self.question)

    def again(self) -> CheckKind:
        """The same, asked a second time."""
        return replace(self, name=f"{self.name} again")


WEIGHTS = CheckKind("weights", "Do the candidate's parameters start where the reference's do?")
EXCLUSIVE = CheckKind("exclusive", "Is the device used by this verification alone?")
OUTPUT_FORM = CheckKind(
    "output_form",
    "Have the outputs the structure, type, shape, dtype and device of the reference's?",
    (Status.WRONG_SHAPE, Status.WRONG_DTYPE, Status.WRONG_OUTPUT),
)
OUTPUT_STRIDES = CheckKind("output_strides", "Have the outputs the reference's strides?")
VALUES = CheckKind(
    "values", "Do the outputs agree with the reference within the tolerance?", (Status.WRONG_OUTPUT,)
)
REPEAT = CheckKind(
    "values: repeat", "Does the same call give the same result again?", (Status.NONDETERMINISTIC,)
)
INPUTS_UNCHANGED = CheckKind(
    "inputs_unchanged", "Are the inputs unchanged, bit by bit?", (Status.MUTATED_INPUT,)
)
INPUTS_LATE = CheckKind(
    "inputs_late",
    "Does the call come after the work on its stream that writes its inputs?",
    (Status.WRONG_OUTPUT,),
)
OUTPUT_APART = CheckKind("output_apart", "Do results lie apart from the inputs?", (Status.WRONG_OUTPUT,))
RESULT_KEPT = CheckKind(
    "result_kept", "Does a later call leave an earlier result alone?", (Status.WRONG_OUTPUT,)
)
STATE_UNCHANGED = CheckKind(
    "state_unchanged", "Are parameters and buffers unchanged?", (Status.MUTATED_INPUT,)
)
STATE_UPDATED = CheckKind(
    "state_updated",
    "Does one call update the state as it does the reference's?",
    flags=(Flag.STATE_NOT_UPDATED,),
)
OWN_KERNEL = CheckKind(
    "own_kernel", "Did a kernel of the candidate's own do the work?", (Status.NO_CUSTOM_KERNEL,)
)
OWN_COMPUTE = CheckKind(
    "own_compute", "Are all compute operators the candidate's own?", (Status.NO_CUSTOM_KERNEL,)
)
TIMED_OUTPUTS = CheckKind("timed_outputs", "Are the outputs of timed calls right?", (Status.WRONG_OUTPUT,))
TIMED_INPUTS = CheckKind("timed_inputs", "Are the inputs of timed calls unchanged?", (Status.MUTATED_INPUT,))
RESULTS_LATE = CheckKind(
    "results_late", "Were the results of timed calls there when it said so?", (Status.CHEATING,)
)
CACHE_EMPTIED = CheckKind(
    "cache_emptied",
    "Was the cache emptied before every timed call?",
    (Status.CHEATING, Status.RUNTIME_ERROR),
)
INSIDE_CLOCK = CheckKind(
    "inside_clock", "Are the times of the contestant's clock possible?", (Status.CHEATING,)
)
HOST_CLOCK = CheckKind(
    "host_clock", "Does the referee's own clock agree with the contestant's?", (Status.CHEATING,)
)
HELD_STILL = CheckKind("held_still", "Was it still while it was held between its turns?", (Status.CHEATING,))
BEYOND_ROOFLINE = CheckKind(
    "beyond_roofline", "Is the claim within what moving the data takes at least?", (Status.CHEATING,)
)
BASELINE_ALONE = CheckKind("baseline_alone", "Is the baseline as fast beside the candidate as alone?")
UNDISTURBED = CheckKind("undisturbed", "Was the device left alone while blocks were timed?")
RESOLVED = CheckKind("resolved", "Was the speedup of this screening resolved as far as its rigor asks?")
PROBES = CheckKind("probes", "Is it right where the problem does not say?")
PROBE = CheckKind(
    "probe",
    "Is it right for something else too?",
    flags=(Flag.SHAPE_SPECIALISED, Flag.LAYOUT_SPECIALISED, Flag.WEIGHTS_SPECIALISED),
)
