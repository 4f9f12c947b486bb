"""Walking along the chain, from its end to its start: which rows are not as they were stored.

Backwards, because an attempt that ended several times has several links, and only the newest tells how its
row is now.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Connection, text

from kernelproof.db.chain.contents import (
    ENDED,
    EVIDENCE,
    MIGRATION,
    RECORDS,
    chained_rows,
    contents,
    link_hash,
    migration_content,
)
from kernelproof.db.chain.naming import named
from kernelproof.db.portions import PORTION

Tell = Callable[[str, str], None]
"""Takes a row's name, and its trouble in words."""

_LINKS = text(
    "SELECT id, record, number, content, sha256, created FROM hash_chain WHERE id < :below "
    "ORDER BY id DESC LIMIT :most"
)
_LAST = text("SELECT MAX(id) FROM hash_chain")


_UNREADABLE = ""
"""The `record` of a link that was edited so that it is none any more."""


@dataclass
class Walked:
    """The findings of a walk."""

    links: int = 0
    last: str = ""
    """The hash of the last link, in hex: the anchor. Empty for an empty chain."""
    migrated: tuple[int, str] | None = None
    """How many links were made when the chain was introduced, and when that was."""
    anchor_at: int | None = None
    """The link whose hash is the anchor that was looked for."""


class _Link(NamedTuple):
    id: int
    record: str
    number: int
    content: bytes
    sha256: bytes
    created: str | None


class _Seen:
    """Numbers that were met: a bit for each, a kilobyte for 8,192 in a row."""

    def __init__(self) -> None:
        self._pages: defaultdict[int, bytearray] = defaultdict(lambda: bytearray(1024))

    def add(self, number: int) -> bool:
        """False where it was there before."""
        if number in self:
            return False
        self._pages[number >> 13][(number >> 3) & 1023] |= 1 << (number & 7)
        return True

    def __contains__(self, number: int) -> bool:
        page = self._pages.get(number >> 13)
        return page is not None and bool(page[(number >> 3) & 1023] >> (number & 7) & 1)


def walk(connection: Connection, tell: Tell, anchor: str | None = None) -> Walked:
    """Compares every link with its row and with the link before it, and looks for rows without a link.

    `anchor`: the hash of a link to look out for, in hex.
    """
    walker = _Walker(connection, tell, anchor)
    later: _Link | None = None
    for some in walker.links():
        walker.compare(some)
        for link in some:
            if later is not None:
                walker.join(later, link)
            later = link
    if later is not None:
        walker.join(later, None)
    walker.look_for_strangers()
    return walker.walked


class _Walker:
    def __init__(self, connection: Connection, tell: Tell, anchor: str | None) -> None:
        self._connection, self._tell, self._anchor = connection, tell, anchor
        self._seen: defaultdict[str, _Seen] = defaultdict(_Seen)
        self.walked = Walked()

    def links(self) -> Iterator[list[_Link]]:
        """The links, the last one first, some at a time."""
        below = (self._connection.execute(_LAST).scalar() or 0) + 1
        while rows := self._connection.execute(_LINKS, {"below": below, "most": PORTION}).all():
            yield [self._link(row) for row in rows]
            below = rows[-1][0]

    def _link(self, row: Any) -> _Link:
        link = _Link(*row)
        walked, sha256 = self.walked, link.sha256 if isinstance(link.sha256, bytes) else b""
        walked.links += 1
        walked.last = walked.last or sha256.hex()
        if sha256 and sha256.hex() == self._anchor:
            walked.anchor_at = link.id
        kinds = (link.record, str), (link.number, int), (link.content, bytes), (link.sha256, bytes)
        known = link.record == MIGRATION or link.record in RECORDS
        if known and all(isinstance(value, kind) for value, kind in kinds):
            return link
        self._tell(f"link {link.id}", "it is no link of ours: it was edited")
        return _Link(link.id, _UNREADABLE, 0, b"", sha256, None)

    def compare(self, links: list[_Link]) -> None:
        """Links with the rows that they cover, as these are now."""
        by_record: defaultdict[str, list[_Link]] = defaultdict(list)
        for link in links:
            if link.record == _UNREADABLE:
                continue
            if link.record == MIGRATION:
                self._compare_migration(link)
            elif self._seen[link.record].add(link.number):
                by_record[link.record].append(link)
            elif link.record not in ENDED:
                self._tell(named(self._connection, link.record, link.number), f"link {link.id} repeats it")
        for record, some in by_record.items():
            found = contents(self._connection, record, [link.number for link in some])
            for link in some:
                self._compare_row(link, found.get(link.number))

    def _compare_row(self, link: _Link, found: bytes | None) -> None:
        if found == link.content:
            return
        name = named(self._connection, link.record, link.number)
        if found is None:
            self._tell(name, f"deleted: link {link.id} is about it, and the row is gone")
        else:
            parts = EVIDENCE.get(link.record)
            whose = f"it, or a row of it in {', '.join(parts)}, was" if parts else "it was"
            self._tell(name, f"{whose} edited after it was stored (link {link.id})")

    def _compare_migration(self, link: _Link) -> None:
        if link.content != migration_content(link.created or ""):
            self._tell(f"link {link.id}", "it was edited")
        self.walked.migrated = link.number, link.created or "unknown"

    def join(self, link: _Link, before: _Link | None) -> None:
        """A link with the one before it."""
        start = before.id + 1 if before else 1
        if link.id != start:
            gone = f"link {start}" if link.id == start + 1 else f"links {start} to {link.id - 1}"
            self._tell(gone, "deleted: the chain has a gap there")
            return
        if link.record == _UNREADABLE:
            return
        expected = link_hash(before.sha256 if before else b"", link.record, link.number, link.content)
        if link.sha256 != expected:
            self._tell(f"link {link.id}", "its hash does not follow from the link before it")

    def look_for_strangers(self) -> None:
        """Rows that no link is about."""
        for record in RECORDS:
            for number in chained_rows(self._connection, record).yield_per(1000).scalars():
                if number not in self._seen[record]:
                    self._tell(
                        named(self._connection, record, number), "inserted: no link of the chain is about it"
                    )
