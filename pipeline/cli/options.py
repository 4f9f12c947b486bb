"""Options that several commands take. Each is declared here once: name, type, default and help.

Example: `VerifyOptions.seconds` is the option `--seconds` of every command that has a parameter of the type
`VerifyOptions`. It sets `VerifySettings.measure_seconds`, and error messages about that setting name it.

Words to choose from come from `kernelproof.choices` and from the registry of backends. Nothing here imports
pydantic before a command runs, so `--help` stays fast.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from difflib import get_close_matches
from enum import EnumType
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from kernelproof.backends import names, our_backends
from kernelproof.bounds import MEASURE_S, TRIALS, Bounds
from kernelproof.choices import Baseline, Numerics, Purity, Rigor, words_of
from kernelproof.cli.completion import attempts, runs
from kernelproof.workspace import DatabasePlace, Workspace, database_place, open_workspace, user_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kernelproof.runs.candidates import Given
    from kernelproof.types import Problem, VerifySettings

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""
AUTO = "auto"
"""As a backend: the first one whose device is here."""


@dataclass(frozen=True)
class Entries:
    """Beside a dictionary's type: the options that are its entries."""

    options: list[inspect.Parameter]


def choice(kind: Any, sentence: str) -> Any:
    """An option whose value is a word of `kind`: an enumeration, a `Literal`, or the words themselves."""
    words = kind if isinstance(kind, tuple) else words_of(kind)

    def parsed(text: str) -> Any:
        if text not in words:
            near = get_close_matches(text, words, 1)
            hint = f"; did you mean {near[0]!r}?" if near else "."
            raise typer.BadParameter(f"{text!r} is not one of {', '.join(map(repr, words))}{hint}")
        return kind(text) if isinstance(kind, EnumType) else text

    def beginning(incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete)]

    metavar = f"<{'|'.join(words)}>"
    return typer.Option(parser=parsed, metavar=metavar, help=sentence, autocompletion=beginning)


def number(bounds: Bounds, sentence: str, *names: str, **more: Any) -> Any:
    """An option whose value is a number within `bounds`. `names`: where it is not called as its parameter."""

    def parsed(text: str | float) -> float:
        if not isinstance(text, str):
            return text  # the default
        try:
            return bounds.number(text)
        except ValueError as error:
            raise typer.BadParameter(f"{error}.") from None

    return typer.Option(*names, parser=parsed, help=sentence, **{"metavar": "<number>", **more})


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


def path_option(sentence: str) -> Any:
    """An option whose value is a path."""
    return typer.Option(parser=given_path, metavar="<path>", help=sentence)


def _backends_in_words() -> str:
    return " ".join(f"{each.name}: {each.summary}." for each in our_backends())


_WorkspaceOption = Annotated[
    Path | None,
    path_option("Directory with db/ and generated/ [default: KERNELPROOF_WORKSPACE, else here]."),
]
_DatabaseOption = Annotated[
    str | None,
    typer.Option(
        "--db",
        parser=nonempty_text,
        metavar="<address>",
        help="postgresql+psycopg://USER@HOST/NAME, or a SQLite file [default: KERNELPROOF_DB, else "
        "db/attempts.sqlite in the workspace].",
    ),
]
SuiteOption = Annotated[
    Path | None,
    path_option("Problem file, directory or KernelBench checkout [default: the packaged problems]."),
]
RunOption = Annotated[
    str | None,
    typer.Option(
        parser=nonempty_text, autocompletion=runs, help="The run's name: another name is another run."
    ),
]
AttemptArgument = Annotated[
    str,
    typer.Argument(autocompletion=attempts, help="The attempt's number (17 or '#17'), or: last."),
]
FollowLinksOption = Annotated[
    bool, typer.Option("--follow-links", help="Read links that lead out of the folder as well.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
UnsafeOption = Annotated[
    bool, typer.Option("--unsafe", help="Accept the weakest sandbox tier. Only for code you trust.")
]


@dataclass(frozen=True)
class StorageOptions:
    """Where results are kept."""

    workspace: _WorkspaceOption = None
    db: _DatabaseOption = None

    def opened(self) -> Workspace:
        """The workspace, which knows its database. Raises UsageError where it is none."""
        place = None if self.db is None else database_place(self.db)
        return open_workspace(self.workspace, place)

    @property
    def database(self) -> DatabasePlace:
        """Where results are stored."""
        return self.opened().database

    @property
    def file(self) -> Path:
        """The SQLite file that results are in. Raises UsageError where they are on a server."""
        from kernelproof.errors import UsageError

        place = self.database
        if not isinstance(place, Path):
            raise UsageError(f"{place} is on a server, which has tools for this: pg_dump, VACUUM")
        return place


BackendOption = Annotated[str, choice((AUTO, *names()), _backends_in_words())]
SizeOption = Annotated[
    str, typer.Option(help="The problem's size preset [default: full on a GPU, small on a CPU].")
]
NumericsOption = Annotated[
    Numerics, choice(Numerics, "tf32: TF32 passes for float32, and the baseline runs with TF32 too.")
]
PurityOption = Annotated[
    Purity, choice(Purity, "own-compute: nothing is computed by operators of libraries.")
]


@dataclass(frozen=True)
class VerifyOptions:
    """The options that are settings of a verification."""

    backend: BackendOption = AUTO
    size: SizeOption = ""
    trials: Annotated[int, number(TRIALS, "Correctness trials on drawn inputs; variants come on top.")] = 3
    measure: Annotated[bool, typer.Option(help="Time correct candidates.")] = True
    rigor: Annotated[
        Rigor, choice(Rigor, "Half-width of the speedup's interval: quick 3 %, standard 1 %, publish 0.5 %.")
    ] = Rigor.STANDARD
    seconds: Annotated[
        float | None,
        number(MEASURE_S, "Most seconds for timed blocks [default: quick 2, standard 6, publish 20]."),
    ] = None
    baseline: Annotated[
        list[str] | None,
        choice(Baseline, "Measure against torch.compile as well; may be repeated."),
    ] = None
    numerics: NumericsOption = "fp32"
    purity: PurityOption = "any"
    own_kernel: Annotated[
        bool,
        typer.Option(
            help="Require a kernel of its own; without, a reference can be measured against itself."
        ),
    ] = True
    unsafe: UnsafeOption = False

    def settings_for(self, given: Sequence[Given]) -> VerifySettings:
        """The settings for these programs. Says so where they can only be built. Raises as `settings`."""
        from kernelproof.report.plain import say
        from kernelproof.runs.sizes import only_built
        from kernelproof.verifier.devices.discovery import default_backend

        problems = {(one.problem.id, one.problem.sha256): one.problem for one in given}
        sources = [one.extraction.candidate.source for one in given if one.extraction.candidate]
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

        from kernelproof.errors import UsageError
        from kernelproof.runs.sizes import choose_size
        from kernelproof.types import VerifySettings
        from kernelproof.types.explain import explain
        from kernelproof.verifier.devices.discovery import default_backend

        asked = [self.baseline] if isinstance(self.baseline, str) else self.baseline or ()
        if unknown := [word for word in asked if word not in words_of(Baseline)]:
            raise UsageError(f"--baseline must be {' or '.join(words_of(Baseline))}, not {unknown[0]!r:.60}")
        baselines = [word for word in words_of(Baseline) if word in asked]
        if baselines and not self.measure:
            raise UsageError("--baseline is for measuring; leave it out, or leave out --no-measure")
        if self.purity == "own-compute" and not self.own_kernel:
            raise UsageError("--purity own-compute asks for kernels of its own; leave out --no-own-kernel")
        backend = default_backend() if self.backend == AUTO else self.backend
        given = {setting: getattr(self, option) for option, setting in SETTINGS.items()}
        given |= {
            "backend": backend,
            "size": choose_size(self.size, backend, problems),
            "baselines": baselines,
        }
        try:
            return VerifySettings.model_validate(given)
        except ValidationError as error:
            called = {setting: f"--{option.replace('_', '-')}" for option, setting in SETTINGS.items()}
            raise UsageError(explain(error, called)) from None


_OTHERS = {"seconds": "measure_seconds", "baseline": "baselines"}
SETTINGS = {each.name: _OTHERS.get(each.name, each.name) for each in fields(VerifyOptions)}
"""Option to setting of a verification."""


def given_options(options: Any, context: typer.Context) -> dict[str, Any]:
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
    from kernelproof.errors import UsageError

    if len(names) > 1:
        raise UsageError(f"{' and '.join(names)} exclude each other; give one of them")


def settings_over(
    settings: VerifySettings, given: dict[str, Any], problems: Sequence[Problem]
) -> VerifySettings:
    """Stored settings with the options that were given. Raises UsageError for what makes no sense."""
    stored = {option: getattr(settings, setting) for option, setting in SETTINGS.items()}
    chosen = VerifyOptions(**{**stored, **given}).settings(problems)
    names = [setting for option, setting in SETTINGS.items() if option in given]
    return settings.model_copy(update={name: getattr(chosen, name) for name in names})


def takes_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command as typer sees it: a parameter that stands for options, by a class of them or by `Entries`,
    becomes those options."""
    parameters: list[inspect.Parameter] = []
    groups: dict[str, tuple[Any, list[inspect.Parameter]]] = {}
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        kind = parameter.annotation
        entries = next((x for x in getattr(kind, "__metadata__", ()) if isinstance(x, Entries)), None)
        if entries:
            groups[parameter.name] = dict, entries.options
        elif is_dataclass(kind):
            groups[parameter.name] = kind, _parameters(kind)
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        parameters += groups[parameter.name][1]

    def run(**given: Any) -> None:
        for name, (make, options) in groups.items():
            given[name] = make(**{option.name: given.pop(option.name) for option in options})
        command(**given)

    run.__name__, run.__doc__, run.__module__ = command.__name__, command.__doc__, command.__module__
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run


def _parameters(options: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(options, include_extras=True)
    defaults = {
        field.name: inspect.Parameter.empty if field.default is MISSING else field.default
        for field in fields(options)
    }
    return [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hints[name])
        for name, default in defaults.items()
    ]
