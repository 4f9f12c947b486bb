"""Where a program may be in an answer: fenced blocks as Markdown defines them, then looser spans; and edits,
an answer that changes the program it was shown: a unified diff, or SEARCH/REPLACE blocks.

A block is a stretch of text and how it was found. Nothing here parses Python or decides what is a program.
The old lines of an edit must stand in the program exactly as the answer has them. Line numbers only choose
between places that are alike.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from markdown_it import MarkdownIt

from kernelproof.wording import counted

# Only fences and block quotes: a list item's fence is found by its own indent (with the rule for
# indented code off), and HTML around a fence must not hide it. Inline parsing is not needed.
_MARKDOWN = MarkdownIt("zero").enable(["fence", "blockquote"]).disable("inline")

_PYTHON = frozenset({"python", "py", "python2", "python3", "py3", "ipython", "ipython3", "pycon"})
_NATIVE = frozenset(
    {"cpp", "c++", "cc", "cxx", "c", "cuda", "cu", "cuda-cpp", "objective-c", "objectivec", "hpp"}
)


@dataclass(frozen=True)
class Block:
    code: str
    start: int
    """Character offset in the answer; in a block quote or list it may lie on the fence's line."""
    end: int
    language: str = ""
    """`python`, `native`, `diff`, `json`, another word of the info string in lower case, or empty."""
    opened: bool = True
    """False: there is no opening fence before it."""
    closed: bool = True
    """False: it runs to the end of the answer without a closing fence."""


def language_of(info: str) -> str:
    """The language that a fence's info string names: its first word, without braces, dot and attributes."""
    word = re.split(r"[\s,;:{}=]", info.strip().lstrip("{").lstrip(".").lower(), maxsplit=1)[0]
    if word in _PYTHON:
        return "python"
    if word in _NATIVE:
        return "native"
    return "diff" if word in {"diff", "patch", "udiff"} else word


# Blank lines and comments, then what starts no prose: a docstring, an import, a definition, an assignment.
_FIRST_CODE = re.compile(
    r"(?:[ \t]*(?:\#[^\n]*)?\n)*"
    r"(?:[rRbBfFuU]{0,2}(?:\"\"\"|\'\'\')"
    r"|import[ \t]+[\w.]+(?:[ \t]+as[ \t]+\w+)?[ \t]*(?:[,;\#\\][^\n]*)?(?:\n|\Z)"
    r"|from[ \t]+\.*[\w.]*[ \t]+import[ \t]+[\w(*]"
    r"|(?:async[ \t]+)?def[ \t]+\w+[ \t]*\(|class[ \t]+\w+[ \t]*[(:]|@\w[\w.]*(?:\(|[ \t]*\n)"
    r"|[A-Za-z_][\w.]*[ \t]*=(?!=))"
)


def begins_as_program(text: str) -> bool:
    """True when the first line that is no comment is one of Python and not of prose, JSON or a fence."""
    return _FIRST_CODE.match(text) is not None


def fenced(text: str) -> list[Block]:
    """The fenced blocks of the answer, in order, as CommonMark reads them."""
    lines = text.split("\n")
    offsets = [0]
    for line in lines:
        offsets.append(offsets[-1] + len(line) + 1)
    blocks: list[Block] = []
    for token in _MARKDOWN.parse(text):
        if token.type == "fence" and token.map is not None:
            first, last = token.map
            closer = lines[last - 1].lstrip(" \t>").rstrip() if last - 1 > first else ""
            closed = len(closer) >= len(token.markup) and not closer.strip(token.markup[0])
            start, end = offsets[min(first + 1, last)], min(offsets[last], len(text))
            blocks.append(Block(token.content, start, end, language_of(token.info), True, closed))
    return blocks


_HEREDOC = re.compile(
    r"^[^\n]{0,200}\b(?:cat|tee|python3?)\b[^\n]{0,200}<<-?[ \t]*\\?[\"']?(?P<word>\w+)[\"']?[^\n]*\n",
    re.MULTILINE,
)


def heredocs(text: str) -> Iterator[Block]:
    """What a shell script writes into files, as `cat > model.py << 'EOF'` does."""
    position = 0
    while opener := _HEREDOC.search(text, position):
        closer = re.compile(rf"^[ \t]*{opener['word']}[ \t]*$", re.MULTILINE).search(text, opener.end())
        if closer is None:
            return
        yield Block(text[opener.end() : closer.start()], opener.end(), closer.start(), "python")
        position = closer.end()


# A fence at the start of a line (an opener, or a closer with or without prose after it) or at the end of one
# (an opener on a prose line, a closer on the last line of code). Tags such as `<answer>`, `<![CDATA[` or
# `<|python_tag|>` are fences too: at the start of a line, before code on it, and at its end, if they close.
_CLOSER = r"</[A-Za-z][^<>\n]{0,60}>|<\|[^<>|\n]{1,40}\|>|\]\]>|\[/[A-Z_]{2,20}\]"
_OPENER = r"<!\[CDATA\[|<[A-Za-z][^<>\n]{0,200}>|\[[A-Z_]{2,20}\]"
_MARK = re.compile(
    r"^[ \t>]*(?:(?:[-*+]|\d{1,4}[.)])[ \t]+)?(?P<run>`{3,}|~{3,})(?P<info>[^`\n]*)$"
    r"|(?P<tail>`{3,}|~{3,})[ \t]*(?P<tail_info>\{?\.?[A-Za-z][\w+#.\-]{0,30}\}?)?[ \t]*$"
    rf"|^[ \t]*(?P<tags>(?:(?:{_OPENER}|{_CLOSER})(?:[ \t]|assistant)*){{1,6}})\n?"
    rf"|(?P<closers>(?:(?:{_CLOSER})[ \t]*){{1,6}})$",
    re.MULTILINE,
)
_MAX_MARKS = 64
_MAX_CLOSERS = 12
_IMPORT = re.compile(r"^(?:import [A-Za-z_][\w.]*(?: as \w+)?(?:,.*)?|from [\w.]+ import .+)$", re.MULTILINE)
_STATEMENT = re.compile(r"^(?:class \w+|def \w+|@\w|[A-Za-z_]\w* = )", re.MULTILINE)
_MAX_STARTS = 6


@dataclass(frozen=True)
class _Mark:
    before: int
    """Where code that this mark closes ends."""
    after: int
    """Where code that this mark opens starts."""
    run: str
    language: str
    may_open: bool


class Spans:
    """Stretches of an answer between what looks like fences, for answers that break Markdown's rules.

    Only stretches that hold `needle` are given, at most 12 for each opening and 64 openings in all, so the
    work is bounded for any text.
    """

    def __init__(self, text: str, needle: str) -> None:
        self._text = text
        self._marks = [_mark(match) for match in deque(_MARK.finditer(text), _MAX_MARKS)]
        self._places = [match.start() for match in re.finditer(re.escape(needle), text)]

    def fenced(self) -> Iterator[list[Block]]:
        """For each mark that may open a block: the blocks it may open, the shortest first."""
        for index, mark in enumerate(self._marks):
            if mark.may_open:
                later = [m for m in self._marks[index + 1 :] if m.run.startswith(mark.run)]
                yield list(self._from(mark.after, later, mark.language, opened=True))

    def bare(self, covered: list[Block]) -> Iterator[list[Block]]:
        """For each line outside `covered` that may start a program: what may follow, shortest first."""
        starts = [match.start() for match in islice(_IMPORT.finditer(self._text), _MAX_STARTS)]
        starts += [match.start() for match in islice(_STATEMENT.finditer(self._text), 1)]
        for start in sorted(set(starts)):
            if not any(block.start <= start < block.end for block in covered):
                yield list(self._from(start, self._marks, "", opened=False))

    def _from(self, start: int, marks: list[_Mark], language: str, *, opened: bool) -> Iterator[Block]:
        ends = [mark.before for mark in marks if mark.before > start][:_MAX_CLOSERS]
        for end in (*ends, len(self._text)):
            index = bisect_left(self._places, start)
            if index < len(self._places) and self._places[index] < end:
                closed = end in ends
                yield Block(self._text[start:end], start, end, language, opened, closed)


def _mark(match: re.Match[str]) -> _Mark:
    if match["tags"] or match["closers"]:
        return _Mark(match.start(), match.end(), "<", "", match["tags"] is not None)
    at_start = match["run"] is not None
    info = (match["info"] if at_start else match["tail_info"]) or ""
    before = match.start() if at_start else match.start("tail")
    after = min(match.end() + 1, len(match.string))
    return _Mark(before, after, match["run"] or match["tail"], language_of(info), at_start or bool(info))


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
