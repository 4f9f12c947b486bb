"""`kernelproof db upgrade`: to the newest schema, after a backup."""

from __future__ import annotations

from pathlib import Path

from kernelproof.db.connection import HEAD, open_as_it_is, open_database, steps_from
from kernelproof.db.upkeep.copying import backup
from kernelproof.errors import NothingStored, UsageError
from kernelproof.types import FrozenRecord
from kernelproof.workspace import DatabasePlace


class Upgrade(FrozenRecord):
    """The steps of an upgrade."""

    found: str
    """The schema that the database has."""
    newest: str
    steps: tuple[str, ...]
    """The migrations that are missing, a line for each."""
    backup: Path | None
    """The copy of the file as it was. None for a database on a server, of which its own tools make copies."""


def plan(place: DatabasePlace, to: Path | None = None) -> Upgrade:
    """The upgrade that a database needs. `to`: the name of the backup, by default the file's with its schema.

    Raises StoreError for another program's database, and for a schema newer than this program knows;
    NothingStored for an empty one on a server; UsageError where `to` is given for a database on a server.
    """
    if to is not None and not isinstance(place, Path):
        raise UsageError(f"{place} is on a server; make the backup by pg_dump, and leave --backup-to out")
    database = open_as_it_is(place)
    try:
        found = database.schema()
    finally:
        database.close()
    if found is None and not isinstance(place, Path):
        raise NothingStored(f"no attempts are stored in {place} yet: its first command makes the tables")
    copy = (
        place.with_name(f"{place.stem}-{found or 'empty'}{place.suffix}") if isinstance(place, Path) else None
    )
    return Upgrade(
        found=found or "none", newest=HEAD, steps=tuple(steps_from(found, place)), backup=to or copy
    )


def carry_out(place: DatabasePlace, planned: Upgrade) -> None:
    """Makes the backup of a file, then brings the database to the newest schema, in one transaction."""
    if planned.steps:
        if isinstance(place, Path) and planned.backup is not None:
            backup(place, planned.backup)
        open_database(place, create=False).close()
