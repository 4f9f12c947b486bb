"""Options that several commands take. Each is declared here once: name, type, default and help.

Example: `VerifyOptions.seconds` is the option `--seconds` of every command that has a parameter of the type
`VerifyOptions`. It sets `VerifySettings.measure_seconds`, and error messages about that setting name it.

Words to choose from come from `kernelproof.choices` and from the registry of backends. Nothing here imports
pydantic before a command runs, so `--help` stays fast.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, fields, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernelproof.backends import names, our_backends
from kernelproof.choices import (
    LEVEL,
    MEASURE_S,
    TRIALS,
    TURNS,
    Baseline,
    ErrorClass,
    Flag,
    Numerics,
    Purity,
    Rigor,
    RunKind,
    words_of,
)
from kernelproof.cli.completion import attempts, models, problems, runs
from kernelproof.cli.declaring import Argument, Option
from kernelproof.errors import UsageError, writing
from kernelproof.report.plain import say
from kernelproof.workspace import DatabasePlace, Workspace, database_place, open_workspace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kernelproof.db.scores.filters import Filters
    from kernelproof.runs.candidates import CandidateInput
    from kernelproof.types import Problem, VerifySettings

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""
AUTO = "auto"
"""As a backend: the first one whose device is here."""


def _backends_in_words() -> str:
    return " ".join(f"{each.name}: {each.summary}." for each in our_backends())


_WorkspaceOption = Annotated[
    Path | None, Option("Directory with db/ and generated/ [default: KERNELPROOF_WORKSPACE, else here].")
]
_DatabaseOption = Annotated[
    str | None,
    Option(
        "postgresql+psycopg://USER@HOST/NAME, or a SQLite file [default: KERNELPROOF_DB, else "
        "db/attempts.sqlite in the workspace].",
        names=("--db",),
        metavar="<address>",
    ),
]
SuiteOption = Annotated[
    Path | None, Option("Problem file, directory or KernelBench checkout [default: the packaged problems].")
]
RunOption = Annotated[str | None, Option("The run's name: another name is another run.", offered=runs)]
AttemptArgument = Annotated[
    str, Argument("The attempt's number (17 or '#17'), or: last.", parser=str, offered=attempts)
]
OutputOption = Annotated[Path, Option("The file that is written.", names=("--output", "-o"))]
SameFileOption = Annotated[Path | None, Option("The same as FILE.", names=("--output", "-o"))]
FollowLinksOption = Annotated[bool, Option("Read links that lead out of the folder as well.")]
JsonOption = Annotated[bool, Option("Print JSON.", names=("--json",))]
UnsafeOption = Annotated[bool, Option("Accept the weakest sandbox tier. Only for code you trust.")]


@dataclass(frozen=True)
class StorageOptions:
    workspace: _WorkspaceOption = None
    db: _DatabaseOption = None

    def open_workspace(self, *, may_be_missing: bool = False) -> Workspace:
        """The workspace, which knows its database. Raises UsageError where it is none."""
        place = None if self.db is None else database_place(self.db)
        return open_workspace(self.workspace, place, may_be_missing=may_be_missing)

    def create_workspace(self) -> Workspace:
        """The workspace of a command that writes: created where it is missing, which is said.

        Raises UsageError, and MachineError where it cannot be created.
        """
        place = self.open_workspace(may_be_missing=True)
        if not place.root.exists():
            with writing(place.root):
                place.root.mkdir(parents=True, exist_ok=True)
            say(f"created workspace {place.root}", err=True)
        return place

    @property
    def option(self) -> str:
        """The option that names the workspace, with a blank before it, for a command that is printed; empty
        where there is none."""
        return "" if self.workspace is None else f" --workspace {shlex.quote(str(self.workspace))}"

    @property
    def database(self) -> DatabasePlace:
        return self.open_workspace().database

    @property
    def file(self) -> Path:
        """The SQLite file that results are in. Raises UsageError where they are on a server."""
        place = self.database
        if not isinstance(place, Path):
            raise UsageError(f"{place} is on a server, which has tools for this: pg_dump, VACUUM")
        return place


BackendOption = Annotated[str, Option(_backends_in_words(), words=(AUTO, *names()))]
SizeOption = Annotated[
    str, Option("The problem's size preset [default: full on a GPU, small on a CPU].", parser=str)
]
NumericsOption = Annotated[
    Numerics, Option("tf32: TF32 passes for float32, and the baseline runs with TF32 too.")
]
PurityOption = Annotated[Purity, Option("own-compute: nothing is computed by operators of libraries.")]


@dataclass(frozen=True)
class VerifyOptions:
    backend: BackendOption = AUTO
    size: SizeOption = ""
    trials: Annotated[int, Option("Correctness trials on drawn inputs; variants come on top.", TRIALS)] = 3
    measure: Annotated[bool, Option("Time correct candidates.")] = True
    rigor: Annotated[
        Rigor, Option("Half-width of the speedup's interval: quick 3 %, standard 1 %, publish 0.5 %.")
    ] = Rigor.STANDARD
    seconds: Annotated[
        float | None,
        Option("Most seconds for timed blocks [default: quick 2, standard 6, publish 20].", MEASURE_S),
    ] = None
    baseline: Annotated[
        list[str] | None,
        Option("Measure against torch.compile as well; may be repeated.", words=words_of(Baseline)),
    ] = None
    numerics: NumericsOption = "fp32"
    purity: PurityOption = "any"
    own_kernel: Annotated[
        bool, Option("Require a kernel of its own; without, a reference can be measured against itself.")
    ] = True
    unsafe: UnsafeOption = False

    def settings_for(self, candidates: Sequence[CandidateInput]) -> VerifySettings:
        """The settings for these programs. Says so where they can only be built. Raises as `settings`."""
        from kernelproof.runs.sizes import only_built
        from kernelproof.verifier.devices.discovery import default_backend

        problems = {(one.problem.id, one.problem.sha256): one.problem for one in candidates}
        sources = [one.extraction.candidate.source for one in candidates if one.extraction.candidate]
        backend = only_built(sources) if self.backend == AUTO else None
        if backend is not None:
            here = "there is no GPU here: built and not run (built_not_run)"
            say(f"written for {backend}, and {here}; --backend {default_backend()} judges them", err=True)
        return replace(self, backend=backend or self.backend).settings(list(problems.values()))

    def settings(self, problems: Sequence[Problem]) -> VerifySettings:
        """The settings that the options stand for.

        Raises UsageError for values that make no sense, alone or together, and for a size that one of
        `problems` has not.
        """
        from pydantic import ValidationError

        from kernelproof.runs.sizes import choose_size
        from kernelproof.types import VerifySettings
        from kernelproof.types.record import explain
        from kernelproof.verifier.devices.discovery import default_backend

        words = [self.baseline] if isinstance(self.baseline, str) else self.baseline or ()
        if unknown := [word for word in words if word not in words_of(Baseline)]:
            raise UsageError(f"--baseline must be {' or '.join(words_of(Baseline))}, not {unknown[0]!r:.60}")
        baselines = [word for word in words_of(Baseline) if word in words]
        if baselines and not self.measure:
            raise UsageError("--baseline is for measuring; leave it out, or leave out --no-measure")
        if self.purity == "own-compute" and not self.own_kernel:
            raise UsageError("--purity own-compute asks for kernels of its own; leave out --no-own-kernel")
        backend = default_backend() if self.backend == AUTO else self.backend
        values = {setting: getattr(self, option) for option, setting in SETTINGS.items()}
        values |= {
            "backend": backend,
            "size": choose_size(self.size, backend, problems),
            "baselines": baselines,
        }
        try:
            return VerifySettings.model_validate(values)
        except ValidationError as error:
            called = {setting: f"--{option.replace('_', '-')}" for option, setting in SETTINGS.items()}
            raise UsageError(explain(error, called)) from None


_OTHERS = {"seconds": "measure_seconds", "baseline": "baselines"}
SETTINGS = {each.name: _OTHERS.get(each.name, each.name) for each in fields(VerifyOptions)}
"""Option to setting of a verification."""


def explicit_options(options: Any, context: typer.Context) -> dict[str, Any]:
    """The options of a class that stand on the command line, defaults left out."""
    sources = {field.name: context.get_parameter_source(field.name) for field in fields(options)}
    by_user = [name for name, source in sources.items() if source and source.name != "DEFAULT"]
    return {name: getattr(options, name) for name in by_user}


def only_one(options: Any) -> str | None:
    """The option of a class that is given: `json` for the field `as_json`; None without any.

    Raises UsageError for several.
    """
    names = [field.name.removeprefix("as_") for field in fields(options) if getattr(options, field.name)]
    refuse_several([f"--{name}" for name in names])
    return names[0] if names else None


def refuse_several(names: Sequence[str]) -> None:
    """Raises UsageError for more than one of options that exclude each other. `names`: those given."""
    if len(names) > 1:
        raise UsageError(f"{' and '.join(names)} exclude each other; give one of them")


def named_file(argument: Path | None, option: Path | None) -> Path:
    """The file that a command writes, named by its argument FILE or by --output. Raises UsageError."""
    if argument is None and option is None:
        raise UsageError("name the file to write: FILE, or -o FILE")
    if argument is not None and option is not None:
        refuse_several(["FILE", "--output"])
    return argument or option  # type: ignore[return-value]


def settings_over(
    settings: VerifySettings, overrides: dict[str, Any], problems: Sequence[Problem]
) -> VerifySettings:
    """Stored settings with the options that were given. Raises UsageError for what makes no sense."""
    stored = {option: getattr(settings, setting) for option, setting in SETTINGS.items()}
    chosen = VerifyOptions(**{**stored, **overrides}).settings(problems)
    names = [setting for option, setting in SETTINGS.items() if option in overrides]
    return settings.model_copy(update={name: getattr(chosen, name) for name in names})


AllRankedOption = Annotated[bool, Option("The best of each problem of every board.")]


@dataclass(frozen=True)
class FilterOptions:
    """Which stored attempts count. All that are given must let an attempt pass."""

    problem: Annotated[
        str | None, Option("Problem id, name, folder or glob: level1/23, level1, '*max'.", offered=problems)
    ] = None
    level: Annotated[int | None, Option("Problems of this level only.", LEVEL)] = None
    suite: Annotated[str | None, Option("Problems of this suite only.")] = None
    model: Annotated[str | None, Option("Part of the model's name.", offered=models)] = None
    template: Annotated[str | None, Option("Prompts of this template only, such as basic-v3.")] = None
    strategy: Annotated[str | None, Option("This search strategy only, such as refine.")] = None
    run: Annotated[str | None, Option("The run of this name or number only.", offered=runs)] = None
    tag: Annotated[str | None, Option("Runs with this tag only (kernelproof runs tag).")] = None
    kind: Annotated[
        RunKind | None, Option("Answers of models, files, imported programs, or what a tuner tried.")
    ] = None
    turns: Annotated[int | None, Option("Only the first so many turns of each sample.", TURNS)] = None
    since: Annotated[date | None, Option("Attempts begun on this day (UTC) or later.")] = None
    until: Annotated[date | None, Option("Attempts begun on this day (UTC) or earlier.")] = None
    gpu: Annotated[str | None, Option("Part of the GPU's or CPU's name.", names=("--gpu", "--device"))] = None
    backend: Annotated[str | None, Option("One backend only.", words=names())] = None
    size: Annotated[str | None, Option("One size preset only: full, small.")] = None
    numerics: Annotated[Numerics | None, Option("Verifications with these numerics only.")] = None
    purity: Annotated[Purity | None, Option("Verifications with this purity only.")] = None
    rigor: Annotated[Rigor | None, Option("Verifications of this rigor only.")] = None
    policy: Annotated[
        str,
        Option(
            "Verifications under this policy only: current, any (the newest of each attempt), or its name.",
            metavar="<policy>",
        ),
    ] = "current"
    without: Annotated[
        list[Flag] | None,
        Option(
            "Correct ones with this flag, such as shape_specialised, do not count; may be repeated.",
            metavar="<flag>",
        ),
    ] = None
    error_class: Annotated[ErrorClass | None, Option("Correct ones of a worse error class do not count.")] = (
        None
    )

    def filters(self) -> Filters:
        from kernelproof.db.scores.filters import Filters

        given = {**self.__dict__, "device": self.gpu}
        given["without"] = tuple(flag for flag in Flag if flag in (self.without or ()))
        del given["gpu"]
        return Filters.model_validate(given)
