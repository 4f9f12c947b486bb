"""What a compiler sees of a source and of its headers, read from what `g++ -E -dN` writes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from threading import Lock

from pipeline.build.declarations import Declarations, read_declarations
from pipeline.hashing import sha256_text

_MARKER = re.compile(r'^# (\d+) "((?:[^"\\\n]|\\.)*)"[ \d]*\n', re.MULTILINE)
_TOKEN = re.compile(r""""(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)+'|\w+|[^\w\s]""")


@dataclass(frozen=True)
class Preprocessed:
    """One source after the preprocessor."""

    own: tuple[str, ...]
    """Tokens that stand in the source itself, or come from a macro there."""
    headers: str
    """The text of all its headers."""

    @cached_property
    def declared(self) -> Declarations:
        """What the headers bring."""
        return _remembered(self.headers)


def read_preprocessed(text: str, source: str, lines: int) -> Preprocessed | None:
    """The first `lines` lines of `source` and its headers; None where the text does not tell them apart."""
    marks = list(_MARKER.finditer(text))
    own: list[str] = []
    headers: list[str] = []
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    for mark, end in zip(marks, ends, strict=False):
        if mark[2] != source:
            headers.append(text[mark.end() : end])
        elif int(mark[1]) <= lines:
            kept = text[mark.end() : end].split("\n")[: lines - int(mark[1]) + 1]
            own += _TOKEN.findall("\n".join(kept))
    return Preprocessed(tuple(own), "".join(headers)) if headers else None


_KEPT = 4
"""Sources of one model have the same headers, mostly, and reading them takes two seconds."""
_known: dict[str, Declarations] = {}
_lock = Lock()


def _remembered(headers: str) -> Declarations:
    key = sha256_text(headers)
    with _lock:
        found = _known.pop(key, None) or read_declarations(headers)
        _known[key] = found
        while len(_known) > _KEPT:
            del _known[next(iter(_known))]
    return found
