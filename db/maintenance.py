"""Maintenance of a database, behind the commands `db check`, `db backup`, `db upgrade` and `db vacuum`."""

from __future__ import annotations

import hashlib
import os
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

from sqlalchemy import Connection, Table, text
from sqlalchemy.exc import DatabaseError

from kernelproof.db.columns import unescaped
from kernelproof.db.connection import HEAD, open_as_it_is, open_database, steps_from
from kernelproof.db.ddl import DEEDS, refusing
from kernelproof.db.leases import is_free, is_gone, new_owner
from kernelproof.db.models import APPEND_ONLY, Base
from kernelproof.db.sqlite import explained, is_busy, require_file
from kernelproof.errors import NothingStored, StoreError, UsageError
from kernelproof.types import FrozenRecord
from kernelproof.workspace import DatabasePlace

Tell = Callable[["Trouble"], None]
MOST_DAMAGE = 20
MOST_LOOKUPS = 100
"""Edited texts whose users are looked up."""
_MESSAGE = "MESSAGE"
"""Stands for the message of a trigger, which differs by table."""


class Trouble(FrozenRecord):
    where: str
    """The row, text or trigger: `trigger checks_no_update`."""
    what: str


def check(place: DatabasePlace, tell: Tell) -> int:
    """Looks at all of it, in one state, while others may go on writing; the number of troubles.

    `tell` gets each trouble as soon as it is seen. Raises UsageError where the file is missing or its schema
    is an older one, StoreError where it is a newer one.
    """
    database = open_as_it_is(place, any_text=True)
    try:
        if (found := database.schema()) != HEAD:
            steps_from(found, place)
            raise UsageError(
                f"database {place} has schema {found or 'none'}, and a check needs {HEAD}: run "
                "kernelproof db upgrade first"
            )
        return database.read(lambda session: _Checking(session.connection(), tell).done())
    finally:
        database.close()


class _Checking:
    def __init__(self, connection: Connection, tell: Tell) -> None:
        self._connection, self._tell_of = connection, tell
        self._troubles = 0

    def _tell(self, where: str, what: str) -> None:
        self._troubles += 1
        self._tell_of(Trouble(where=where, what=what))

    def done(self) -> int:
        """Everything, unless the file is so damaged that its rows cannot be read."""
        sqlite = self._connection.dialect.name == "sqlite"
        if sqlite and not self._sound():
            return self._troubles
        if sqlite:
            self._references()
        self._triggers(sqlite)
        self._texts(sqlite)
        self._scores()
        return self._troubles

    def _sound(self) -> bool:
        """SQLite's own check of the file's structure."""
        try:
            query = f"PRAGMA integrity_check({MOST_DAMAGE})"
            said = [str(line) for line in self._connection.exec_driver_sql(query).scalars()]
        except DatabaseError as error:
            said = [str(error.orig)]
        if said != ["ok"]:
            for line in said:
                self._tell("file", f"damaged: {line}")
        return said == ["ok"]

    def _references(self) -> None:
        """Rows that refer to rows which are not there, texts included."""
        found = self._connection.exec_driver_sql("PRAGMA foreign_key_check").yield_per(1000)
        for table, row, parent, key in found:
            column = self._column(table, key)
            self._tell(f"{table} row {row}", f"its {column} refers to a row of {parent} that is gone")

    def _column(self, table: str, key: int) -> str:
        keys = self._connection.exec_driver_sql(f'PRAGMA foreign_key_list("{table}")')
        return next((str(row[3]) for row in keys if row[0] == key), "reference")

    def _triggers(self, sqlite: bool) -> None:
        """The triggers that refuse changes of evidence: there, switched on, and with the text that they have
        to have, apart from the message."""
        query = "SELECT name, sql, '' FROM sqlite_master WHERE type = 'trigger'"
        if not sqlite:
            query = (
                "SELECT tgname, pg_get_triggerdef(t.oid, true), prosrc FROM pg_trigger t "
                "JOIN pg_proc p ON p.oid = tgfoid JOIN pg_class c ON c.oid = tgrelid "
                "WHERE NOT tgisinternal AND tgenabled IN ('O', 'A') "
                "AND c.relnamespace = current_schema()::regnamespace"
            )
        there = {name: (sql, body) for name, sql, body in self._connection.exec_driver_sql(query)}
        for table in APPEND_ONLY:
            for deed in DEEDS:
                found = there.get(name := f"{table}_no_{deed}")
                sql, body = refusing(table, deed, _MESSAGE, on_server=not sqlite)
                wanted = (sql, body and f" BEGIN {body} END ")
                if found is None:
                    self._tell(f"trigger {name}", f"gone: rows of {table} could be changed")
                elif not all(map(_is_same, wanted, found)):
                    self._tell(f"trigger {name}", f"altered: rows of {table} could be changed")

    def _texts(self, sqlite: bool) -> None:
        """Long texts, each under the hash of its content."""
        odd = "surrogateescape" if sqlite else "surrogatepass"
        looked_up = 0
        for key, body in self._connection.execute(text("SELECT sha256, body FROM texts")).yield_per(100):
            if isinstance(body, str):
                data = (body if sqlite else unescaped(body)).encode("utf-8", odd)
            else:
                data = bytes(body)
            if hashlib.sha256(data).hexdigest() == key:
                continue
            users = ", ".join(self._users(key)) if looked_up < MOST_LOOKUPS else ""
            looked_up += 1
            self._tell(f"text {key}" + (f" ({users})" if users else ""), "edited after it was stored")

    def _scores(self) -> None:
        """The leaderboard's packed copy of the tables of evidence."""
        from kernelproof.db.scores.score_table import altered

        try:
            for cell in altered(self._connection):
                self._tell(
                    f"score_cells of run {cell.run}, problem {cell.problem}, chunk {cell.chunk}",
                    "the leaderboard's copy is not what the tables say",
                )
        except (TypeError, ValueError) as error:
            self._tell("score_facts", f"the leaderboard's copy cannot be read ({error})")

    def _users(self, key: str) -> Iterator[str]:
        for table, column in text_columns():
            name = "verification_id" if "verification_id" in table.primary_key.columns else "id"
            query = text(f"SELECT {name} FROM {table.name} WHERE {column} = :key LIMIT 1")
            row = self._connection.execute(query, {"key": key}).scalar()
            if row is not None:
                yield f"{column} of {table.name} row {row}"


def _is_same(wanted: str, found: str) -> bool:
    """Whether a statement is the wanted one, whatever its message."""
    return re.fullmatch(re.escape(wanted).replace(_MESSAGE, "[^']*"), found) is not None


def text_columns() -> list[tuple[Table, str]]:
    return [
        (table, column.name)
        for table in Base.metadata.sorted_tables
        for column in table.columns
        for key in column.foreign_keys
        if key.target_fullname == "texts.sha256"
    ]


_PARTIAL = ".partial"


def backup(path: Path, target: Path) -> int:
    """Writes the copy and returns its size in bytes.

    The copy has its name only when all of it is on the disk. Raises UsageError where something has that name
    already, StoreError where the database cannot be read or the copy cannot be written.
    """
    require_file(path)
    if target.is_dir():
        raise UsageError(f"{target} is a directory; name the file that is to be written in it")
    _refuse(target)
    with explained(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        _remove_left_over(target)
        partial = target.with_name(f".{target.name}.{new_owner()}{_PARTIAL}")
        try:
            partial.touch(0o600)
            _copy(path, partial)
            partial.chmod(path.stat().st_mode & 0o777)
            _sync(partial)
            _give_name(partial, target)
            _sync(target.parent)
        finally:
            partial.unlink(missing_ok=True)
    return target.stat().st_size


def _refuse(target: Path) -> None:
    if os.path.lexists(target):
        raise UsageError(f"{target} is there already, and a backup overwrites nothing; choose another name")


def _remove_left_over(target: Path) -> None:
    """Removes the halves that killed processes of this machine left."""
    start = f".{target.name}."
    for file in target.parent.iterdir():
        if file.name.startswith(start) and file.name.endswith(_PARTIAL):
            owner = file.name.removeprefix(start).removesuffix(_PARTIAL)
            if is_gone(owner):
                with suppress(OSError):
                    file.unlink()


def _copy(path: Path, partial: Path) -> None:
    """All pages in one step: writers go on beside it, and the copy is of the state at its start."""
    with explained(path), closing(sqlite3.connect(path, timeout=30.0)) as source:
        source.execute("PRAGMA query_only=ON")
        with closing(sqlite3.connect(partial)) as copy:
            source.backup(copy)
            # The copy keeps the mode of the original; a write-ahead log that is not folded in would be lost.
            copy.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    for ending in ("-wal", "-shm"):
        partial.with_name(partial.name + ending).unlink(missing_ok=True)


def _give_name(partial: Path, target: Path) -> None:
    """The name, unless somebody took it meanwhile."""
    try:
        target.hardlink_to(partial)
    except FileExistsError:
        _refuse(target)
    except OSError:  # a file system without hard links
        _refuse(target)
        partial.rename(target)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Upgrade(FrozenRecord):
    found: str
    """The schema that the database has."""
    newest: str
    steps: tuple[str, ...]
    backup: Path | None
    """The copy of the file as it was. None for a database on a server, of which its own tools make copies."""


def plan_upgrade(place: DatabasePlace, to: Path | None = None) -> Upgrade:
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


def upgrade_database(place: DatabasePlace, planned: Upgrade) -> None:
    """Makes the backup of a file, then brings the database to the newest schema, in one transaction."""
    if planned.steps:
        if isinstance(place, Path) and planned.backup is not None:
            backup(place, planned.backup)
        open_database(place, create=False).close()


class Vacuumed(FrozenRecord):
    """Sizes in bytes, of the file with its write-ahead log."""

    before: int
    after: int


def vacuum(path: Path) -> Vacuumed:
    """Writes the file anew.

    Raises StoreError where another process is at work on it: a vacuum holds the write lock all along, and
    others would wait for it until they give up.
    """
    require_file(path)
    before = _size(path)
    with explained(path), closing(sqlite3.connect(path, timeout=1.0, isolation_level=None)) as connection:
        try:
            _refuse_workers(connection, path)
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        except sqlite3.OperationalError as error:
            if is_busy(error):
                raise StoreError(_at_work(path)) from None
            raise
    return Vacuumed(before=before, after=_size(path))


def _at_work(path: Path) -> str:
    return (
        f"another process is writing to {path}; end it or wait for it, then run kernelproof db vacuum again"
    )


def _refuse_workers(connection: sqlite3.Connection, path: Path) -> None:
    """Raises StoreError where a living process holds a lease."""
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'leases'").fetchone():
        return
    for owner, renewed in connection.execute("SELECT DISTINCT owner, renewed FROM leases"):
        if not is_free(owner, renewed):
            raise StoreError(_at_work(path))


def _size(path: Path) -> int:
    files = (path, path.with_name(f"{path.name}-wal"))
    return sum(file.stat().st_size for file in files if file.exists())
