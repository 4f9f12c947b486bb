"""Options that several commands share, and the settings they add up to."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.nouns import Problem, VerifySettings

OPTION_OF = {"measure_seconds": "--seconds"}
"""Options whose name is not that of the setting."""


class BackendChoice(StrEnum):
    """`auto` is cuda where there is a GPU, else cpp."""

    AUTO = "auto"
    CUDA = "cuda"
    CPP = "cpp"


WorkspaceOption = Annotated[
    Path | None,
    typer.Option(help="Directory with db/ and generated/ [default: KERNELPROOF_WORKSPACE, else here]."),
]
SuiteOption = Annotated[
    Path | None,
    typer.Option(help="Problem file, directory or KernelBench checkout [default: the packaged problems]."),
]
BackendOption = Annotated[
    BackendChoice, typer.Option(help="cuda: inline CUDA on a GPU. cpp: C++ on the CPU.")
]
SizeOption = Annotated[
    str, typer.Option(help="The problem's size preset [default: full on a GPU, small on a CPU].")
]
SecondsOption = Annotated[float, typer.Option(help="Most seconds for the timed blocks of one candidate.")]
TrialsOption = Annotated[int, typer.Option(help="Correctness trials on drawn inputs, variants apart.")]
MeasureOption = Annotated[bool, typer.Option(help="Time what is correct.")]
UnsafeOption = Annotated[
    bool, typer.Option("--unsafe", help="Accept the weakest sandbox tier. Only for code you trust.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def verify_settings(
    problems: Sequence[Problem],
    backend: BackendChoice,
    size: str,
    *,
    seconds: float,
    trials: int,
    measure: bool,
    unsafe: bool,
) -> VerifySettings:
    """The settings that the options stand for.

    Raises UsageError for values that make no sense and for a size that one of `problems` has not.
    """
    from pydantic import ValidationError

    from pipeline.errors import UsageError
    from pipeline.execution.devices import default_backend
    from pipeline.execution.sizes import choose_size
    from pipeline.nouns import VerifySettings

    chosen = default_backend() if backend is BackendChoice.AUTO else backend.value
    try:
        return VerifySettings.model_validate(
            {
                "backend": chosen,
                "size": choose_size(size, chosen, problems),
                "measure_seconds": seconds,
                "trials": trials,
                "measure": measure,
                "unsafe": unsafe,
            }
        )
    except ValidationError as error:
        first = error.errors()[0]
        setting = str(first["loc"][0])
        option = OPTION_OF.get(setting, f"--{setting.replace('_', '-')}")
        raise UsageError(f"{option}: {first['msg'].lower()}, not {first['input']}") from None
