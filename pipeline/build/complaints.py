"""What g++ and ninja say about one source, read line by line: an error is understood whole or not at all."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Complaint:
    """One error of a compiler."""

    line: int
    """In the source."""
    message: str
    """In single quotes as ASCII has them."""
    text: str
    """The whole line."""


_STATUS = re.compile(r"\[\d+/\d+\] |ninja: ")
_FAILED = re.compile(r"FAILED: (?:\[code=\d+\] )?(?P<output>\S+)\s*")
_PLACED = re.compile(
    r"(?P<file>[^\s:][^:]*):(?P<line>\d+):(?:\d+:)? (?P<kind>(?:fatal )?error|warning|note): (?P<message>.*)"
)
_CONTEXT = re.compile(
    r"\S+: (?:In (?:\w+ ){0,3}(?:function|constructor|destructor|lambda)\b.*|At global scope):"
    r"|compilation terminated\."
)
"""What g++ says of the place of an error. Not: instantiations of templates, and inclusions."""
_QUOTES = {0x2018: "'", 0x2019: "'"}
_EXCERPT = re.compile(r" +(?:\d*|\+\+\+) \|.*")


def failures(log: str) -> dict[str, list[str]]:
    """Each output that was not made, as ninja names it, to what was said then, the command left out."""
    found: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in log.splitlines():
        failed = _FAILED.fullmatch(line)
        if failed is not None:
            current = found.setdefault(failed["output"], [])
        elif _STATUS.match(line):
            current = None
        elif current is not None:
            current.append(line)
    return {output: lines[1:] for output, lines in found.items()}


def complaints(lines: list[str], source: str) -> list[Complaint] | None:
    """The errors that g++ has with `source`. None where it says anything else than plain errors there."""
    found = []
    for line in lines:
        placed = _PLACED.fullmatch(line)
        if placed is None:
            if line and not _CONTEXT.fullmatch(line) and not _EXCERPT.fullmatch(line):
                return None
        elif placed["kind"].endswith("error"):
            if placed["file"] != source:
                return None
            found.append(Complaint(int(placed["line"]), placed["message"].translate(_QUOTES), line))
    return found
