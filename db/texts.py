"""Long texts, stored once under their SHA-256."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from sqlalchemy import bindparam, select
from sqlalchemy.orm import Session

from kernelproof.db.models import Text
from kernelproof.db.rows import add_missing, batched
from kernelproof.hashing import sha256_text

_KEPT = "kernelproof_kept_texts"
"""Of a session, which is one transaction: the keys of the texts that are stored for certain."""


def keep(session: Session, text: str) -> str:
    """Stores `text` unless it is there; returns its SHA-256."""
    key = sha256_text(text)
    kept: set[str] = session.info.setdefault(_KEPT, set())
    if key in kept:  # an answer that is a program is both
        return key
    size = len(text.encode("utf-8", "surrogatepass"))
    add_missing(session, Text, sha256=key, body=text, bytes=size)
    kept.add(key)
    return key


def keep_optional(session: Session, text: str | None) -> str | None:
    """The same for a text that may be missing."""
    return None if text is None else keep(session, text)


_TEXTS = select(Text.sha256, Text.body).where(Text.sha256.in_(bindparam("keys", expanding=True)))


class Library:
    """Reads texts back and remembers which of them are no longer what their key says."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._alterations: dict[str, None] = {}
        self._read: dict[str, str] = {}

    def read_ahead(self, keys: Iterable[str | None]) -> None:
        """Reads the texts under these keys at once, so that `get` does not ask for each."""
        for some in batched(dict.fromkeys(key for key in keys if key is not None)):
            rows = self._session.connection().execute(_TEXTS, {"keys": some})
            self._read.update((key, body) for key, body in rows)

    def another(self) -> Library:
        """One that shares what was read, and has its own memory."""
        made = Library(self._session)
        made._read = self._read
        return made

    def get(self, key: str, what: str) -> str:
        """The text under `key`; empty when it is gone. `what` names it in an alteration."""
        if key not in self._read:
            self.read_ahead([key])
        text = self._read.get(key)
        if text is None:
            self.note(f"{what}: the text {key} is gone from the database")
            return ""
        actual = sha256_text(text)
        if actual != key:
            self.note(f"{what}: the stored text was altered, its SHA-256 is {actual} and should be {key}")
        return text

    def get_optional(self, key: str | None, what: str) -> str | None:
        """The same for a text that may be missing."""
        return None if key is None else self.get(key, what)

    def get_json(self, key: str | None, what: str, otherwise: Any) -> Any:
        """The JSON value under `key`; `otherwise` when there is none, or none that parses any more."""
        try:
            return json.loads(self.get(key, what)) if key is not None else otherwise
        except json.JSONDecodeError:
            self.note(f"{what}: the stored text is no longer JSON")
            return otherwise

    def note(self, alteration: str) -> None:
        """Remembers an alteration, once."""
        self._alterations[alteration] = None

    def __iter__(self) -> Iterator[str]:
        return iter(self._alterations)
