"""A problem in the KernelBench format, and whether it is fit to judge candidates by."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import Field

from kernelproof.types.record import FrozenRecord


class Signature(FrozenRecord):
    """Parameter names, in order and without self, of a constructor or of forward; read with `ast`."""

    init: tuple[str, ...] = ()
    """Parameters of `Model.__init__`."""
    forward: tuple[str, ...] = ()
    """Parameters of `Model.forward`."""


class Problem(FrozenRecord):
    """A reference architecture: `class Model`, `get_inputs()`, `get_init_inputs()`. Read, never run, here."""

    id: str
    """`level1/23`: the folder's name and the file's number; the file's stem where it has no number."""
    suite: str
    """`kernelproof` for the packaged problems, else the suite folder's name, else `file`."""
    name: str
    """The file's stem without its number: `softmax`."""
    level: int | None = None
    """From a folder named `levelN`; None elsewhere."""
    source: str
    """The file's text, unchanged."""
    sha256: str
    """SHA-256 of `source`: results of different texts are never compared."""
    sizes: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Named size presets: module-level names and the literals that replace them before get_inputs is called.

    A file declares them as a literal `SIZES = {"full": {...}, "small": {...}}`. A file without them has
    one preset, `full`, that changes nothing.
    """
    signature: Signature = Signature()
    """What a candidate's ModelNew must accept."""
    summary: str = ""
    """First line of the module's docstring, else the Model class's, else empty."""


NO_DEVICE = 3
"""Exit code of the process that asks when the device is not there."""


class Unfit(StrEnum):
    """What makes a problem unfit."""

    ZEROS = "zeros"
    """An output of zeros would be accepted."""
    CONSTANT = "constant"
    """One constant in all places would be accepted."""
    REPLAY = "replay"
    """The output for other inputs would be accepted."""
    UNUSED_INPUT = "unused_input"
    """An input can be replaced by another draw, and the output would still be accepted."""
    DEAD_WEIGHT = "dead_weight"
    """A parameter can be replaced by other values, and the output would still be accepted."""
    SCALED = "scaled"
    """An output that is too large by far more than rounding would be accepted."""
    MOSTLY_ZEROS = "mostly_zeros"
    """An output whose smallest nine tenths are zeros would be accepted."""
    NOISE = "noise"
    """An output is what rounding left of terms that cancel: anything so small would be accepted."""
    PERTURBED = "perturbed"
    """The output for inputs that are off by 6 % would be accepted."""
    NONDETERMINISTIC = "nondeterministic"
    """The same model on the same inputs gives an output that would not be accepted."""
    UNSTABLE_WEIGHTS = "unstable_weights"
    """Constructing twice from one seed gives different weights: a candidate cannot have the same ones."""
    MUTATED_INPUT = "mutated_input"
    """The reference changes its inputs."""
    NON_FINITE = "non_finite"
    """The output holds NaN or infinities."""
    NO_OUTPUT = "no_output"
    """The output holds no tensor, or an empty one."""
    ERROR = "error"
    """The problem's code raised."""
    OUT_OF_MEMORY = "out_of_memory"
    CRASH = "crash"
    """The process ended by a signal or without a record."""
    TIMEOUT = "timeout"


class FitnessFinding(FrozenRecord):
    """One reason why a problem is unfit."""

    reason: Unfit
    message: str
    """What was seen, and what to change."""
    figures: dict[str, Any] = Field(default_factory=dict)
    """The same for machines: JSON values only."""


class Fitness(FrozenRecord):
    """Whether a problem at one size can tell right candidates from wrong ones."""

    problem_id: str
    size: str
    device: str
    """`cpu` or `cuda`."""
    findings: tuple[FitnessFinding, ...] = ()
    seconds: float
    """Wall seconds, start of the process and waiting for the device included."""

    @property
    def ok(self) -> bool:
        return not self.findings
