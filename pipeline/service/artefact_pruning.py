"""Old artefacts are removed from their store: those that nobody used for long, or the least recently used.

An artefact is a record and the libraries that it names. The database says which records are needed, and when
they were used; a library was used when a record was that names it. Needed entries stay, and so do those
put or used within RECENT_S. Daemons go on meanwhile: what one of them was about to use is built again, as
always when an artefact is lost.

Records are forgotten by the database, then removed; libraries follow. So a pruning that is killed leaves
nothing but what the next one removes, and two at once remove each entry once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from kernelproof.db.artefacts import Artefacts, Uses
from kernelproof.db.portions import portions
from kernelproof.service.artefact_store import ArtefactLost, ArtefactStore, Entry, StoreAway
from kernelproof.service.artefacts import RECORD_BYTES, libraries
from kernelproof.types import FrozenRecord

RECENT_S = 3600.0
"""Entries that were put or used within so many seconds stay, whatever is asked. The time is longer than
REFRESH_S: the libraries that a builder has just put are there when their record is."""
THREADS = 16
"""Requests to the store at once."""


class Amount(FrozenRecord):
    """So much in a store: records and libraries are entries."""

    entries: int
    bytes: int

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> Amount:
        """The amount of these."""
        sizes = [each.bytes for each in entries]
        return cls(entries=len(sizes), bytes=sum(sizes))


class Pruned(FrozenRecord):
    """The entries that a pruning removed, or would remove."""

    removed: Amount
    left: Amount
    trouble: str = ""
    """Why some could not be removed; empty where all were."""


@dataclass(frozen=True)
class Survey:
    """The entries of a store, and when each was used."""

    entries: list[Entry]
    uses: Uses
    last: dict[str, float]
    """Unix time of the last use of each hash."""
    needed: frozenset[str]
    """Records that evaluations need, and their libraries."""

    @property
    def now(self) -> float:
        """Unix time of the survey, by the database's clock."""
        return self.uses.now

    def used(self, entry: Entry) -> float:
        """When an entry was used the last time."""
        return max(entry.written, self.last.get(entry.sha256, entry.written))

    def is_record(self, entry: Entry) -> bool:
        """Whether it is a record that the database knows."""
        return entry.sha256 in self.uses.last

    def may_go(self, entry: Entry) -> bool:
        """Whether nothing needs it, and nobody used it of late."""
        return entry.sha256 not in self.needed and self.used(entry) < self.now - RECENT_S

    def doomed(self, unused_s: float | None, most_bytes: int | None) -> list[Entry]:
        """The entries to be removed, records first: those not used for so long, and then the least recently
        used, until `most_bytes` are left. Files that killed publishers left go always."""
        before = None if unused_s is None else self.now - unused_s
        gone = [each for each in self.entries if self.may_go(each) and self._is_old(each, before)]
        if most_bytes is not None:
            rest = sorted(
                set(self.entries) - set(gone), key=lambda each: (self.used(each), self._order(each))
            )
            left = sum(each.bytes for each in rest)
            for each in rest:
                if left <= most_bytes:
                    break
                if self.may_go(each):
                    gone.append(each)
                    left -= each.bytes
        return sorted(gone, key=self._order)

    def _is_old(self, entry: Entry, before: float | None) -> bool:
        return not entry.sha256 or (before is not None and self.used(entry) <= before)

    def _order(self, entry: Entry) -> tuple[bool, str]:
        return (not self.is_record(entry), entry.place)


def survey(store: ArtefactStore, known: Artefacts) -> Survey:
    """Lists a store, and reads the records in it. Raises StoreAway."""
    entries = store.entries()
    uses = known.uses()
    last, needed = dict(uses.last), set(uses.needed)
    written = {each.sha256: each.written for each in entries}
    records = sorted(written.keys() & uses.last.keys())
    with ThreadPoolExecutor(THREADS) as threads:
        for record, names in zip(
            records, threads.map(lambda one: _libraries(one, store), records), strict=True
        ):
            used = max(written[record], uses.last[record])
            for name in names:
                last[name] = max(used, last.get(name, used))
            if record in uses.needed:
                needed |= names
    return Survey(entries, uses, last, frozenset(needed))


def prune(
    store: ArtefactStore, known: Artefacts, found: Survey, *, unused_s: float | None, most_bytes: int | None
) -> Pruned:
    """Removes what `Survey.doomed` names, as far as nothing needs it by now."""
    doomed = found.doomed(unused_s, most_bytes)
    removed: list[Entry] = []
    trouble = ""
    spared: set[str] = set()
    with ThreadPoolExecutor(THREADS) as threads:
        for some in portions(doomed):
            records = {each.sha256 for each in some if found.is_record(each)}
            kept = records - known.let_go(records) if records else set()
            for record in kept:
                spared |= {record, *_libraries(record, store)}
            tried = [each for each in some if each.sha256 not in spared]
            for each, why in zip(tried, threads.map(lambda one: _removed(one, store), tried), strict=True):
                if why is None:
                    removed.append(each)
                trouble = trouble or why or ""
            if trouble:
                break
    return _pruned(found, removed, trouble)


def would_prune(found: Survey, *, unused_s: float | None, most_bytes: int | None) -> Pruned:
    """The result that `prune` would have. Removes nothing."""
    return _pruned(found, found.doomed(unused_s, most_bytes), "")


def _pruned(found: Survey, removed: Sequence[Entry], trouble: str) -> Pruned:
    left = set(found.entries) - set(removed)
    return Pruned(removed=Amount.of(removed), left=Amount.of(left), trouble=trouble)


def _removed(entry: Entry, store: ArtefactStore) -> str | None:
    """None where it was removed; else why not, empty where somebody else did, or uses it again."""
    try:
        return None if store.remove(entry) else ""
    except StoreAway as error:
        return str(error)


def _libraries(record: str, store: ArtefactStore) -> frozenset[str]:
    try:
        data = store.look(record, RECORD_BYTES)
    except ArtefactLost:
        return frozenset()
    return frozenset() if data is None else libraries(data)
