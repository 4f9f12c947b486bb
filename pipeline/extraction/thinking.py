"""Setting a model's thinking aside: `<think>` tags in their many forms, and Harmony channels.

The rules, in order:

- A tag in quotes or backticks is a mention. So is a tag in a closed fence, unless it stands at the start of
  a line and the fence's content does not parse as Python (then it is not inside a string either).
- Tags nest. Where the nesting does not come out even, openers in the middle of a line inside the thinking
  are taken for mentions, and the count is made again.
- A closer without an opener ends a thinking part that began with the text.
- A thinking part that never ends makes the response truncated: a draft is not an answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from kernelproof.extraction.budget import Budget
from kernelproof.extraction.remarks import remark

_TAG = re.compile(
    r"<(?P<close>/)?(?:think|thinking|thought|reasoning)(?=[\s>])(?P<attributes>[^<>\n]{0,200})>",
    re.IGNORECASE,
)
_FENCE_LINE = re.compile(r"^[ \t>]*(?P<run>`{3,}|~{3,})(?P<info>[^\n]*)$", re.MULTILINE)


@dataclass(frozen=True)
class Answer:
    """A response's text without its thinking. `unclosed`: the thinking never ended, so there is no answer."""

    text: str
    thinking: str = ""
    unclosed: bool = False
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Tag:
    start: int
    end: int
    opens: bool
    at_line_start: bool


def set_thinking_aside(text: str, budget: Budget) -> Answer:
    """The answer within `text`. Linear in its length, apart from the parses that `budget` bounds."""
    answer = _final_channel(text)
    if answer.unclosed:
        return answer
    tags = list(_tags(answer.text, budget))
    if not tags:
        return answer
    spans = _thinking_spans(tags, len(answer.text), mentions=False)
    if spans[-1][1] is None and any(not tag.opens for tag in tags):
        spans = _thinking_spans(tags, len(answer.text), mentions=True)
    warnings = answer.warnings + (() if tags[0].opens else (remark("missing_think_opener"),))
    if spans[-1][1] is None:
        return Answer("", answer.text, True, (*warnings, remark("unclosed_thinking")))
    return _without(answer.text, [(start, end) for start, end in spans if end is not None], warnings)


def _without(text: str, spans: list[tuple[int, int]], warnings: tuple[str, ...]) -> Answer:
    kept: list[str] = []
    thinking: list[str] = []
    position = 0
    for start, end in spans:
        kept.append(text[position:start])
        thinking.append(text[start:end])
        position = end
    kept.append(text[position:])
    return Answer("\n".join(kept), "\n".join(thinking), False, (*warnings, remark("thinking_removed")))


def _thinking_spans(tags: list[_Tag], length: int, *, mentions: bool) -> list[tuple[int, int | None]]:
    """Start and end of each thinking part; an end of None says that it never ends.

    With `mentions`, an opener inside thinking counts only at the start of a line.
    """
    spans: list[tuple[int, int | None]] = []
    depth = start = 0
    for tag in tags:
        if tag.opens and depth == 0:
            depth, start = 1, tag.start
        elif tag.opens:
            depth += 1 if tag.at_line_start or not mentions else 0
        elif depth > 1:
            depth -= 1
        elif depth == 1:
            depth = 0
            spans.append((start, tag.end))
        else:  # never opened: everything so far was thinking
            spans = [(0, tag.end)]
    if depth:
        spans.append((start, None))
    return spans


def _tags(text: str, budget: Budget) -> Iterator[_Tag]:
    """The tags that count. Looks at each fence at most once, and at few characters around each tag."""
    fences = list(_closed_fences(text))
    index = 0
    holds_strings: dict[int, bool] = {}
    for match in _TAG.finditer(text):
        start, end = match.span()
        if text[start - 1 : start] in {"'", '"', "`"} or match["attributes"].endswith("/"):
            continue
        before = text[max(0, start - 200) : start]
        at_line_start = not before.rpartition("\n")[2].strip() and (start <= 200 or "\n" in before)
        while index < len(fences) and fences[index][1] <= start:
            index += 1
        if index < len(fences) and fences[index][0] <= start:
            if index not in holds_strings:
                holds_strings[index] = budget.tree(text[slice(*fences[index])]) is not None
            if holds_strings[index] or not at_line_start:
                continue
        yield _Tag(start, end, match["close"] is None, at_line_start)


def _closed_fences(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of the content of each fence that is opened and closed.

    A line that could only open a fence, inside an open one, opens anew: the earlier one was never closed.
    """
    opened: tuple[str, int] | None = None
    for match in _FENCE_LINE.finditer(text):
        run, info = match["run"], match["info"].strip()
        if opened is None or info:
            opened = (run, match.end() + 1)
        elif run[0] == opened[0][0] and len(run) >= len(opened[0]):
            yield opened[1], match.start()
            opened = None


_CHANNEL = re.compile(
    r"<\|channel\|>[ \t]*(?P<name>\w+)[^<\n]{0,200}(?:<\|constrain\|>[^<\n]{0,80})?<\|message\|>"
)
_STARTS_HARMONY = re.compile(r"\s*<\|(?:start|channel|message)\|>")
_MESSAGE_END = re.compile(r"<\|(?:end|return|start|call|channel)\|>")
_END_TOKENS = re.compile(r"(?:\s|<\|[a-z_]{1,32}\|>|</s>){1,100}\Z")
# What is left where a server dropped the special tokens and kept the words between them.
_STRIPPED_START = re.compile(r"\s*(?:assistant)?analysis(?=[A-Z])")
_STRIPPED_FINAL = re.compile(r"assistant(?:<\|channel\|>)?final")


def _final_channel(text: str) -> Answer:
    """The final channel of a Harmony conversation (github.com/openai/harmony), markers kept or stripped."""
    if _STARTS_HARMONY.match(text):
        messages = list(_CHANNEL.finditer(text))
        final = next((message for message in reversed(messages) if message["name"] == "final"), None)
        if final is not None:
            end = _MESSAGE_END.search(text, final.end())
            answer = text[final.end() : end.start() if end else len(text)]
            return Answer(answer, text[: final.start()], False, (remark("channels_removed"),))
        if messages:
            return Answer("", text, True, (remark("unclosed_thinking"),))
    if _STRIPPED_START.match(text):
        finals = list(_STRIPPED_FINAL.finditer(text))
        if not finals:
            return Answer("", text, True, (remark("unclosed_thinking"),))
        return Answer(
            text[finals[-1].end() :], text[: finals[-1].start()], False, (remark("channels_removed"),)
        )
    tail = text[-4000:]
    stripped = _END_TOKENS.sub("", tail)
    if "<" in tail[len(stripped) :]:
        return Answer(text[: len(text) - len(tail)] + stripped + "\n")
    return Answer(text)
