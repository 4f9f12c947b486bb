"""How an attempt ended: one closed vocabulary for the database, the screens and the exports."""

from __future__ import annotations

from enum import StrEnum


class Stage(StrEnum):
    """The stage of the data flow at which an attempt ended."""

    PROVIDER = "provider"
    EXTRACTION = "extraction"
    POLICY = "policy"
    BUILD = "build"
    CORRECTNESS = "correctness"
    TIMING = "timing"
    DONE = "done"


class Status(StrEnum):
    """How an attempt ended. Exactly one applies; the first stage that fails decides."""

    PROVIDER_ERROR = "provider_error"
    PLANS = "plans"
    REFUSED = "refused"
    FILTERED = "filtered"
    TRUNCATED = "truncated"
    EMPTY = "empty"
    NO_CODE = "no_code"
    SYNTAX_ERROR = "syntax_error"
    CONTRACT_ERROR = "contract_error"
    POLICY_VIOLATION = "policy_violation"
    BUILD_ERROR = "build_error"
    BUILD_TIMEOUT = "build_timeout"
    BUILT_NOT_RUN = "built_not_run"
    LOAD_ERROR = "load_error"
    RUNTIME_ERROR = "runtime_error"
    CRASH = "crash"
    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out_of_memory"
    WRONG_SHAPE = "wrong_shape"
    WRONG_DTYPE = "wrong_dtype"
    WRONG_OUTPUT = "wrong_output"
    MUTATED_INPUT = "mutated_input"
    NONDETERMINISTIC = "nondeterministic"
    CHEATING = "cheating"
    NO_CUSTOM_KERNEL = "no_custom_kernel"
    INFRASTRUCTURE_ERROR = "infrastructure_error"
    CORRECT = "correct"

    @property
    def stage(self) -> Stage:
        """Where in the data flow this status arises."""
        return _STAGE[self]

    @property
    def counts_against_model(self) -> bool:
        """False for what the model cannot help (our machine's failures and its server's), and for plans."""
        return self not in _NOT_COUNTED

    @property
    def is_built(self) -> bool:
        """Whether the program was built, or needed no build."""
        before = (Stage.PROVIDER, Stage.EXTRACTION, Stage.POLICY, Stage.BUILD)
        late = self.stage not in before and self is not Status.INFRASTRUCTURE_ERROR
        return late or self is Status.BUILT_NOT_RUN

    @property
    def meaning(self) -> str:
        """One sentence for `show`, the documentation and the repair prompt."""
        return _MEANING[self]


_NOT_COUNTED = frozenset(
    {Status.PROVIDER_ERROR, Status.PLANS, Status.INFRASTRUCTURE_ERROR, Status.BUILT_NOT_RUN}
)

_BY_STAGE: dict[Stage, tuple[str, ...]] = {
    Stage.PROVIDER: ("provider_error",),
    Stage.EXTRACTION: ("plans", "refused", "filtered", "truncated", "empty", "no_code"),
    Stage.POLICY: ("syntax_error", "contract_error", "policy_violation"),
    Stage.BUILD: ("build_error", "build_timeout", "built_not_run"),
    Stage.CORRECTNESS: (
        *("load_error", "runtime_error", "crash", "timeout", "out_of_memory"),
        *("wrong_shape", "wrong_dtype", "wrong_output", "mutated_input", "nondeterministic"),
    ),
    Stage.TIMING: ("cheating", "no_custom_kernel"),
    Stage.DONE: ("infrastructure_error", "correct"),
}
_STAGE = {Status(word): stage for stage, words in _BY_STAGE.items() for word in words}

_MEANING: dict[Status, str] = {
    Status.PROVIDER_ERROR: "The model's server gave no answer; asked again when the command is run again.",
    Status.PLANS: "The question asked for plans in prose: there is no program to judge.",
    Status.REFUSED: "The model declined to answer.",
    Status.FILTERED: "A filter of the model's server ended the answer.",
    Status.TRUNCATED: "The answer ended before the code was complete (token limit, unclosed thinking).",
    Status.EMPTY: "The answer holds no text, and the server says no reason for that.",
    Status.NO_CODE: "The answer holds no complete program that defines ModelNew.",
    Status.SYNTAX_ERROR: "The program does not parse as Python.",
    Status.CONTRACT_ERROR: "The program does not fit the problem: no ModelNew, or another signature.",
    Status.POLICY_VIOLATION: "The program breaks a rule that the run enforces before running anything.",
    Status.BUILD_ERROR: "The extension did not compile or link.",
    Status.BUILD_TIMEOUT: "The build was stopped at its time or memory limit.",
    Status.BUILT_NOT_RUN: "The extension compiled; this machine has no device to run it on.",
    Status.LOAD_ERROR: "Importing the program or constructing ModelNew raised an error.",
    Status.RUNTIME_ERROR: "forward raised an error.",
    Status.CRASH: "The candidate's process died (signal, abort, early exit).",
    Status.TIMEOUT: "The candidate did not finish within its time limit.",
    Status.OUT_OF_MEMORY: "The candidate needed more host or device memory than it was given.",
    Status.WRONG_SHAPE: "An output has another structure or shape than the reference's.",
    Status.WRONG_DTYPE: "An output has another dtype, type or device than the reference's.",
    Status.WRONG_OUTPUT: "Output values differ from the reference's by more than the tolerance.",
    Status.MUTATED_INPUT: "The candidate changed its inputs.",
    Status.NONDETERMINISTIC: "The same call gave results that differ by more than the tolerance.",
    Status.CHEATING: "The candidate worked against the measurement; the check that saw it is named.",
    Status.NO_CUSTOM_KERNEL: "The result is right but no kernel of the candidate's own took part.",
    Status.INFRASTRUCTURE_ERROR: "Our side failed (machine, disk, sandbox); retried, never counted.",
    Status.CORRECT: "The outputs agree with the reference on every input variant; see the measurement.",
}
