"""Making a compiler's output fit to store and show: no control characters, no scratch paths, bounded."""

from __future__ import annotations

import re
from pathlib import Path

MAX_LOG_CHARS = 200_000
_TAIL_CHARS = 40_000

_ESCAPE_SEQUENCE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # control sequences: colours, cursor movement
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"  # operating system commands: titles, links
    r"|\x1b[@-_]?"
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Control characters apart from tab and newline, and marks that reverse the direction of text."""

_TEMPORARY_NAMES = (
    (re.compile(r"\btmpxft_[0-9a-f]+_[0-9a-f]+-\d+_"), "tmpxft_"),  # nvcc
    (re.compile(r"\bcc[A-Za-z0-9]{6}\.(?=(?:o|s|ii|i|res|cdtor|ltrans)\b)"), "cc."),  # gcc
)


def clean_log(text: str, scratch: Path) -> str:
    """`text` without escape sequences and control characters, the same from one run to the next.

    Paths below `scratch` become relative and the compilers' temporary names lose their random part. Over
    MAX_LOG_CHARS the middle is left out: the first errors matter most, the last lines say how it ended.
    """
    text = _ESCAPE_SEQUENCE.sub("", text.replace("\r\n", "\n"))
    text = _CONTROL.sub("", text).replace(f"{scratch}/", "").replace(str(scratch), ".")
    for pattern, replacement in _TEMPORARY_NAMES:
        text = pattern.sub(replacement, text)
    return shorten(text)


def shorten(text: str, limit: int = MAX_LOG_CHARS) -> str:
    """At most `limit` characters, the middle replaced by a line that says how much is missing."""
    if len(text) <= limit:
        return text
    tail = min(_TAIL_CHARS, limit // 4)
    head = limit - tail - 80
    return f"{text[:head]}\n[... {len(text) - head - tail} characters left out ...]\n{text[-tail:]}"
