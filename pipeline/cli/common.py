"""Options that several commands share, and the settings they add up to."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.backends import names
from pipeline.workspace import user_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.types import Problem, VerifySettings

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""
OPTION_OF = {"measure_seconds": "--seconds"}
"""Options whose name is not that of the setting."""

# The words of the nouns' own types, which are not imported here: `--help` would wait for pydantic.


if TYPE_CHECKING:

    class Backend(StrEnum):
        """Where candidates run."""

    class BackendChoice(StrEnum):
        """`auto` is the first backend whose device is here."""

        AUTO = "auto"

else:
    Backend = StrEnum("Backend", {name.upper(): name for name in names()})
    BackendChoice = StrEnum("BackendChoice", {name.upper(): name for name in ("auto", *names())})


class RigorChoice(StrEnum):
    """How narrow the speedup's interval has to be."""

    QUICK = "quick"
    STANDARD = "standard"
    PUBLISH = "publish"


class NumericsChoice(StrEnum):
    """The arithmetic of float32 problems."""

    FP32 = "fp32"
    TF32 = "tf32"


class PurityChoice(StrEnum):
    """Whether libraries may compute."""

    ANY = "any"
    OWN_COMPUTE = "own-compute"


class BaselineChoice(StrEnum):
    """Baselines beside the eager one."""

    COMPILE = "compile"
    MAX_AUTOTUNE = "max-autotune"


class FlagChoice(StrEnum):
    """What is said of a correct candidate."""

    SHAPE_SPECIALISED = "shape_specialised"
    LAYOUT_SPECIALISED = "layout_specialised"
    STATE_NOT_UPDATED = "state_not_updated"
    WEIGHTS_SPECIALISED = "weights_specialised"


class ErrorClassChoice(StrEnum):
    """Error classes, best first."""

    FP32_EQUIVALENT = "fp32-equivalent"
    TF32_CLASS = "tf32-class"
    HALF_CLASS = "half-class"
    WORSE = "worse"


def nonempty_text(text: str) -> str:
    """Parses names and filters. An empty one comes from a script's unset variable, and names nothing."""
    if not text:
        raise typer.BadParameter("it is empty; give a value, or leave the option out.")
    return text


def given_path(text: str) -> Path:
    """Parses every path. To `Path` an empty one is the current directory, which nobody meant."""
    if not text:
        raise typer.BadParameter("the path is empty; for the current directory give a dot.")
    path = user_path(text)
    try:
        readable = not path.exists() or os.access(path, os.R_OK)
    except OSError as error:
        raise typer.BadParameter(f"path {text!r} cannot be used: {error.strerror}.") from None
    if not readable:
        raise typer.BadParameter(f"path {text!r} is not readable.")
    return path


WorkspaceOption = Annotated[
    Path | None,
    typer.Option(
        parser=given_path,
        metavar="<path>",
        help="Directory with db/ and generated/ [default: KERNELPROOF_WORKSPACE, else here].",
    ),
]
SuiteOption = Annotated[
    Path | None,
    typer.Option(
        parser=given_path,
        metavar="<path>",
        help="Problem file, directory or KernelBench checkout [default: the packaged problems].",
    ),
]
BackendOption = Annotated[
    BackendChoice, typer.Option(help="cuda: inline CUDA on a GPU. cpp: C++ on the CPU.")
]
SizeOption = Annotated[
    str, typer.Option(help="The problem's size preset [default: full on a GPU, small on a CPU].")
]
SecondsOption = Annotated[
    float | None,
    typer.Option(help="Most seconds for timed blocks [default: quick 2, standard 6, publish 20]."),
]
TrialsOption = Annotated[int, typer.Option(help="Correctness trials on drawn inputs, variants apart.")]
MeasureOption = Annotated[bool, typer.Option(help="Time what is correct.")]
RigorOption = Annotated[
    RigorChoice,
    typer.Option(help="How narrow the speedup's interval: quick 3 %, standard 1 %, publish 0.5 %."),
]
NumericsOption = Annotated[
    NumericsChoice,
    typer.Option(help="tf32: TF32 passes for float32, and the baseline runs with TF32 too."),
]
PurityOption = Annotated[
    PurityChoice,
    typer.Option(help="own-compute: nothing is computed by operators of libraries."),
]
BaselineOption = Annotated[
    list[BaselineChoice] | None,
    typer.Option(
        metavar="<compile|max-autotune>", help="Measure against torch.compile as well; may be repeated."
    ),
]
OwnKernelOption = Annotated[
    bool,
    typer.Option(help="Require a kernel of its own; without, a reference can be measured against itself."),
]
UnsafeOption = Annotated[
    bool, typer.Option("--unsafe", help="Accept the weakest sandbox tier. Only for code you trust.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def verify_settings(
    problems: Sequence[Problem],
    backend: BackendChoice,
    size: str,
    *,
    seconds: float | None,
    trials: int,
    measure: bool,
    rigor: RigorChoice,
    numerics: NumericsChoice,
    purity: PurityChoice,
    baseline: list[BaselineChoice] | None,
    own_kernel: bool,
    unsafe: bool,
) -> VerifySettings:
    """The settings that the options stand for.

    Raises UsageError for values that make no sense, alone or together, and for a size that one of `problems`
    has not.
    """
    from pydantic import ValidationError

    from pipeline.devices.discovery import default_backend
    from pipeline.errors import UsageError
    from pipeline.runs.sizes import choose_size
    from pipeline.types import VerifySettings

    baselines = [choice.value for choice in BaselineChoice if choice in (baseline or ())]
    if baselines and not measure:
        raise UsageError("--baseline is for measuring; leave it out, or leave out --no-measure")
    if purity is PurityChoice.OWN_COMPUTE and not own_kernel:
        raise UsageError("--purity own-compute asks for kernels of its own; leave out --no-own-kernel")
    chosen = default_backend() if backend is BackendChoice.AUTO else backend.value
    try:
        return VerifySettings.model_validate(
            {
                "backend": chosen,
                "size": choose_size(size, chosen, problems),
                "measure_seconds": seconds,
                "trials": trials,
                "measure": measure,
                "rigor": rigor.value,
                "numerics": numerics.value,
                "purity": purity.value,
                "baselines": baselines,
                "own_kernel": own_kernel,
                "unsafe": unsafe,
            }
        )
    except ValidationError as error:
        first = error.errors()[0]
        setting = str(first["loc"][0])
        option = OPTION_OF.get(setting, f"--{setting.replace('_', '-')}")
        raise UsageError(f"{option}: {first['msg'].lower()}, not {first['input']}") from None
