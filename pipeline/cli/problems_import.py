"""`kernelproof problems import` and `new`: problems from files, from a data set, or from a template."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernelproof.bounds import NEW_LEVEL
from kernelproof.cli.declaring import Argument, Option
from kernelproof.cli.options import JsonOption
from kernelproof.errors import UsageError
from kernelproof.report.plain import say
from kernelproof.wording import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kernelproof.problems.importing import Imported

_ROLES = ("code", "name", "level", "number")


def column(text: str) -> tuple[str, str]:
    """Role and column, from `code=reference`."""
    role, equals, name = text.partition("=")
    if not equals or not name or role not in _ROLES:
        raise typer.BadParameter(f"{text!r} is not ROLE=COLUMN, with a role of {', '.join(_ROLES)}.")
    return role, name


@dataclass(frozen=True)
class DataOptions:
    """The options for a data set, or for files of problems."""

    columns: Annotated[
        list[Any] | None,
        Option(
            "Data set: the column that holds the code, name, level or number. May be repeated "
            "[default: code, name, level, problem_id].",
            names=("--column",),
            parser=column,
            metavar="<role=column>",
        ),
    ] = None
    split: Annotated[str | None, Option("Data set: only this split [default: all].")] = None
    subset: Annotated[str | None, Option("Data set: its configuration, where it has several.")] = None
    skip_broken: Annotated[bool, Option("Leave out what is no problem, and write the rest.")] = False


def import_problems(
    *,
    source: Annotated[
        str,
        Argument(
            "A directory or file of problems, or a data set: a directory, a parquet file, or OWNER/NAME "
            "on the Hugging Face Hub.",
            metavar="SOURCE",
        ),
    ],
    to: Annotated[Path, Option("The suite's directory, a new one.")],
    level: Annotated[int | None, Option("Level of problems that have none.", NEW_LEVEL)] = None,
    data: DataOptions,
    as_json: JsonOption = False,
) -> None:
    """Write problems from elsewhere as a suite. All are written, or none. Nothing of theirs is run."""
    from kernelproof.problems.importing import read_drafts, write_suite

    columns = _once(data.columns or ())
    drafts = read_drafts(source, level=level, columns=columns, split=data.split, subset=data.subset)
    imported = write_suite(drafts, to, skip_broken=data.skip_broken)
    if as_json:
        _print_json(imported)
        return
    for message in imported.left_out:
        say(f"left out: {message}", err=True)
    folders = Counter(file.parent.name for file in imported.files if file.parent != to)
    parts = ", ".join(f"{count} in {folder}" for folder, count in folders.items())
    say(f"{to}: {counted(len(imported.problems), 'problem')}{f' ({parts})' if parts else ''}")
    say(f"check them: kernelproof problems check --suite {to}")


def new_problem(
    path: Annotated[Path, Argument("The file, such as mine/level1/1_gated_unit.py.", metavar="FILE")],
) -> None:
    """Write a problem to start from. It runs as it is: put your own model in the place of its model."""
    from kernelproof.problems.template import write_template

    write_template(path)
    say(f"{path}: edit it, then: kernelproof problems check {path}")


def _once(columns: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Columns by their roles. Raises UsageError for a role that is given twice."""
    for role, times in Counter(role for role, _ in columns).items():
        if times > 1:
            raise UsageError(f"--column {role} was given {times} times; give it once")
    return dict(columns)


def _print_json(imported: Imported) -> None:
    written = zip(imported.problems, imported.files, strict=True)
    shown = {
        "suite": str(imported.suite),
        "problems": [{"id": p.id, "name": p.name, "path": str(f), "sha256": p.sha256} for p, f in written],
        "left_out": list(imported.left_out),
    }
    print(json.dumps(shown, indent=2))
