"""Takes a model's thinking out of its answer: chain of thought is never sent back to it."""

from __future__ import annotations

import re

_TAG = re.compile(
    r"(?P<open>^[ \t]*<(?:think|thinking)(?:\s[^<>]*)?>)|(?P<close></(?:think|thinking)\s*>)",
    re.IGNORECASE | re.MULTILINE,
)
_FINAL = re.compile(r"<\|channel\|>final(?:\s[^<]*)?<\|message\|>")
_MARKER = re.compile(r"<\|(?:start|end|return|channel|message|constrain|call)\|>")


def without_thinking(text: str) -> str:
    """The answer proper of a response's text.

    Removes think blocks (nested, or with attributes), everything before a closing tag whose opening tag the
    server swallowed, everything after an opening tag that is never closed, and in Harmony-formatted text
    everything before the final channel. An opening tag counts at the start of a line, a lone closing tag at
    the end of one, so that tags inside a program's strings survive. Linear in the text's length.
    """
    finals = list(_FINAL.finditer(text))
    if finals:
        text = _MARKER.split(text[finals[-1].end() :], maxsplit=1)[0]
    kept: list[str] = []
    depth, position = 0, 0
    for tag in _TAG.finditer(text):
        if tag["open"]:
            if depth == 0:
                kept.append(text[position : tag.start()])
            depth += 1
        elif depth > 0:
            depth -= 1
        elif not _quoted(text, tag.start(), tag.end()):
            kept.clear()
        else:
            continue
        position = tag.end()
    if depth == 0:
        kept.append(text[position:])
    return "".join(kept).strip()


def _quoted(text: str, start: int, end: int) -> bool:
    """True when a quote or backtick stands right before or after text[start:end]."""
    return any(neighbour in "\"'`" for neighbour in text[max(0, start - 1) : start] + text[end : end + 1])
