"""`kernelproof problems`: list, show, check, import and begin problems."""

from __future__ import annotations

import json
import sys
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from kernelproof.bounds import CHECK_S, LEVEL
from kernelproof.cli.commands import CommandLine
from kernelproof.cli.completion import problems
from kernelproof.cli.declaring import Argument, Option
from kernelproof.cli.options import JsonOption, SuiteOption
from kernelproof.cli.problems_import import import_problems, new_problem
from kernelproof.errors import UsageError
from kernelproof.report.plain import clean, say, say_text
from kernelproof.wording import counted

if TYPE_CHECKING:
    from kernelproof.problems import Suite
    from kernelproof.types import Problem

problems_app = CommandLine(help="List, show, check and import problems, or write a new one.")

problems_app.command("import")(import_problems)
problems_app.command("new")(new_problem)


@problems_app.command("list")
def list_problems(
    level: Annotated[int | None, Option("Only this level.", LEVEL)] = None,
    suite: SuiteOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the problems of a suite."""
    from kernelproof.problems import open_suite

    opened = open_suite(suite)
    problems = opened.problems(level)
    if level is not None and not problems:
        _refuse_level(level, opened)
    if as_json:
        _print_json(
            {
                "suite": opened.name,
                "problems": [problem.model_dump(mode="json", exclude={"source"}) for problem in problems],
                "broken": [{"path": str(path), "message": message} for path, message in opened.broken],
            }
        )
        return
    _print_table(opened, problems)
    for _, message in opened.broken:
        say(f"not a problem: {message}", err=True)


@problems_app.command("show")
def show_problem(
    problem: Annotated[str, Argument("Id, name or path of a .py file.", parser=str, offered=problems)],
    suite: SuiteOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show one problem: what it asks for, its sizes and its source."""
    from kernelproof.problems import open_suite

    found = open_suite(suite).find(problem)
    if as_json:
        _print_json(found.model_dump(mode="json"))
        return
    say(f"{found.id}  {found.name}  (suite {found.suite})")
    if found.summary:
        say(found.summary)
    say(f"\nModel({', '.join(found.signature.init)})")
    say(f"forward({', '.join(found.signature.forward)})")
    for name, values in found.sizes.items():
        say(f"size {name}: {_written(values) or 'as in the file'}")
    say(f"sha256 {found.sha256}\n")
    say_text(found.source)


@problems_app.command("check")
def check_problems(
    problem: Annotated[
        list[str] | None,
        Argument(
            "Ids, names, paths, levels (level1) or globs (level2/*). Default: all.",
            parser=str,
            offered=problems,
        ),
    ] = None,
    suite: SuiteOption = None,
    size: Annotated[
        str, Option("Size preset to run; `full` where a problem lacks it.", parser=str)
    ] = "small",
    device: Annotated[str, Option("cpu or cuda.", parser=str)] = "cpu",
    time_limit: Annotated[float, Option("Most seconds for one problem.", CHECK_S)] = 120.0,
    as_json: JsonOption = False,
) -> None:
    """Run the references and report what makes a problem unfit to judge candidates.

    Exit code 1 when a problem is unfit or a file is broken.
    """
    from kernelproof.cli.problems_shown import print_fitness
    from kernelproof.problems import check_problem, open_suite

    opened = open_suite(suite)
    problems = opened.select(problem or ["all"])
    _refuse_unknown(size, problems)
    broken = [] if problem else opened.broken
    records = []
    on_wait = partial(say, err=True)
    for chosen in problems:
        preset = size if size in chosen.sizes else "full"
        fitness = check_problem(chosen, size=preset, device=device, time_limit=time_limit, on_wait=on_wait)
        records.append(fitness)
        if not as_json:
            print_fitness(chosen, fitness)
    if as_json:
        _print_json(
            {
                "problems": [{"ok": record.ok, **record.model_dump(mode="json")} for record in records],
                "broken": [{"path": str(path), "message": message} for path, message in broken],
            }
        )
    else:
        for _, message in broken:
            say(f"broken  {message}")
        fit = sum(record.ok for record in records)
        say(f"{fit} of {counted(len(records) + len(broken), 'problem')} fit")
    if broken or not all(record.ok for record in records):
        raise typer.Exit(1)


def _refuse_level(level: int, suite: Suite) -> None:
    """Raises UsageError for a level that the suite has not."""
    there = sorted({place.level for place in suite.places if place.level is not None})
    if level not in there:
        known = ", ".join(map(str, there)) or "none"
        raise UsageError(f"suite {suite.name} has no problems of level {level}; its levels are {known}")


def _refuse_unknown(size: str, problems: list[Problem]) -> None:
    """Raises UsageError for a size that none of the problems has; `full` instead would seem to be that."""
    there = list(dict.fromkeys(("full", "small", *(name for problem in problems for name in problem.sizes))))
    if size not in there:
        raise UsageError(f"no size {size!r}; there are {', '.join(there)}: choose with --size")


def _print_table(suite: Suite, problems: list[Problem]) -> None:
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(
        box=SIMPLE, title=f"{counted(len(problems), 'problem')} of suite {suite.name}", title_justify="left"
    )
    for column in ("id", "name", "sizes"):
        table.add_column(column, no_wrap=True)
    table.add_column("summary")
    for problem in problems:
        summary = Text(clean(problem.summary), no_wrap=True, overflow="ellipsis")
        table.add_row(
            Text(clean(problem.id)), Text(clean(problem.name)), clean(", ".join(problem.sizes)), summary
        )
    # A narrow terminal shortens the summaries; a pipe gets them whole.
    console = Console(width=None if sys.stdout.isatty() else 1000)
    console.print(table)


def _print_json(value: object) -> None:
    print(json.dumps(value, indent=2))


def _written(values: dict[str, object]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in values.items())
