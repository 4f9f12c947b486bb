"""`kernelproof cache`: see the cache of builds, and make it smaller."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from kernelproof.choices import DAY_S, DAYS
from kernelproof.cli.commands import CommandLine
from kernelproof.cli.declaring import Option
from kernelproof.cli.options import JsonOption
from kernelproof.errors import MachineError, UsageError
from kernelproof.report.plain import json_text, screen
from kernelproof.wording import counted

if TYPE_CHECKING:
    from rich.console import Console

    from kernelproof.types import CacheSurvey, Removal

cache_app = CommandLine(help="See the cache of builds, and make it smaller.")


@cache_app.command("info")
def info(as_json: JsonOption = False) -> None:
    """Say where the cache is and what lies in it."""
    from kernelproof.verifier.build import survey
    from kernelproof.workspace import cache_directory

    found = survey(cache_directory())
    if as_json:
        print(json_text(found))
    else:
        _print_survey(found, screen())


@cache_app.command("prune")
def prune(
    to: Annotated[
        str | None,
        Option(
            "Keep at most so many bytes of builds: 500MiB, 5GiB, bytes.",
            names=("--to",),
            parser=str,
            metavar="<size>",
        ),
    ] = None,
    older_than: Annotated[
        float | None,
        Option("Remove builds not used for so many days.", DAYS, names=("--older-than",), metavar="<days>"),
    ] = None,
    artefacts: Annotated[
        str | None,
        Option(
            "Remove the oldest of what builders published here, in place of this machine's builds.",
            metavar="URL",
        ),
    ] = None,
) -> None:
    """Remove least recently used builds; without options, those beyond the cache's bound.

    Exit code 3 when builds cannot be removed.
    """
    from kernelproof.service.artefacts import open_artefacts
    from kernelproof.verifier.build import prune as prune_cache
    from kernelproof.workspace import cache_directory, parse_bytes

    target = parse_bytes(to, "--to") if to is not None else None
    unused_s = older_than * DAY_S if older_than is not None else None
    if artefacts is not None:
        if target is None and unused_s is None:
            raise UsageError("what is to be removed? give --older-than <days>, --to <size>, or both")
        _report(open_artefacts(artefacts, create=False).prune(unused_s=unused_s, target=target))
        return
    _report(prune_cache(cache_directory(), target=target, unused_s=unused_s))


@cache_app.command("clear")
def clear(yes: Annotated[bool, Option("Do not ask.")] = False) -> None:
    """Remove all builds; builds under way, toolchains and measured ceilings stay.

    Exit code 1 when the answer is no, 3 when builds cannot be removed.
    """
    from kernelproof.verifier.build import clear as clear_cache
    from kernelproof.workspace import cache_directory

    place = cache_directory()
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError(
                f"this would remove all builds in {place}; give --yes to do it without being asked"
            )
        typer.confirm(f"Remove all builds in {place}?", abort=True)
    _report(clear_cache(place))


def _report(removal: Removal) -> None:
    _print_removal(removal, screen())
    if removal.trouble:
        raise MachineError(f"not all could be removed ({removal.trouble}); do it as the user they belong to")


def _print_survey(survey: CacheSurvey, console: Console) -> None:
    """Facts about the builds, and the other folders with their sizes."""
    from kernelproof.report.layout import percent, print_facts, print_table, size

    filled = percent(survey.bytes / survey.bound_bytes)
    states = {"ok": survey.ok, "error": survey.error, "damaged": survey.damaged}
    print_facts(
        console,
        {
            "cache": survey.path,
            "builds": f"{survey.builds}, {size(survey.bytes)}: {filled} of {size(survey.bound_bytes)}",
            "states": ", ".join(f"{count} {name}" for name, count in states.items() if count),
            "last used": f"{survey.oldest_use} to {survey.newest_use}" if survey.oldest_use else "",
            "prebuilt": f"{counted(survey.prebuilt, 'source')} known to be built",
            "toolchains": "\n".join(survey.toolchains),
        },
    )
    print_table(console, ("folder", "size"), [(name, size(count)) for name, count in survey.folders.items()])


def _print_removal(removal: Removal, console: Console) -> None:
    from kernelproof.report.layout import size

    entries = counted(removal.index_entries, "entry", "entries")
    index = f", {entries} of the build index" if removal.index_entries else ""
    console.print(f"removed {counted(removal.builds, 'build')}, {size(removal.bytes)}{index}", soft_wrap=True)
    left = f"left    {counted(removal.left_builds, 'build')}, {size(removal.left_bytes)}"
    console.print(left, soft_wrap=True)
