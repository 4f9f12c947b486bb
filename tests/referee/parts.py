"""Records of the corpus from several runs (shares, machines, days), added up to one table.

A record counts for a member of one device as its file is now. So what is still to be judged is known, and a
verdict on an earlier wording is not taken for one on the present one.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import kernelproof
from kernelproof.hashing import sha256_text
from tests.referee.corpus import Confusion, Member

Record = dict[str, Any]
"""What one verdict came to, as scripts/confusion.py writes it."""
_NEEDED = ("kind", "name", "device", "status", "miss", "verifier", "candidate")


class PartsError(ValueError):
    """Parts that cannot be added up; the message says why, and what to do."""


@dataclass
class Sum:
    """What several parts come to for one device."""

    device: str
    confusion: Confusion = field(default_factory=Confusion)
    missing: list[str] = field(default_factory=list)
    """Members that no part judged as they are now."""
    stale: list[str] = field(default_factory=list)
    """Members that were judged in another wording only; they are among the missing."""
    gone: list[str] = field(default_factory=list)
    """Judged, but no longer in the corpus."""
    repeated: Counter[str] = field(default_factory=Counter)
    """How often each member was judged that was so more than once."""
    unsteady: list[str] = field(default_factory=list)
    """Members that ended as their header says in one run and otherwise in another: they count as a miss."""
    verifiers: Counter[str] = field(default_factory=Counter)
    places: Counter[str] = field(default_factory=Counter)
    """Verdicts by the GPU or processor that they came from."""

    @property
    def faultless(self) -> bool:
        """Whether every member was judged, and ended as its header says."""
        told = self.confusion
        return not (self.missing or told.misses or told.accepted or told.refused)

    def lines(self) -> list[str]:
        """The table, and what else a reader of the sum has to know."""
        judged = sum(self.confusion.table.values())
        lines = [f"device {self.device}: {judged} of {judged + len(self.missing)} members judged", ""]
        lines += self.confusion.lines()
        lines += [f"judged by {name}: {count}" for name, count in sorted(self.verifiers.items())]
        lines += [f"judged on {name}: {count}" for name, count in sorted(self.places.items())]
        lines += [f"  {name}: {why}" for name, why in self.confusion.misses]
        times = [f"{name} ({count} times)" for name, count in sorted(self.repeated.items())]
        for what, names in (
            ("judged more than once", times),
            ("ended in several ways", self.unsteady),
            ("judged in another wording only", self.stale),
            ("no longer in the corpus", self.gone),
            ("missing", self.missing),
        ):
            if names:
                lines.append(f"{what}: {len(names)}")
                lines += [f"  {name}" for name in names]
        return lines


def wording(member: Member) -> str:
    """A hash of what decides a member's fate: its file, its problem and its settings."""
    return sha256_text("\0".join((member.source, member.problem.sha256, member.settings.model_dump_json())))


@cache
def code() -> str:
    """A hash of the verifier's own program: its version stays while it is worked on."""
    root = Path(kernelproof.__file__).parent
    files = sorted(path for path in root.rglob("*.py"))
    return sha256_text(
        "\n".join(f"{path.relative_to(root)} {sha256_text(path.read_text())}" for path in files)
    )


def read_part(path: Path) -> list[Record]:
    """The records of one file. Raises PartsError where it is none of scripts/confusion.py."""
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise PartsError(f"{path}: {error}") from None
    if not isinstance(found, list) or not all(isinstance(record, dict) for record in found):
        raise PartsError(f"{path} is not a list of records as --json writes it")
    for record in found:
        absent = [key for key in _NEEDED if key not in record]
        if absent:
            raise PartsError(f"{path}: a record lacks {', '.join(absent)}; judge anew with --fresh")
    return found


def the_device(records: Iterable[Record], wanted: str | None) -> str:
    """The device to add up for. Raises PartsError when the records are of several and none is `wanted`."""
    devices = sorted({record["device"] for record in records})
    if wanted is not None:
        return wanted
    if len(devices) != 1:
        listed = " and ".join(devices) or "no device"
        raise PartsError(f"the parts hold records of {listed}: say --device")
    return str(devices[0])


def add(
    records: list[Record],
    chosen: Mapping[str, Member],
    device: str,
    *,
    there: Container[str],
    mixed: bool = False,
) -> Sum:
    """The sum of all records of one device over the `chosen` members, by their ids; `there`: the ids of all.

    Raises PartsError when verdicts are of several verifiers or policies, unless `mixed`.
    """
    total, ended = Sum(device), dict[str, list[Record]]()
    stale: set[str] = set()
    for record in records:
        name = f"{record['kind']}/{record['name']}"
        member = chosen.get(name)
        if record["device"] != device:
            continue
        if member is None:
            total.gone += [name] if name not in there and name not in total.gone else []
        elif record["candidate"] != wording(member):
            stale.add(name)
        else:
            ended.setdefault(name, []).append(record)
            total.places[record.get("place") or "an unknown place"] += 1
            if record["verifier"]:  # a lost referee names none
                total.verifiers[record["verifier"]] += 1
    if len(total.verifiers) > 1 and not mixed:
        counts = ", ".join(f"{name} ({count})" for name, count in sorted(total.verifiers.items()))
        raise PartsError(f"verdicts of several verifiers or policies: {counts}; --mixed adds them up anyway")
    for name, member in chosen.items():
        found = ended.get(name)
        if not found:
            total.missing.append(name)
            continue
        _count(total, member, found)
    total.stale = sorted(stale & set(total.missing))
    return total


def _count(total: Sum, member: Member, found: list[Record]) -> None:
    """One member with all its records: one that is not as it should be outweighs all others."""
    bad = [record for record in found if record["miss"] is not None]
    if len(found) > 1:
        total.repeated[member.id] = len(found)
    if len({(record["status"], record["miss"] is None) for record in found}) > 1:
        total.unsteady.append(member.id)
    worst = bad[0] if bad else found[-1]
    total.confusion.note(member, worst["status"], worst["miss"])
