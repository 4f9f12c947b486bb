"""`kernelproof problems import`: problems from files, from a class of the user's, or from a data set."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernelproof.bounds import NEW_LEVEL
from kernelproof.cli.options import (
    JsonOption,
    given_options,
    nonempty_text,
    number,
    path_option,
    takes_options,
)
from kernelproof.report.plain import say
from kernelproof.wording import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kernelproof.problems import Fitness
    from kernelproof.problems.importing import Imported, ModuleRequest

_ROLES = ("code", "name", "level", "number")


def column(text: str) -> tuple[str, str]:
    """Role and column, from `code=reference`."""
    role, equals, name = text.partition("=")
    if not equals or not name or role not in _ROLES:
        raise typer.BadParameter(f"{text!r} is not ROLE=COLUMN, with a role of {', '.join(_ROLES)}.")
    return role, name


@dataclass(frozen=True)
class ClassOptions:
    """The options for a class, of which one problem is made."""

    name: Annotated[
        str | None,
        typer.Option(parser=nonempty_text, help="Class: the problem's name, as gate or 7_gate."),
    ] = None
    init: Annotated[
        str | None,
        typer.Option(metavar="<json>", help="Class: its constructor's arguments, a list [default: []]."),
    ] = None
    inputs: Annotated[
        str | None,
        typer.Option(
            metavar="<json>",
            help="Class: forward's arguments, a list of shapes ([128, 512]) and of objects with shape, "
            "dtype, low, high, or value.",
        ),
    ] = None
    example: Annotated[
        str | None,
        typer.Option(
            metavar="<file.py:function>", help="Class: the function that returns forward's arguments."
        ),
    ] = None
    check: Annotated[
        bool, typer.Option(help="Class: run it, as `problems check` does; one that raises is not written.")
    ] = True
    device: Annotated[str, typer.Option(help="Class: where it is run, cpu or cuda.")] = "cpu"


@dataclass(frozen=True)
class DataOptions:
    """The options for a data set, or for files of problems."""

    columns: Annotated[
        list[Any] | None,
        typer.Option(
            "--column",
            parser=column,
            metavar="<role=column>",
            help="Data set: the column that holds the code, name, level or number. May be repeated "
            "[default: code, name, level, problem_id].",
        ),
    ] = None
    split: Annotated[
        str | None, typer.Option(parser=nonempty_text, help="Data set: only this split [default: all].")
    ] = None
    subset: Annotated[
        str | None,
        typer.Option(parser=nonempty_text, help="Data set: its configuration, where it has several."),
    ] = None
    skip_broken: Annotated[
        bool, typer.Option("--skip-broken", help="Leave out what is no problem, and write the rest.")
    ] = False


@takes_options
def import_problems(
    *,
    context: typer.Context,
    source: Annotated[
        str,
        typer.Argument(
            parser=nonempty_text,
            metavar="SOURCE",
            help="A directory or file of problems, FILE.py:CLASS, MODULE:CLASS, or a data set: a directory, "
            "a parquet file, or OWNER/NAME on the Hugging Face Hub.",
        ),
    ],
    to: Annotated[
        Path,
        path_option("The suite's directory. A new one; a class may join the problems of one that is there."),
    ],
    level: Annotated[
        int | None, number(NEW_LEVEL, "Level of problems that have none [default for a class: 1].")
    ] = None,
    a_class: ClassOptions,
    data: DataOptions,
    as_json: JsonOption = False,
) -> None:
    """Write problems from elsewhere as a suite. All are written, or none.

    Nothing of theirs is run but a class, in a process of its own. Exit code 1 when it is unfit to judge
    candidates.
    """
    from kernelproof.problems.importing import ModuleRequest, is_module, read_drafts, write_suite

    if is_module(source) and not Path(source).exists():
        _refuse(given_options(data, context), "is not for a class")
        request = ModuleRequest(
            source, a_class.init or "[]", a_class.inputs, a_class.example, a_class.name, level
        )
        _import_class(request, to, a_class.device if a_class.check else None, as_json)
        return
    _refuse(given_options(a_class, context), "is for a class, FILE.py:CLASS")
    columns = _once(data.columns or ())
    drafts = read_drafts(source, level=level, columns=columns, split=data.split, subset=data.subset)
    imported = write_suite(drafts, to, skip_broken=data.skip_broken)
    if as_json:
        _print_json(imported, None)
        return
    for message in imported.left_out:
        say(f"left out: {message}", err=True)
    folders = Counter(file.parent.name for file in imported.files if file.parent != to)
    parts = ", ".join(f"{count} in {folder}" for folder, count in folders.items())
    say(f"{to}: {counted(len(imported.problems), 'problem')}{f' ({parts})' if parts else ''}")
    say(f"check them: kernelproof problems check --suite {to}")


def _once(columns: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Columns by their roles. Raises UsageError for a role that is given twice."""
    from kernelproof.errors import UsageError

    for role, times in Counter(role for role, _ in columns).items():
        if times > 1:
            raise UsageError(f"--column {role} was given {times} times; give it once")
    return dict(columns)


def _import_class(request: ModuleRequest, to: Path, device: str | None, as_json: bool) -> None:
    """Runs the class on `device`, unless that is None, and writes it where it does not raise."""
    from functools import partial

    from kernelproof.cli.problems_shown import print_fitness
    from kernelproof.errors import UsageError
    from kernelproof.problems import check_problem
    from kernelproof.problems.check import Unfit
    from kernelproof.problems.importing import draft_of_module, place_in, write_into

    draft = place_in(draft_of_module(request), to)
    problem, fitness = draft.problem(to), None
    if device is not None:
        fitness = check_problem(problem, size="full", device=device, on_wait=partial(say, err=True))
        for finding in fitness.findings:
            if finding.reason in (Unfit.ERROR, Unfit.CRASH):
                raise UsageError(f"nothing was written, since it does not run: {finding.message}")
    imported = write_into(draft, to)
    if as_json:
        _print_json(imported, fitness)
    else:
        if fitness is not None:
            print_fitness(problem, fitness)
        say(str(imported.files[0]))
    if fitness is not None and not fitness.ok:
        raise typer.Exit(1)


def _refuse(given: dict[str, Any], why: str) -> None:
    from kernelproof.errors import UsageError

    if given:
        option = sorted(given)[0].replace("columns", "column").replace("_", "-")
        raise UsageError(f"--{option} {why}; leave it out")


def _print_json(imported: Imported, fitness: Fitness | None) -> None:
    import json

    written = zip(imported.problems, imported.files, strict=True)
    shown = {
        "suite": str(imported.suite),
        "problems": [{"id": p.id, "name": p.name, "path": str(f), "sha256": p.sha256} for p, f in written],
        "left_out": list(imported.left_out),
        "fitness": fitness and {"ok": fitness.ok, **fitness.model_dump(mode="json")},
    }
    print(json.dumps(shown, indent=2))
