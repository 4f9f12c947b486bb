"""`kernelproof db check`: is the file sound, does it protect its evidence, and does it hold every text?"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator

from sqlalchemy import Connection, Table, text
from sqlalchemy.exc import DatabaseError

from kernelproof.db.columns import unescaped
from kernelproof.db.connection import HEAD, open_as_it_is, steps_from
from kernelproof.db.ddl import DEEDS, refusing
from kernelproof.db.models import APPEND_ONLY
from kernelproof.db.tables import Base
from kernelproof.errors import UsageError
from kernelproof.types import FrozenRecord
from kernelproof.workspace import DatabasePlace

Tell = Callable[["Trouble"], None]
MOST_DAMAGE = 20
"""Lines about a damaged file."""
MOST_LOOKUPS = 100
"""Edited texts whose users are looked up."""
_MESSAGE = "MESSAGE"
"""Stands for the message of a trigger, which differs by table."""


class Trouble(FrozenRecord):
    """Something that is wrong."""

    where: str
    """The row, text or trigger: `trigger checks_no_update`."""
    what: str
    """The trouble with it, in words."""


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
        from kernelproof.db.scores.cells import altered

        try:
            for cell in altered(self._connection):
                self._tell(
                    f"score_cells of run {cell.run}, problem {cell.problem}, chunk {cell.chunk}",
                    "the leaderboard's copy is not what the tables say",
                )
        except (TypeError, ValueError) as error:
            self._tell("score_facts", f"the leaderboard's copy cannot be read ({error})")

    def _users(self, key: str) -> Iterator[str]:
        """Some rows that refer to a text."""
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
    """The columns that refer to a long text."""
    return [
        (table, column.name)
        for table in Base.metadata.sorted_tables
        for column in table.columns
        for key in column.foreign_keys
        if key.target_fullname == "texts.sha256"
    ]
