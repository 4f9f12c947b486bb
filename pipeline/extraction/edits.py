"""An answer that changes the program it was shown: a unified diff, or SEARCH/REPLACE blocks.

The old lines must stand in the program exactly as the answer has them. Line numbers only choose between
places that are alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kernelproof.extraction.blocks import fenced
from kernelproof.wording import counted

MAX_TEXT = 400_000
"""Characters of an answer in which edits are looked for."""
NEAR = 40
"""Lines by which a hunk's number may be off, where its old lines stand at several places."""
_HUNK = re.compile(r"@@ -(\d{1,9})(?:,\d{1,9})? \+\d{1,9}(?:,\d{1,9})? @@")
_ENDS = ("--- ", "+++ ", "diff --git", "index ", "@@", "***")
_SEARCH, _MIDDLE = re.compile(r"<{5,9} ?SEARCH"), re.compile(r"={5,9}")
_REPLACE = re.compile(r">{5,9} ?REPLACE")


@dataclass(frozen=True)
class Edited:
    """The program after the edits of an answer, or the reason why there is none."""

    code: str | None
    reason: str = ""
    """Why the edits do not fit."""


@dataclass(frozen=True)
class _Edit:
    name: str
    old: tuple[str, ...]
    new: tuple[str, ...]
    line: int | None = None
    """Where the old lines begin, from 1, as the answer says."""


def edited(text: str, base: str | None) -> Edited | None:
    """`base` with the edits that an answer (thinking set aside) describes; None where it describes none."""
    if len(text) > MAX_TEXT:
        return None
    lines = text.split("\n")
    kind, edits = "a set of SEARCH/REPLACE blocks", list(_blocks(lines))
    if not edits:
        kind, edits = "a diff", _hunks(text, lines)
    if not edits:
        return None
    if base is None:
        return Edited(None, f"the answer is {kind}, and the question showed no program that it could change")
    code, moved = base.split("\n"), 0
    for edit in edits:
        place = _place(code, edit, moved)
        if isinstance(place, str):
            return Edited(None, f"the answer is {kind} that does not fit: {edit.name}: {place}")
        code[place : place + len(edit.old)] = edit.new
        moved += len(edit.new) - len(edit.old)
    return Edited("\n".join(code))


def _place(code: Sequence[str], edit: _Edit, moved: int) -> int | str:
    """Where the old lines begin, from 0; else why they fit nowhere."""
    said = None if edit.line is None else edit.line - 1 + moved
    if not edit.old:  # of an insertion the number is the line before it
        if said is None or not 0 <= said + 1 <= len(code):
            return "it has no line of the program, so its place is unknown"
        return said + 1
    count = len(edit.old)
    starts = [i for i, line in enumerate(code) if line == edit.old[0]]
    places = [i for i in starts if tuple(code[i : i + count]) == edit.old]
    if len(places) == 1:
        return places[0]
    if not places:
        known = set(code)
        missing = next((line for line in edit.old if line not in known), None)
        if missing is None:
            return "its old lines do not stand in the program in this order"
        return f"the line {missing.strip()[:80]!r} is not in the program"
    near = sorted(places, key=lambda i: abs(i - (said or 0)))
    is_clear = said is not None and abs(near[0] - said) < abs(near[1] - said)
    if said is not None and is_clear and abs(near[0] - said) <= NEAR:
        return near[0]
    return f"its old lines stand at {counted(len(places), 'place')} of the program"


def _blocks(lines: Sequence[str]) -> Iterator[_Edit]:
    """SEARCH/REPLACE blocks."""
    part, old, new, number = 0, [""], [""], 0
    for line in lines:
        word = line.strip()
        if _SEARCH.fullmatch(word):
            part, old, new = 1, [], []
        elif part == 1 and _MIDDLE.fullmatch(word):
            part = 2
        elif part == 2 and _REPLACE.fullmatch(word):
            number += 1
            yield _Edit(f"block {number}", tuple(old), tuple(new))
            part = 0
        elif part:
            (old if part == 1 else new).append(line)


def _hunks(text: str, lines: list[str]) -> list[_Edit]:
    """The hunks of the diffs in fences; where there is none, of the text itself."""
    blocks = [b.code.split("\n") for b in fenced(text) if b.language == "diff" or _HUNK.search(b.code)]
    found: list[_Edit] = []
    for block in blocks or [lines]:
        found += _hunks_of(block, len(found), in_fence=bool(blocks))
    return found


def _hunks_of(lines: Sequence[str], before: int, *, in_fence: bool) -> list[_Edit]:
    """A fence without a header is one hunk without a number."""
    starts = [i for i, line in enumerate(lines) if line.startswith("@@")]
    if not starts and in_fence and any(line[:1] in "+-" and line.strip() for line in lines):
        headers = sum(line.startswith(_ENDS) for line in lines[:4])
        starts = [headers - 1]
    edits: list[_Edit] = []
    for start in starts:
        head = _HUNK.match(lines[start]) if start >= 0 else None
        body: list[str] = []
        for line in lines[start + 1 :]:
            if line.startswith(_ENDS) or (line and line[0] not in " +-\\"):
                break
            body.append(line)
        while body and not body[-1]:
            body.pop()
        old = tuple(line[1:] for line in body if line[:1] in ("", " ", "-"))
        new = tuple(line[1:] for line in body if line[:1] in ("", " ", "+"))
        if old != new:
            name = f"hunk {before + len(edits) + 1}"
            edits.append(_Edit(name, old, new, int(head[1]) if head else None))
    return edits
