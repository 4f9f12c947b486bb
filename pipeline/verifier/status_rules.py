"""Where a status is chosen, for every candidate that extraction found.

The stages of a verification report facts: a check that failed, or a `Cause`. The tables of both give each its
status; nothing else in the verifier does. The facts come in this order, and the first ends it:

1. The review of the source: the first finding that is an error (`ended_by_review`).
2. The build stage: a kernel that its compiler refused, then extensions that failed (`deciding_builds`), then
   a machine without a device to run on (`cause_without_device`).
3. The referee: the first check of the plan (`pipeline/verifier/referee/plan.py`) that fails, or the first
   request that the candidate's process does not answer (`cause_of_exception`, `cause_of_process_end`).
   Then three facts may take the place of that one (`pipeline/verifier/referee/verdict.py`): the candidate
   kept the GPU's memory (`Session.blamed`), none of its extensions was built (`build_failure_override`), the
   machine stood still.
4. The engine (`pipeline/verifier/engine/engine.py`): a referee that is lost `MAX_TRIES` times, or `MAX_GPUS`
   GPUs that fail their canary after it.

A candidate with none of these is `correct`. What a stage reports depends on the candidate; which status
follows does not. A fault of ours is `infrastructure_error`, never a status that counts against the candidate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from kernelproof.choices import Flag
from kernelproof.pysource import compiles_itself
from kernelproof.types import Build, BuildState, Finding, Kernels, Origin, Severity
from kernelproof.types.status import Status


class Cause(Enum):
    """A fact that ends a verification without a check, with its status and why it is that one."""

    NOTHING_FAILED = Status.CORRECT, "Every check of the plan passed."

    # The review of the source
    NOT_PYTHON = Status.SYNTAX_ERROR, "Python cannot parse it."
    BREAKS_CONTRACT = (
        Status.CONTRACT_ERROR,
        "It parses, and ModelNew is missing or cannot stand in for Model.",
    )

    # Builds
    NOT_COMPILED = (
        Status.BUILD_ERROR,
        "A compiler or linker refused an extension, or a kernel at its first call.",
    )
    BUILD_TOO_LONG = Status.BUILD_TIMEOUT, "A compiler needed more time or memory than the limits."
    NO_COMPILER = Status.INFRASTRUCTURE_ERROR, "This machine lacks a compiler that the request needs."
    BUILD_LOST = (
        Status.INFRASTRUCTURE_ERROR,
        "A compiler was lost to our side: a full disk, a killed sandbox.",
    )
    NO_DEVICE = Status.BUILT_NOT_RUN, "It was built, or builds nothing; there is no device to run it on."
    NO_DEVICE_NOT_LOADED = Status.LOAD_ERROR, "No device, and its import failed before it built anything."
    NOT_INTERPRETABLE = (
        Status.BUILT_NOT_RUN,
        "No GPU, and the interpreter in its place cannot run a kernel of it.",
    )

    # The candidate's process
    RAISED_IN_LOAD = Status.LOAD_ERROR, "Its import or ModelNew's constructor raised an exception."
    RAISED_IN_CALL = Status.RUNTIME_ERROR, "A call of forward raised an exception."
    RAISED_IN_RUNNER = (
        Status.CRASH,
        "The runner around it raised where no code of the candidate's should run.",
    )
    RAISED_NO_MEMORY = Status.OUT_OF_MEMORY, "It raised an exception that says that memory ran out."
    ABOVE_MEMORY = Status.OUT_OF_MEMORY, "Its processes were ended at the memory limit."
    KEEPS_GPU_MEMORY = Status.OUT_OF_MEMORY, "Our side failed because the candidate keeps the GPU's memory."
    NO_ANSWER = Status.TIMEOUT, "It did not answer within the time of one request."
    TIMING_TOO_LONG = (
        Status.TIMEOUT,
        "Its timing was not over in time, twice, and our side was well without it.",
    )
    ABOVE_TIME = Status.TIMEOUT, "Its processes were ended at a limit of wall or processor time."
    DIED = Status.CRASH, "Its process ended by itself, or broke the protocol."
    KILLED_FROM_OUTSIDE = (
        Status.INFRASTRUCTURE_ERROR,
        "Its process was ended by something else than the candidate.",
    )

    # Our side
    PROBLEM_FAILED = Status.INFRASTRUCTURE_ERROR, "The problem's own code raised, or cannot be judged."
    NOT_STARTED = Status.INFRASTRUCTURE_ERROR, "A process failed before it had any code of a candidate."
    BASELINE_FAILED = Status.INFRASTRUCTURE_ERROR, "The baseline's process failed."
    REFEREE_FAILED = Status.INFRASTRUCTURE_ERROR, "The referee ran out of memory, or has a bug."
    REFEREE_LOST = Status.INFRASTRUCTURE_ERROR, "Referees were lost, as often as one is tried."
    GPUS_LOST = Status.INFRASTRUCTURE_ERROR, "Several GPUs failed their canary after it."
    STOOD_STILL = Status.INFRASTRUCTURE_ERROR, "It timed out, and the machine was as slow without it."

    def __init__(self, status: Status, why: str) -> None:
        self.status, self.why = status, why

    def ended(self, reason: str, details: str = "") -> Ended:
        """The exception that ends a verification for this cause."""
        return Ended(self.status, reason, details)


class Ended(Exception):
    """The verification is over: with this status, for this reason. A Cause or a failed check makes it."""

    def __init__(self, status: Status, reason: str, details: str = "") -> None:
        super().__init__(reason)
        self.status, self.reason, self.details = status, reason, details


@dataclass(frozen=True)
class CheckKind:
    """One check that a verification may record, whatever came of it. Names are stored, so they stay."""

    name: str
    question: str
    ends: Status | None = None
    """The status in which a verification ends that fails it; None: it goes on."""
    ends_for: Mapping[str, Status] = field(default_factory=dict, hash=False)
    """The statuses for facts, by their names, that end it in another one."""
    flags: tuple[Flag, ...] = ()
    """The flags that a candidate gets which fails it."""

    @property
    def may_end(self) -> tuple[Status, ...]:
        """All statuses in which it may end a verification."""
        return tuple(dict.fromkeys((*([self.ends] if self.ends else []), *self.ends_for.values())))

    def failed(self, seen: str, fact: str = "") -> Ended:
        """The exception that ends a verification which fails it. `fact`: of `ends_for`, or any other.

        Raises ValueError for a check that ends nothing.
        """
        status = self.ends_for.get(fact, self.ends)
        if status is None:
            raise ValueError(f"{self.name} ends no verification")
        return Ended(status, f"{self.name}: {seen}")

    def of(self, detail: str, question: str = "") -> CheckKind:
        """The same, asked once more of something: a variant of the inputs, another pair of processes."""
        return replace(self, name=f"{self.name}: {detail}", question=question or self.question)

    def again(self) -> CheckKind:
        """The same, asked a second time."""
        return replace(self, name=f"{self.name} again")


# The checks, in the order of the plan, which says in which stage each is asked.

WEIGHTS = CheckKind("weights", "Do the candidate's parameters start where the reference's do?")
EXCLUSIVE = CheckKind("exclusive", "Is the device used by this verification alone?")
OUTPUT_FORM = CheckKind(
    "output_form",
    "Have the outputs the structure, type, shape, dtype and device of the reference's?",
    Status.WRONG_SHAPE,
    {
        **dict.fromkeys(("type", "dtype", "device"), Status.WRONG_DTYPE),
        "value": Status.WRONG_OUTPUT,  # of a leaf that is no tensor
    },
)
OUTPUT_STRIDES = CheckKind("output_strides", "Have the outputs the reference's strides?")
VALUES = CheckKind(
    "values", "Do the outputs agree with the reference within the tolerance?", Status.WRONG_OUTPUT
)
PRECISION = CheckKind(
    "precision",
    "Is the error too small to come from coarse operands?",
    flags=(Flag.PRECISION_NOT_SEPARABLE,),
)
REPEAT = CheckKind(
    "values: repeat", "Does the same call give the same result again?", Status.NONDETERMINISTIC
)
INPUTS_UNCHANGED = CheckKind(
    "inputs_unchanged", "Are the inputs unchanged, bit by bit?", Status.MUTATED_INPUT
)
INPUTS_LATE = CheckKind(
    "inputs_late",
    "Does the call come after the work on its stream that writes its inputs?",
    Status.WRONG_OUTPUT,
)
OUTPUT_APART = CheckKind("output_apart", "Do results lie apart from the inputs?", Status.WRONG_OUTPUT)
RESULT_KEPT = CheckKind(
    "result_kept", "Does a later call leave an earlier result alone?", Status.WRONG_OUTPUT
)
STATE_UNCHANGED = CheckKind("state_unchanged", "Are parameters and buffers unchanged?", Status.MUTATED_INPUT)
STATE_UPDATED = CheckKind(
    "state_updated",
    "Does one call update the state as it does the reference's?",
    flags=(Flag.STATE_NOT_UPDATED,),
)
OWN_KERNEL = CheckKind(
    "own_kernel", "Did a kernel of the candidate's own do the work?", Status.NO_CUSTOM_KERNEL
)
OWN_COMPUTE = CheckKind(
    "own_compute", "Are all compute operators the candidate's own?", Status.NO_CUSTOM_KERNEL
)
TIMED_OUTPUTS = CheckKind("timed_outputs", "Are the outputs of timed calls right?", Status.WRONG_OUTPUT)
TIMED_INPUTS = CheckKind("timed_inputs", "Are the inputs of timed calls unchanged?", Status.MUTATED_INPUT)
RESULTS_LATE = CheckKind(
    "results_late", "Were the results of timed calls there when it said so?", Status.CHEATING
)
INSIDE_CLOCK = CheckKind("inside_clock", "Are the times of the contestant's clock possible?", Status.CHEATING)
HOST_CLOCK = CheckKind(
    "host_clock", "Does the referee's own clock agree with the contestant's?", Status.CHEATING
)
HELD_STILL = CheckKind("held_still", "Was it still while it was held between its turns?", Status.CHEATING)
BEYOND_ROOFLINE = CheckKind(
    "beyond_roofline", "Is the claim within what moving the data takes at least?", Status.CHEATING
)
BASELINE_ALONE = CheckKind("baseline_alone", "Is the baseline as fast beside the candidate as alone?")
UNDISTURBED = CheckKind("undisturbed", "Was the device left alone while blocks were timed?")
RESOLVED = CheckKind("resolved", "Was the speedup of this screening resolved as far as its rigor asks?")
PROBES = CheckKind("probes", "Is it right where the problem does not say?")
PROBE = CheckKind(
    "probe",
    "Is it right for something else too?",
    flags=(
        *(Flag.SHAPE_SPECIALISED, Flag.LAYOUT_SPECIALISED, Flag.WEIGHTS_SPECIALISED),
        *(Flag.OUT_OF_BOUNDS_READ, Flag.OUT_OF_BOUNDS_WRITE),
    ),
)


BUILD_CAUSES = {
    BuildState.ERROR: Cause.NOT_COMPILED,
    BuildState.TIMEOUT: Cause.BUILD_TOO_LONG,
    BuildState.UNAVAILABLE: Cause.NO_COMPILER,
    BuildState.INFRASTRUCTURE: Cause.BUILD_LOST,
}


def ended_by_review(findings: Sequence[Finding]) -> Ended | None:
    """How the review ends a candidate before it is built: by its first error; None without one."""
    errors = (f for f in findings if f.severity is Severity.ERROR)
    return next((Ended(f.status, f.message) for f in errors if f.status is not None), None)


def deciding_builds(builds: Sequence[Build], raised: str, *, has_others: bool = False) -> list[Build]:
    """The failed builds that end the candidate, the first of which says the cause.

    All of them, where none worked. Otherwise, or where it has native code of another kind (`has_others`),
    those of which the message that it `raised` speaks: a candidate that caught a failure is judged by what it
    does then.
    """
    failed = [build for build in builds if build.state is not BuildState.OK]
    if len(failed) < len(builds) or has_others:
        return [build for build in failed if f"Error building extension '{build.name}'" in raised]
    return failed


def cause_without_device(builds: Sequence[Build], trouble: str) -> Cause:
    """Of a candidate whose builds did not fail, on a machine that cannot run it. `trouble`: why its import
    ended early, or empty."""
    return Cause.NO_DEVICE if builds or not trouble else Cause.NO_DEVICE_NOT_LOADED


def cause_of_exception(kind: str, during: Cause, *, interpreted: bool) -> Cause:
    """Of an exception in the candidate's process. `kind`: what the runner calls it; `during`: the cause where
    it is of no special kind; `interpreted`: whether its kernels are, for want of a GPU."""
    if kind == "oom":
        return Cause.RAISED_NO_MEMORY
    if kind == "uninterpretable" and interpreted:
        return Cause.NOT_INTERPRETABLE
    return Cause.NOT_COMPILED if kind == "compile" else during


def cause_of_process_end(state: str, *, is_ours: bool, timed_out: bool) -> Cause:
    """Of a process that is gone. `state`: of the sandbox's `Outcome`; `is_ours`: it was ended by something
    else than the candidate; `timed_out`: we ended it, after it did not answer."""
    if state == "memory":
        return Cause.ABOVE_MEMORY
    if is_ours:
        return Cause.KILLED_FROM_OUTSIDE
    if timed_out:
        return Cause.NO_ANSWER
    return Cause.ABOVE_TIME if state in ("timeout", "cpu") else Cause.DIED


NEVER_CALLED = (
    *(Status.SYNTAX_ERROR, Status.CONTRACT_ERROR, Status.BUILD_ERROR, Status.BUILD_TIMEOUT),
    *(Status.BUILT_NOT_RUN, Status.LOAD_ERROR, Status.INFRASTRUCTURE_ERROR),
)
"""The statuses that a candidate ends with before any call of it."""

OVERRIDDEN = (
    *(Status.CORRECT, Status.NO_CUSTOM_KERNEL, Status.LOAD_ERROR, Status.RUNTIME_ERROR),
    *(Status.WRONG_SHAPE, Status.WRONG_DTYPE, Status.WRONG_OUTPUT),
    *(Status.MUTATED_INPUT, Status.NONDETERMINISTIC),
)
"""The statuses that a candidate without its extension may end with."""


def build_failure_override(verdict: Ended, failure: Ended | None, *, has_others: bool) -> Ended:
    """The build failure, where none of the candidate's builds worked and it has no other native code. So the
    status is the same for every program that then computes in another way, rightly or wrongly."""
    return failure if failure and verdict.status in OVERRIDDEN and not has_others else verdict


def has_other_kernels(source: str, device: str, kernels: Kernels | None) -> bool:
    """Whether it has native code of its own without torch's extensions. A CPU does not tell such code.
    `kernels`: those seen so far; None before any were."""
    if not compiles_itself(source) or kernels is None or device == "cpu":
        return compiles_itself(source)
    return any(launch.origin is Origin.JIT for launch in kernels.launches)
