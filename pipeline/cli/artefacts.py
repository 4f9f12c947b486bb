"""`kernelproof artefacts`: see what builders have published, and remove what is old."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from kernelproof.bounds import DAY_S, DAYS
from kernelproof.cli.commands import CommandLine
from kernelproof.cli.options import JsonOption, StorageOptions, nonempty_text, number, takes_options

if TYPE_CHECKING:
    from kernelproof.service.artefact_pruning import Amount

AGES = (1, 7, 30, 90)
"""Days for which `info` says how much was not used."""

artefacts_app = CommandLine(help="See what builders have published, and remove what is old.")
ArtefactsOption = Annotated[
    str,
    typer.Option(
        parser=nonempty_text,
        metavar="URL",
        help="Where builders publish: the directory or address that workers are given.",
    ),
]


@artefacts_app.command("info")
@takes_options
def info(*, artefacts: ArtefactsOption, storage: StorageOptions, as_json: JsonOption = False) -> None:
    """Say how much lies there, how much of it evaluations need, and since when the rest was not used."""
    from kernelproof.cli.service_storage import stored_service
    from kernelproof.report.layout import print_facts
    from kernelproof.report.plain import json_line, screen
    from kernelproof.service.artefact_places import open_artefacts
    from kernelproof.service.artefact_pruning import Amount, survey
    from kernelproof.wording import counted

    with stored_service(storage.database, only_read=True) as service:
        found = survey(open_artefacts(artefacts, create=False), service.artefacts)
    amounts = {"all": Amount.of(found.entries)}
    amounts["needed"] = Amount.of(each for each in found.entries if each.sha256 in found.needed)
    for days in AGES:
        amounts[f"not used for {counted(days, 'day')}"] = Amount.of(found.doomed(days * DAY_S, None))
    if as_json:
        print(json_line({name: amount.model_dump() for name, amount in amounts.items()}))
    else:
        print_facts(screen(), {name: _words(amount) for name, amount in amounts.items()})


@artefacts_app.command("prune")
@takes_options
def prune(
    *,
    artefacts: ArtefactsOption,
    older_than: Annotated[
        float | None, number(DAYS, "Remove what was not used for so many days.", metavar="<days>")
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(
            metavar="<size>", help="Keep at most so many bytes, the last used: 500MiB, 20GiB, bytes."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be removed, and remove nothing.")
    ] = False,
    storage: StorageOptions,
    as_json: JsonOption = False,
) -> None:
    """Remove artefacts that nobody used for long, or the least recently used. Daemons may go on meanwhile.

    Artefacts that an evaluation needs stay, and so do those used within the last hour. Exit code 3 when
    something cannot be removed.
    """
    from kernelproof.cli.service_storage import stored_service
    from kernelproof.errors import MachineError, UsageError
    from kernelproof.report.plain import json_line, say
    from kernelproof.service.artefact_places import open_artefacts
    from kernelproof.service.artefact_pruning import prune as prune_artefacts
    from kernelproof.service.artefact_pruning import survey, would_prune
    from kernelproof.workspace import parse_bytes

    if older_than is None and to is None:
        raise UsageError("what is to be removed? give --older-than <days>, --to <size>, or both")
    most = parse_bytes(to, "--to") if to is not None else None
    unused = older_than * DAY_S if older_than is not None else None
    with stored_service(storage.database, only_read=dry_run) as service:
        place, known = open_artefacts(artefacts, create=False), service.artefacts
        found = survey(place, known)
        if dry_run:
            done = would_prune(found, unused_s=unused, most_bytes=most)
        else:
            done = prune_artefacts(place, known, found, unused_s=unused, most_bytes=most)
    if as_json:
        print(json_line(done.model_dump()))
    else:
        say(f"{'would remove' if dry_run else 'removed'} {_words(done.removed)}; left {_words(done.left)}")
    if done.trouble:
        raise MachineError(f"not all could be removed: {done.trouble}")


def _words(amount: Amount) -> str:
    from kernelproof.report.layout import size
    from kernelproof.wording import counted

    return f"{counted(amount.entries, 'entry', 'entries')}, {size(amount.bytes)}"
