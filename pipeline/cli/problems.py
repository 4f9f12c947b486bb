"""`kernelproof problems`: list, show, check and import problems, begin one, and print a problem's prompt."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernelproof.choices import CHECK_S, LEVEL, NEW_LEVEL
from kernelproof.cli.commands import CommandLine
from kernelproof.cli.completion import problems
from kernelproof.cli.declaring import Argument, Option
from kernelproof.cli.options import (
    AUTO,
    BackendOption,
    JsonOption,
    SameFileOption,
    SizeOption,
    SuiteOption,
    named_file,
)
from kernelproof.errors import UsageError
from kernelproof.report.plain import json_text, say, say_text, screen
from kernelproof.wording import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kernelproof.problems import Fitness, Suite
    from kernelproof.problems.importing import Imported
    from kernelproof.types import Problem

problems_app = CommandLine(help="List, show, check and import problems, write a new one, or print a prompt.")

_ROLES = ("code", "name", "level", "number")


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
        listed = [problem.model_dump(exclude={"source"}) for problem in problems]
        print(json_text({"suite": opened.name, "problems": listed, "broken": _as_json(opened.broken)}))
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
        print(json_text(found))
        return
    say(f"{found.id}  {found.name}  (suite {found.suite})")
    if found.summary:
        say(found.summary)
    say(f"\nModel({', '.join(found.signature.init)})")
    say(f"forward({', '.join(found.signature.forward)})")
    for name, values in found.sizes.items():
        written = ", ".join(f"{name}={value!r}" for name, value in values.items())
        say(f"size {name}: {written or 'as in the file'}")
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
            _print_fitness(chosen, fitness)
    if as_json:
        checked = [{"ok": record.ok, **record.model_dump()} for record in records]
        print(json_text({"problems": checked, "broken": _as_json(broken)}))
    else:
        for _, message in broken:
            say(f"broken  {message}")
        fit = sum(record.ok for record in records)
        say(f"{fit} of {counted(len(records) + len(broken), 'problem')} fit")
    if broken or not all(record.ok for record in records):
        raise typer.Exit(1)


@problems_app.command()
def prompt(
    problem: Annotated[
        str, Argument("The problem: level1/23, a name, or a file.", parser=str, offered=problems)
    ],
    backend: BackendOption = AUTO,
    size: SizeOption = "",
    template: Annotated[
        str | None,
        Option("A template's name, or the path of a folder.", parser=str, show_default="the backend's"),
    ] = None,
    suite: SuiteOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the prompt that a model gets for a problem: system and user text."""
    from kernelproof.problems import open_suite
    from kernelproof.prompting import first_prompt
    from kernelproof.runs.sizes import choose_size
    from kernelproof.verifier.devices.discovery import default_backend

    chosen = open_suite(suite).find(problem)
    backend = default_backend() if backend == AUTO else backend
    size = choose_size(size, backend, [chosen])
    rendered = first_prompt(chosen, backend=backend, size=size, template=template)
    if as_json:
        print(json_text(rendered))
        return
    for part, text in (("system", rendered.system), ("user", rendered.user)):
        say(f"===== {part} ({rendered.template}, prompt {rendered.sha256[:12]}) =====")
        say_text(text)


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


@problems_app.command("import")
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
    to: Annotated[Path, Option("The suite's directory, a new one.", names=("--to", "-o"))],
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
        _print_imported(imported)
        return
    for message in imported.left_out:
        say(f"left out: {message}", err=True)
    folders = Counter(file.parent.name for file in imported.files if file.parent != to)
    parts = ", ".join(f"{count} in {folder}" for folder, count in folders.items())
    say(f"{to}: {counted(len(imported.problems), 'problem')}{f' ({parts})' if parts else ''}")
    say(f"check them: kernelproof problems check --suite {to}")


@problems_app.command("new")
def new_problem(
    path: Annotated[
        Path | None, Argument("The file, such as mine/level1/1_gated_unit.py.", metavar="FILE")
    ] = None,
    output: SameFileOption = None,
) -> None:
    """Write a problem to start from. It runs as it is: put your own model in the place of its model."""
    from kernelproof.problems.reading import write_template

    path = named_file(path, output)
    write_template(path)
    say(f"{path}: edit it, then: kernelproof problems check {path}")


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
    """A table in which a narrow terminal cuts summaries, never an id; elsewhere cells with tabs between."""
    titles = ("id", "name", "sizes", "summary")
    rows = [(p.id, p.name, ", ".join(p.sizes), p.summary) for p in problems]
    if not sys.stdout.isatty():
        for row in (titles, *rows):
            say("\t".join(" ".join(cell.split()) for cell in row))
        return
    from kernelproof.report.layout import Column, cut_short, fitting

    cells = [Column(title, itemgetter(i), number=False, fit=cut_short) for i, title in enumerate(titles)]
    cells[0], cells[2] = replace(cells[0], fit=None), replace(cells[2], fit=None, common="sizes: {}", spare=1)
    table, _, common = fitting(cells, rows, screen())
    say(", ".join((f"{counted(len(rows), 'problem')} of suite {suite.name}", *common)) + "\n")
    if rows:
        screen().print(table)
        say(f"\nread one: kernelproof problems show {rows[0][0]}")


def _print_fitness(problem: Problem, fitness: Fitness) -> None:
    verdict = "fit" if fitness.ok else "UNFIT"
    say(f"{verdict:6}  {problem.id:12} {problem.name:34} {fitness.size:6} {fitness.seconds:6.1f} s")
    for finding in fitness.findings:
        say(f"        {finding.reason}: {finding.message}")


def _once(columns: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Columns by their roles. Raises UsageError for a role that is given twice."""
    for role, times in Counter(role for role, _ in columns).items():
        if times > 1:
            raise UsageError(f"--column {role} was given {times} times; give it once")
    return dict(columns)


def _print_imported(imported: Imported) -> None:
    written = zip(imported.problems, imported.files, strict=True)
    problems = [{"id": p.id, "name": p.name, "path": f, "sha256": p.sha256} for p, f in written]
    print(json_text({"suite": imported.suite, "problems": problems, "left_out": imported.left_out}))


def _as_json(broken: Sequence[tuple[Path, str]]) -> list[dict[str, object]]:
    return [{"path": path, "message": message} for path, message in broken]
