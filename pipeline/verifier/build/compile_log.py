"""Making a compiler's output fit to store and show: no scratch paths, no random names, bounded."""

from __future__ import annotations

import re
from pathlib import Path

MAX_LOG_CHARS = 200_000
_TAIL_CHARS = 40_000

_VARYING = (
    (re.compile(r"\btmpxft_[0-9a-f]+_[0-9a-f]+-\d+_"), "tmpxft_"),  # nvcc
    (re.compile(r"\bcc[A-Za-z0-9]{6}\.(?=(?:o|s|ii|i|res|cdtor|ltrans)\b)"), "cc."),  # gcc
    (re.compile(r" >\.step\d+ 2>&1; s=.*"), ""),
    (re.compile(r"^ptxas info\s*: Compile time = .*\n?", re.MULTILINE), ""),
)
"""What differs from run to run or is ours, each with what stands for it."""
_KILLED = re.compile(
    r"^(?:\S*: fatal error: (?:Killed|Terminated) signal terminated program \S+"
    r"|collect2: fatal error: \S+ terminated with signal (?:9|15) .*"
    r"|nvcc error +: '\S+' died due to signal (?:9|15)\b.*"
    r"|\S+: error: unable to execute command: (?:Killed|Terminated)"
    r"|step \d+: ended by signal (?:9|15)"
    r"|FAILED: \[code=(?:137|143)\].*)$",
    re.MULTILINE,
)
_FAILED = re.compile(r"^FAILED: (?:\[code=\d+\] )?(\S+)", re.MULTILINE)
_ERROR = re.compile(r"\berror\b(?!\S*/)")
"""Not in the path of a command."""


def clean_log(text: str, scratch: Path) -> str:
    """`text`, which holds no control characters (the sandbox removes them), the same from run to run.

    Paths below `scratch` become relative. The compilers' temporary names lose their random part, and their
    times are left out. Over MAX_LOG_CHARS the middle is left out: the first errors matter most, the last
    lines say how it ended.
    """
    text = text.replace(f"{scratch}/", "").replace(str(scratch), ".")
    for pattern, replacement in _VARYING:
        text = pattern.sub(replacement, text)
    return shorten(text)


def killed(log: str) -> str:
    """The line that says that a compiler was killed; or nothing. Sources can have a compiler write one."""
    found = _KILLED.search(log)
    return found[0] if found is not None else ""


def failures(log: str) -> set[str]:
    """The outputs that ninja could not have made."""
    return set(_FAILED.findall(log))


def first_error(log: str) -> str:
    """The first line of a log that says `error`, bounded; else its first line."""
    lines = [line for line in log.splitlines() if line.strip()]
    return next((line for line in lines if _ERROR.search(line)), lines[0] if lines else "")[:500]


def shorten(text: str, limit: int = MAX_LOG_CHARS) -> str:
    """At most `limit` characters, the middle replaced by a line that says how much is missing."""
    if len(text) <= limit:
        return text
    tail = min(_TAIL_CHARS, limit // 4)
    head = limit - tail - 80
    return f"{text[:head]}\n[... {len(text) - head - tail} characters left out ...]\n{text[-tail:]}"
