"""A verification: the settings it ran by, the request to the referee, and the verdict with its checks, its
findings of the static policy, and their evidence.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from kernelproof.backends import backend, preferred
from kernelproof.choices import MEASURE_S, TRIALS, Baseline, ErrorClass, Flag, Numerics, Purity, Rigor
from kernelproof.types.build import Build
from kernelproof.types.environment import Environment
from kernelproof.types.measurement import Kernels, Measurement
from kernelproof.types.problem import Problem
from kernelproof.types.record import BackendName, FrozenRecord
from kernelproof.types.status import Status
from kernelproof.wording import counted


class CheckOutcome(StrEnum):
    """`not_applicable` says that the check had nothing to look at; the reason is in `seen`."""

    PASS = "pass"
    FAIL = "fail"
    NOT_APPLICABLE = "not_applicable"


class Check(FrozenRecord):
    """What was asked, what was seen, and the figures."""

    name: str
    """Stable name: `output_values`, `inputs_unchanged`, `host_clock` ..."""
    outcome: CheckOutcome
    asked: str
    """The question, in one sentence."""
    seen: str
    """The answer, in one sentence with its figures."""
    figures: dict[str, Any] = Field(default_factory=dict)
    """The same for machines: JSON values only."""


SANITIZER = "sanitizer: "
"""Before the name of the tool, in the name of a check that a sanitizer made."""


class Severity(StrEnum):
    """`error` ends the attempt with the rule's status; `warning` and `note` inform."""

    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"


class Finding(FrozenRecord):
    """One rule that matched, with its evidence."""

    rule: str
    """The rule's name: `forbidden_import`, `missing_model_new` ..."""
    severity: Severity
    message: str
    """What is wrong and what a candidate should do instead."""
    line: int | None = None
    """1-based line in the candidate's source."""
    evidence: str = ""
    """The source text that matched, at most 200 characters."""
    status: Status | None = None
    """For severity error: the status the attempt ends with."""


class Setting(FrozenRecord):
    """The rules by which a candidate was judged, and the device on which it ran."""

    backend: str = Field(description="The backend's name.")
    size: str = Field(description="Size preset.")
    device: str | None = Field(
        default=None, description="The GPU's name, else the CPU's; NULL where no device was reached."
    )
    numerics: str = Field(description="`fp32` or `tf32`.")
    purity: str = Field(description="`any` or `own-compute`.")
    own_kernel: bool = Field(description="False when no kernel of the candidate's own was required.")

    @property
    def rules(self) -> dict[str, Any]:
        """Its fields without the device, for columns of these names."""
        return {name: getattr(self, name) for name in RULES}


MEANINGS = {name: field.description or "" for name, field in Setting.model_fields.items()}
"""What each field means, for columns of that name."""
RULES = tuple(name for name in MEANINGS if name != "device")
"""The fields that `VerifySettings`, and rows of runs and verifications, have too."""


WHILE_HELD = "builds_while_held"
"""The stage whose seconds are those of compilers that ran while the device was held."""
OFF_DEVICE = ("build", WHILE_HELD)
"""Stages of a record whose seconds are not, or not once more, the device's."""


class Determinism(StrEnum):
    """What a second call with the same inputs gave."""

    BIT_EQUAL = "bit-equal"
    WITHIN_ERROR = "within error"


class VerifySettings(FrozenRecord):
    """What a verification does; two results are compared only when these are equal."""

    backend: BackendName = preferred()
    """`cuda`: the candidate runs on a GPU. `cpp`: on the CPU."""
    size: str = "full"
    """The problem's size preset."""
    trials: Annotated[int, TRIALS] = 3
    """Correctness trials on inputs as `get_inputs` draws them; every input variant adds one."""
    measure: bool = True
    """Time the candidate when it is correct."""
    measure_seconds: Annotated[float | None, MEASURE_S] = None
    """Most seconds the timed blocks may take, in place of the rigor's."""
    rigor: Rigor = Rigor.STANDARD
    """How narrow the speedup's interval has to be before timing stops."""
    target_half_width: float | None = Field(default=None, gt=0, lt=1)
    """A half-width in place of the rigor's."""
    numerics: Numerics = "fp32"
    """`tf32`: TF32-class errors are accepted for float32, and the baseline runs with TF32 too."""
    purity: Purity = "any"
    """`own-compute`: compute operators of libraries are not accepted, the candidate's kernels do the work."""
    baselines: tuple[Baseline, ...] = ()
    """Baselines beside the eager one."""
    own_kernel: bool = True
    """Require that the candidate builds an extension; off for measuring a reference against itself."""
    threads: int = Field(default=0, ge=0)
    """CPU threads for reference and candidate, and cores that both are held to when a CPU is measured.

    0: all cores that this process may use, but one where a CPU is measured; the record has the number.
    """
    load_seconds: float = Field(default=60.0, gt=0)
    """Most seconds for importing the candidate and constructing ModelNew (builds apart)."""
    call_seconds: float = Field(default=60.0, gt=0)
    """Most seconds for one forward, the first one included."""
    build_seconds: float = Field(default=600.0, gt=0)
    """Most wall seconds for one build."""
    memory_bytes: int = Field(default=16 << 30, gt=0)
    """Most host memory the candidate's processes may use."""
    unsafe: bool = False
    """Accept the weakest sandbox tier."""
    bar: float | None = Field(default=None, ge=0)
    """A screening, in a search that races: the best speedup so far, 0 where there is none. Timing ends where
    the speedup is surely below it. Its times choose, and are not reported. None: no screening."""

    @model_serializer(mode="wrap")
    def _without_bar(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leaves out what earlier versions had no field for: records and keys are then those they wrote."""
        written: dict[str, Any] = handler(self)
        if self.bar is None:
            written.pop("bar", None)
        return written

    def as_screening(self, bar: float) -> VerifySettings:
        """The same judgement, timed only as far as a search needs it: rigor `quick`, the eager baseline."""
        seconds = self.measure_seconds and min(self.measure_seconds, Rigor.QUICK.seconds)
        return self.model_copy(
            update={"rigor": Rigor.QUICK, "measure_seconds": seconds, "baselines": (), "bar": bar}
        )

    @property
    def setting(self) -> Setting:
        """The rules among them, without a device."""
        return Setting.model_validate({name: getattr(self, name) for name in RULES})

    @property
    def kernels_matter(self) -> bool:
        """Whether anything depends on whose kernels ran; else they are only noted."""
        return self.own_kernel or self.purity != "any"

    @property
    def most_seconds(self) -> float:
        """Most seconds the timed blocks of one pair of processes may take."""
        return self.measure_seconds or self.rigor.seconds

    @property
    def half_width(self) -> float:
        """Timing stops when the speedup's 95 % interval is this narrow (a fraction, either side)."""
        return self.target_half_width or self.rigor.half_width


class SandboxReport(FrozenRecord):
    """What confined the candidate: stored with every verification."""

    tier: str
    """`A`, `B`, `C1`, `C2`, `D`, as docs/rationale/sandbox.md describes them."""
    layers: dict[str, str] = Field(default_factory=dict)
    """Layer (`user_namespace`, `network`, `seccomp`, `landlock`, `memory` ...) to what is in force."""
    refusals: tuple[str, ...] = ()
    """Why stronger tiers could not be had, one line each."""


class ErrorStatistics(FrozenRecord):
    """How far one output tensor of one trial is from the truth: float64 where it exists."""

    trial: str
    """Input variant: `drawn`, `signed`, `large` ..."""
    output: int
    """Index of the output leaf."""
    dtype: str
    count: int
    """Number of elements compared."""
    wrong: int
    """Elements outside the tolerance."""
    max_abs: float
    max_rel: float
    relative_norm: float
    """Norm of the error over norm of the truth."""
    reference_relative_norm: float
    """The native reference's own, the yardstick."""
    nan: int = 0
    """NaN elements in the candidate's output where the truth has none."""
    first_bad: tuple[int, ...] | None = None
    """Index of the first element outside the tolerance."""
    expected: float | None = None
    """The truth at `first_bad`; None when it is NaN or infinite there, for which JSON has no number."""
    got: float | None = None
    """The candidate's value at `first_bad`; None as in `expected`."""
    allowed_norm: float | None = None
    """Largest `relative_norm` that is accepted; None where outputs are equal or wrong, and in old records."""
    allowed_abs: float | None = None
    """Largest error that is accepted at `first_bad`; None as in `allowed_norm`."""
    reference_abs: float | None = None
    """The native reference's own error at `first_bad`, if there was a truth."""

    @property
    def only_norm(self) -> bool:
        """Whether every single element is accepted, and the whole is not."""
        return self.wrong > 0 and self.first_bad is None and self.nan == 0

    @property
    def in_words(self) -> str:
        """The fault, and the values that would have been accepted; for people and models."""
        allowed = "" if self.allowed_norm is None else f" (allowed: {self.allowed_norm:.3g})"
        own = f", PyTorch's own is {self.reference_relative_norm:.3g}"
        norm = f"the error is {self.relative_norm:.3g} of the result in norm{allowed}{own}"
        if self.only_norm:
            return f"each element of {self.count} is within its limit, the whole is not: {norm}"
        nan = f", {self.nan} of them NaN where there should be none" if self.nan else ""
        wrong = f"{self.wrong} of {counted(self.count, 'element')} wrong{nan}"
        if self.first_bad is None:
            return f"{wrong}; {norm}"
        where = f"first at {list(self.first_bad)}: {self.first_bad_values}"
        if self.allowed_abs is not None:
            where = f"{where}, where an error of {self.allowed_abs:.3g} is allowed"
            if self.reference_abs is not None:
                where = f"{where} and PyTorch's own is {self.reference_abs:.3g}"
        return f"{wrong}, {where}; {norm}" if "float" in self.dtype else f"{wrong}, {where}"

    @property
    def first_bad_values(self) -> str:
        """Both values at `first_bad`, in words: `expected 1.5, got NaN or infinite`."""
        # Nine significant digits tell any two float32 values apart.
        truth, seen = ("NaN or infinite" if v is None else f"{v:.9g}" for v in (self.expected, self.got))
        return f"expected {truth}, got {seen}"


class Verification(FrozenRecord):
    """One judgement. `checks` holds the evidence; `status` is what follows from it."""

    status: Status
    reason: str
    """One sentence for people: why this status."""
    problem_id: str
    problem_sha256: str
    candidate_sha256: str | None
    """SHA-256 of the source that was judged; None when the text held none, which is never stored."""
    settings: VerifySettings
    environment: Environment | None = None
    """None only when the verification ended before any process was started."""
    sandbox: SandboxReport | None = None
    findings: tuple[Finding, ...] = ()
    builds: tuple[Build, ...] = ()
    checks: tuple[Check, ...] = ()
    errors: tuple[ErrorStatistics, ...] = ()
    measurement: Measurement | None = None
    seeds: dict[str, int] = Field(default_factory=dict)
    """The secret seeds, written down afterwards so that anybody can draw the same inputs."""
    inputs: tuple[dict[str, Any], ...] = ()
    """Shape, dtype, strides of each input tensor."""
    details: str = ""
    """Traceback of a failed candidate, else what its processes wrote to stdout and stderr (the last 4,000
    characters of each where it did not crash), cleaned, at most 20,000 characters."""
    exit: str | None = None
    """How the candidate's process ended when it did so by itself: `signal SIGSEGV`, `exit 0` ..."""
    stage_seconds: dict[str, float] = Field(default_factory=dict)
    """Wall seconds by stage: `build`, `start`, `load`, `correctness`, `timing`, `probes` ..."""
    error_class: ErrorClass | None = None
    """The worst of all trials; None before any trial passed, and for outputs that are not float32."""
    determinism: Determinism | None = None
    flags: tuple[Flag, ...] = ()
    kernels: Kernels | None = None
    """What ran in one traced call."""
    verifier: str
    """Version of kernelproof, and hash of the tolerance policy."""
    created: str
    """UTC, ISO 8601."""

    @property
    def setting(self) -> Setting:
        """The rules by which it was judged, and its device."""
        device = self.environment and self.environment.device_name
        return self.settings.setting.model_copy(update={"device": device})

    @property
    def device_seconds(self) -> float:
        """Wall seconds in which it held the device."""
        return sum(seconds for stage, seconds in self.stage_seconds.items() if stage not in OFF_DEVICE)

    @model_validator(mode="after")
    def _measured_only_when_correct(self) -> Verification:
        if self.measurement is not None and self.status not in (Status.CORRECT, Status.CHEATING):
            raise ValueError(f"a {self.status} verification cannot carry a measurement")
        return self


class VerifyRequest(FrozenRecord):
    """One candidate to judge."""

    problem: Problem
    source: str
    """The candidate's source."""
    settings: VerifySettings
    device: str
    """`cuda:0` or `cpu`."""
    first_calls: str | None = None
    """The file with what compilers left that run at a kernel's first call; None: there is none."""
    compiled_ahead: bool = False
    """Whether that is all that a first call compiles, as far as is known."""

    @property
    def long_first_call(self) -> bool:
        """Whether a process's first call may be long: kernels are compiled in it, or tuned."""
        first = backend(self.settings.backend).first_call
        return first is not None and (not self.compiled_ahead or first.tunes(self.source))

    @property
    def interpreted(self) -> bool:
        return self.device == "cpu" and backend(self.settings.backend).on_gpu
