"""Column types, and columns by what they hold; the comment of a column is its documentation."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from json import dumps, loads
from typing import Any

from sqlalchemy import BigInteger, Boolean, Float, ForeignKey, Integer, String, Text, TypeDecorator, text
from sqlalchemy.engine import Dialect
from sqlalchemy.orm import MappedColumn, Session, mapped_column

SHA256 = String(64)

Int64 = BigInteger().with_variant(Integer(), "sqlite")
"""An integer of 64 bits. SQLite numbers rows by itself only where the type is called INTEGER."""

UtcTime = String(32)
"""UTC, ISO 8601 with milliseconds: sorts as text."""


def utc_now() -> str:
    """Now, as `UtcTime` columns hold it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


ESCAPED = "\ufdd0json:"
"""How a text begins that PostgreSQL could not hold as it is: the rest is a JSON string. U+FDD0 is no
character, so no text begins like this by accident; one that does is escaped itself."""


class AnyText(TypeDecorator[str]):
    """Any Python string. Models and compilers print what they like; a result must not be lost because it is
    not valid Unicode.

    Lone surrogates, which UTF-8 cannot hold, become a BLOB in SQLite. PostgreSQL's text has neither these nor
    NUL, and gets `ESCAPED` and the text as JSON.
    """

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> Any:
        if value is None:
            return None
        if dialect.name == "postgresql":
            return _escaped(value)
        try:
            value.encode()
        except UnicodeEncodeError:
            return value.encode("utf-8", "surrogatepass")
        return value

    def process_result_value(self, value: Any, dialect: Dialect) -> str | None:
        # An edited database may hold any bytes: they must still be read, to be named as altered.
        if isinstance(value, bytes):
            return _decoded(value)
        return unescaped(value) if value and dialect.name == "postgresql" else value


class Json(TypeDecorator[Any]):
    """A JSON value as text. Infinity and NaN stay themselves (Python's spelling), Python None is NULL."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        return None if value is None else dumps(value, separators=(",", ":"))

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:
        return None if value is None else loads(value)


def _escaped(value: str) -> str:
    plain = "\0" not in value and not value.startswith(ESCAPED)
    try:
        value.encode()
    except UnicodeEncodeError:
        plain = False
    return value if plain else ESCAPED + dumps(value)


def unescaped(value: str) -> str:
    """The text that PostgreSQL holds as `value`."""
    if not value.startswith(ESCAPED):
        return value
    try:
        return str(loads(value.removeprefix(ESCAPED)))
    except ValueError:
        return value  # edited


def _decoded(value: bytes) -> str:
    try:
        return value.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return value.decode("utf-8", "replace")


def clock(session: Session) -> float:
    """Unix time by the database's clock: SQLite's is this machine's."""
    if session.get_bind().dialect.name == "postgresql":
        return float(session.execute(text("SELECT extract(epoch FROM clock_timestamp())")).scalar_one())
    return time.time()


def any_text(comment: str, *, primary_key: bool = False) -> MappedColumn[Any]:
    return mapped_column(AnyText, primary_key=primary_key, comment=comment)


def digest(comment: str, **more: Any) -> MappedColumn[Any]:
    """A SHA-256. `more`: of `mapped_column`."""
    return mapped_column(SHA256, comment=comment, **more)


def reference(target: str, comment: str, **more: Any) -> MappedColumn[Any]:
    """The key of a row of another table: `runs.id`. `more`: of `mapped_column`."""
    return mapped_column(ForeignKey(target), comment=comment, **more)


def keyword(comment: str) -> MappedColumn[Any]:
    """A word of a closed vocabulary of ours, plain ASCII."""
    return mapped_column(String, comment=comment)


def json(comment: str) -> MappedColumn[Any]:
    return mapped_column(Json, comment=comment)


def number(comment: str) -> MappedColumn[Any]:
    """A float."""
    return mapped_column(Float, comment=comment)


def count(comment: str) -> MappedColumn[Any]:
    """An integer."""
    return mapped_column(Int64, comment=comment)


def boolean(comment: str) -> MappedColumn[Any]:
    return mapped_column(Boolean, comment=comment)


def text_key(comment: str) -> MappedColumn[Any]:
    """The key of a row of `texts`."""
    return mapped_column(SHA256, ForeignKey("texts.sha256"), comment=comment)


def row_id() -> MappedColumn[int]:
    return mapped_column(Int64, primary_key=True, comment="Row number.")


def created_at(comment: str = "When the row was written (UTC, ISO 8601).") -> MappedColumn[Any]:
    """A moment."""
    return mapped_column(UtcTime, comment=comment)


def verification_key(comment: str = "The verification it belongs to.") -> MappedColumn[int]:
    return mapped_column(Int64, ForeignKey("verifications.id"), primary_key=True, comment=comment)


def position_key(comment: str) -> MappedColumn[int]:
    """A row's place among those of its verification."""
    return mapped_column(Int64, primary_key=True, comment=comment)
