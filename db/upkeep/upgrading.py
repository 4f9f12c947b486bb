"""`kernelproof db upgrade`: to the newest schema, after a backup."""

from __future__ import annotations

from pathlib import Path

from kernelproof.db.connection import HEAD, open_as_it_is, open_database, steps_from
from kernelproof.db.upkeep.copying import backup
from kernelproof.types import FrozenRecord


class Upgrade(FrozenRecord):
    """The steps of an upgrade."""

    found: str
    """The schema that the file has."""
    newest: str
    steps: tuple[str, ...]
    """The migrations that are missing, a line for each."""
    backup: Path
    """The copy of the file as it was."""


def plan(path: Path, to: Path | None = None) -> Upgrade:
    """The upgrade that a file needs. `to`: the name of the backup, by default the file's with its schema.

    Raises StoreError for another program's file, and for a schema newer than this program knows.
    """
    database = open_as_it_is(path)
    try:
        found = database.schema()
    finally:
        database.close()
    copy = path.with_name(f"{path.stem}-{found or 'empty'}{path.suffix}")
    return Upgrade(
        found=found or "none", newest=HEAD, steps=tuple(steps_from(found, path)), backup=to or copy
    )


def carry_out(path: Path, planned: Upgrade) -> None:
    """Makes the backup, then brings the file to the newest schema."""
    if planned.steps:
        backup(path, planned.backup)
        open_database(path, create=False).close()
