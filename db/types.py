"""Column types that keep exactly what they are given."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import String, Text, TypeDecorator
from sqlalchemy.engine import Dialect

SHA256 = String(64)
"""A hex SHA-256."""

UtcTime = String(32)
"""UTC, ISO 8601 with milliseconds: sorts as text."""


def utc_now() -> str:
    """Now, as `UtcTime` columns hold it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class Words(TypeDecorator[str]):
    """Any Python string. Lone surrogates, which UTF-8 and so SQLite text cannot hold, become a BLOB.

    Models and compilers print what they like; a result must not be lost because it is not valid Unicode.
    """

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> Any:
        if value is None:
            return None
        try:
            value.encode()
        except UnicodeEncodeError:
            return value.encode("utf-8", "surrogatepass")
        return value

    def process_result_value(self, value: Any, dialect: Dialect) -> str | None:
        # An edited database may hold any bytes: they must still be read, to be named as altered.
        return _decoded(value) if isinstance(value, bytes) else value


class Json(TypeDecorator[Any]):
    """A JSON value as text. Infinity and NaN stay themselves (Python's spelling), Python None is NULL."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        return None if value is None else json.dumps(value, separators=(",", ":"))

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:
        return None if value is None else json.loads(value)


def _decoded(value: bytes) -> str:
    try:
        return value.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return value.decode("utf-8", "replace")
