"""`kernelproof cache`: see the cache of builds, and make it smaller."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from pipeline.cli.common import JsonOption

if TYPE_CHECKING:
    from pipeline.types import Removal

DAY_S = 86_400.0

cache_app = typer.Typer(
    help="See the cache of builds, and make it smaller.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@cache_app.command("info")
def info(as_json: JsonOption = False) -> None:
    """Say where the cache is and what lies in it."""
    from pipeline.compile import survey
    from pipeline.report.cache import print_survey
    from pipeline.report.plain import json_text, screen
    from pipeline.workspace import cache_directory

    found = survey(cache_directory())
    if as_json:
        print(json_text(found))
    else:
        print_survey(found, screen())


@cache_app.command("prune")
def prune(
    to: Annotated[
        str | None,
        typer.Option(
            "--to", metavar="<size>", help="Most room of the builds that stay: 500MiB, 5GiB, bytes."
        ),
    ] = None,
    older_than: Annotated[
        float | None,
        typer.Option("--older-than", metavar="<days>", min=0, help="Remove what was not used for so long."),
    ] = None,
) -> None:
    """Remove least recently used builds; without options, those beyond the cache's bound.

    Exit code 3 when builds cannot be removed.
    """
    from pipeline.compile import prune as prune_cache
    from pipeline.workspace import cache_directory, parse_bytes

    target = parse_bytes(to, "--to") if to is not None else None
    unused_s = older_than * DAY_S if older_than is not None else None
    _report(prune_cache(cache_directory(), target=target, unused_s=unused_s))


@cache_app.command("clear")
def clear(
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Remove all builds; what is being compiled, toolchains and measured ceilings stay.

    Exit code 1 when the answer is no, 3 when builds cannot be removed.
    """
    import sys

    from pipeline.compile import clear as clear_cache
    from pipeline.errors import UsageError
    from pipeline.workspace import cache_directory

    place = cache_directory()
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError(
                f"this would remove all builds in {place}; give --yes to do it without being asked"
            )
        typer.confirm(f"Remove all builds in {place}?", abort=True)
    _report(clear_cache(place))


def _report(removal: Removal) -> None:
    from pipeline.errors import MachineError
    from pipeline.report.cache import print_removal
    from pipeline.report.plain import screen

    print_removal(removal, screen())
    if removal.trouble:
        raise MachineError(f"not all could be removed ({removal.trouble}); do it as the user they belong to")
