"""`kernelproof db`: look after the database."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernelproof.cli.commands import CommandLine
from kernelproof.cli.declaring import Argument, Option
from kernelproof.cli.options import JsonOption, SameFileOption, StorageOptions, named_file
from kernelproof.report.plain import json_line, say
from kernelproof.wording import counted

if TYPE_CHECKING:
    from kernelproof.db.maintenance import Trouble

db_app = CommandLine(help="Look after the database: check, backup, vacuum, upgrade.")


@db_app.command("check")
def check(*, as_json: JsonOption = False, storage: StorageOptions) -> None:
    """Look for damage, edited or missing texts, missing triggers, and figures that differ from the rows.

    Each is named. Exit code 1 when something is wrong.
    """
    from kernelproof.db.maintenance import check as check_database

    found: list[Trouble] = []

    def tell(trouble: Trouble) -> None:
        found.append(trouble) if as_json else say(f"{trouble.where}: {trouble.what}")

    troubles = check_database(storage.database, tell)
    if as_json:
        print(json_line({"troubles": found}))
    else:
        say(counted(troubles, "trouble") if troubles else "nothing wrong")
    if troubles:
        raise typer.Exit(1)


@db_app.command("backup")
def backup(
    *,
    target: Annotated[Path | None, Argument("The copy to write.", metavar="FILE")] = None,
    output: SameFileOption = None,
    storage: StorageOptions,
) -> None:
    """Write a copy of the database, of one moment, while other commands go on writing.

    An existing file is never overwritten. A backup that is killed leaves no file of that name.
    """
    from kernelproof.db.maintenance import backup as copy

    target = named_file(target, output)
    say(f"{target}: {copy(storage.file, target):,} bytes")


@db_app.command("vacuum")
def vacuum(*, storage: StorageOptions) -> None:
    """Write the database anew, without its free space. Needs as much disk again for the time.

    Exit code 3 when another process is at work on it.
    """
    from kernelproof.db.maintenance import vacuum as clean

    path = storage.file
    done = clean(path)
    say(f"{path}: {done.before:,} bytes before, {done.after:,} after")


@db_app.command("upgrade")
def upgrade(
    *,
    dry_run: Annotated[bool, Option("Say what would be done, and do nothing.")] = False,
    backup_to: Annotated[
        Path | None,
        Option(
            "The backup that is made before [default: beside the database, named by its schema].",
            names=("--backup-to", "-o"),
        ),
    ] = None,
    storage: StorageOptions,
) -> None:
    """Bring the database to this version's schema, after a backup.

    Every command that opens a database upgrades it; this one makes a backup before. Of a database on a server
    it makes none: take pg_dump before.
    """
    from kernelproof.db.maintenance import plan_upgrade, upgrade_database

    place = storage.database
    planned = plan_upgrade(place, backup_to)
    if not planned.steps:
        say(f"{place} has the newest schema, {planned.newest}: nothing to do")
        return
    say(f"{place} has schema {planned.found}; to {planned.newest} it takes:")
    for step in planned.steps:
        say(f"  {step}")
    copy = planned.backup
    if dry_run:
        say(
            f"before that, a backup would be made: {copy}"
            if copy
            else "no backup would be made: take pg_dump"
        )
        return
    upgrade_database(place, planned)
    say(f"done; as it was before it is in {copy}" if copy else "done, in one transaction")
