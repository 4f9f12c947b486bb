"""Setting a model's thinking aside, in whatever marks, and what follows the end of its turn.

The rules, in order:

- A mark in quotes or backticks is a mention. So is a mark in a closed fence whose content parses as Python;
  where it does not parse, a tag such as `<think>` counts only at the start of a line.
- Tags nest. Where the nesting does not come out even, openers in the middle of a line inside the thinking
  are taken for mentions, and the count is made again.
- A closer without an opener ends a thinking part that began with the text.
- A thinking part that never ends leaves no answer: what is left to take is for `extract` to decide.
- The answer ends with the model's turn: a question that it goes on to invent, with the answer to it, is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from kernelproof.extraction.normalise import Budget
from kernelproof.extraction.reasons import remark

_TAG = r"(?:\w{1,20}[:_])?(?:think|thinking|thought|reasoning)(?=[\s>])[^<>\n]{0,200}(?<!/)>)"
_MARKS = (
    (
        rf"(?i:<{_TAG}",
        rf"(?i:</{_TAG}",
        "DeepSeek R1, Qwen 3, GLM 4.5, EXAONE Deep, MiniMax, Seed-OSS, LongCat",
    ),
    (r"<\|channel>(?:thought\b)?", r"<channel\|>", "Gemma 4"),
    (r"\[THINK\]", r"\[/THINK\]", "Magistral"),
    ("\u25c1think\u25b7", "\u25c1/think\u25b7", "Kimi-VL"),
    (r"<\|START_THINKING\|>", r"<\|END_THINKING\|>", "Command A Reasoning"),
    (r"(?:<\||\[)begin_of_thought(?:\|>|\])", r"(?:<\||\[)end_of_thought(?:\|>|\])", "Sky-T1, OpenThinker"),
    (r"<\|think(?:_start)?\|>", r"<\|(?:/think|think_end)\|>|<\|end\|>(?=<\|begin\|>)", "Solar Open"),
    (r"<start_working_out>", r"<end_working_out>", "Gemma 3 after Unsloth's GRPO"),
    (r"<unused94>(?:thought\b)?", r"<unused95>", "MedGemma"),
    (r"<\|inner_prefix\|>", r"<\|inner_suffix\|>", "Apertus"),
    (r"\AHere is my thought process:", r"^Here is my response:", "Granite 3.2"),
)
"""What opens thinking, what closes it, and models that write it. Only the first row, of tags in plain
characters, nests, and is mentioned in prose."""
_TURN_ENDS = (
    r"<\|(?:im_end|eot_id|eom_id|eot|endoftext|end_of_text|endofturn|END_OF_TURN_TOKEN)\|>"
    r"|<end_of_turn>|<turn\|>|\[\|endofturn\|\]|<\uff5cend\u2581of\u2581sentence\uff5c>"
    r"|<\|im_start\|>(?:user|system)\b|<\|start_header_id\|>user\b|<start_of_turn>user\b|<\|user\|>|<\uff5cUser\uff5c>|<eos>"
    r"|(?<!\w)\[INST\]|(?:</s>|<\|[a-z_]{1,32}\|>)(?=(?:\s|<\|[a-z_]{1,32}\|>|</s>){0,100}\Z)"
)
_TOLD_TURN = (
    r"^(?:\#\#\# )?(?:Human|User|USER|Instruction):"
    r"(?=(?s:.{0,2000}?)^(?:\#\#\# )?(?:Assistant|ASSISTANT|Response):)|(?<=```)assistant$"
)
_MARK = re.compile(
    "|".join(f"(?P<open{i}>{opener})|(?P<close{i}>{closer})" for i, (opener, closer, _) in enumerate(_MARKS))
    + rf"|(?P<end>(?:{_TURN_ENDS})(?!\s*<\|im_start\|>assistant))|(?P<told>{_TOLD_TURN})",
    re.MULTILINE,
)
_TOKENS = re.compile(r"\s|<[|\w/\uff5c\u2581]{1,40}>")
_FENCE_LINE = re.compile(r"^[ \t>]*(?P<run>`{3,}|~{3,})(?P<info>[^\n]*)$", re.MULTILINE)


@dataclass(frozen=True)
class Answer:
    """A response's text without its thinking. `unclosed`: the thinking never ended, so `text` is no answer
    but what stands before it, and `thinking` is the part that did not end."""

    text: str
    thinking: str = ""
    unclosed: bool = False
    warnings: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    """The parts of `text` between the thinking, as they stand in the response."""


@dataclass(frozen=True)
class _Mark:
    start: int
    end: int
    kind: str
    """`open`, `close`, `end`, or `told` for the end of a turn in words, which counts only after a program."""
    row: int
    """Of `_MARKS`; 0 for the end of a turn."""
    at_line_start: bool


@dataclass
class _Parts:
    """Where the thinking lies, and where the turn ends."""

    spans: list[tuple[int, int]] = field(default_factory=list)
    unclosed: _Mark | None = None
    """The opener of a thinking part that never ends."""
    end: _Mark | None = None


def set_thinking_aside(text: str, budget: Budget) -> Answer:
    """The answer within `text`. Linear in its length, apart from the parses that `Budget` bounds."""
    answer = _final_channel(text)
    if answer is not None:
        return answer
    marks = list(_marks(text, budget))
    parts = _parts(text, marks, mentions=False)
    if parts.unclosed and any(mark.kind == "close" for mark in marks):
        parts = _parts(text, marks, mentions=True)
    warnings: tuple[str, ...] = ()
    if parts.end:
        if _TOKENS.sub("", text[parts.end.end :]):
            warnings = (remark("next_turn_removed"),)
        text = text[: parts.end.start]
    if parts.spans and marks[0].kind == "close":
        warnings += (remark("missing_think_opener"),)
    if opener := parts.unclosed:
        before = _without(text[: opener.start], parts.spans, ())
        warnings += (remark("unclosed_thinking"),)
        return replace(before, thinking=text[opener.end :], unclosed=True, warnings=warnings)
    return _without(text, parts.spans, warnings) if parts.spans else Answer(text, warnings=warnings)


def without_thinking(text: str) -> str:
    """The answer proper of a response's text: what stands outside the thinking, without what follows the
    model's turn. It is what a later question shows of an answer: chain of thought is never sent back."""
    answer = set_thinking_aside(text, Budget())
    return "".join(answer.kept or (answer.text,)).strip()


def _without(text: str, spans: list[tuple[int, int]], warnings: tuple[str, ...]) -> Answer:
    kept: list[str] = []
    thinking: list[str] = []
    position = 0
    for start, end in spans:
        kept.append(text[position:start])
        thinking.append(text[start:end])
        position = end
    kept.append(text[position:])
    warnings += (remark("thinking_removed"),)
    return Answer("\n".join(kept), "\n".join(thinking), False, warnings, tuple(kept))


def _parts(text: str, marks: list[_Mark], *, mentions: bool) -> _Parts:
    """What the marks divide the text into. With `mentions`, a tag that opens inside thinking counts only at
    the start of a line."""
    parts = _Parts()
    depth, opener = 0, None
    for mark in marks:
        if mark.kind in {"end", "told"}:
            if not depth and text[parts.spans[-1][1] if parts.spans else 0 : mark.start].strip():
                parts.end = mark
                break
        elif opener is None and mark.kind == "open":
            depth, opener = 1, mark
        elif opener is None:  # never opened: everything so far was thinking
            parts.spans = [(0, mark.end)]
        elif mark.row != opener.row:
            continue
        elif mark.kind == "open":
            depth += mark.row == 0 and (mark.at_line_start or not mentions)
        else:
            depth -= 1
            if not depth:
                parts.spans.append((opener.start, mark.end))
                opener = None
    parts.unclosed = opener
    return parts


def _marks(text: str, budget: Budget) -> Iterator[_Mark]:
    """The marks that count. Looks at each fence at most once, and at few characters around each mark."""
    fences = list(_closed_fences(text))
    index, program = 0, text.find("class ModelNew")
    holds_strings: dict[int, bool] = {}
    for match in _MARK.finditer(text):
        start, end = match.span()
        if text[start - 1 : start] in {"'", '"', "`"} and text[max(0, start - 3) : start] != "```":
            continue
        name = match.lastgroup or ""
        kind, row = name.rstrip("0123456789"), int(re.sub(r"\D", "", name) or 0)
        if kind == "told" and not 0 <= program < start:
            continue
        before = text[max(0, start - 200) : start]
        at_line_start = not before.rpartition("\n")[2].strip() and (start <= 200 or "\n" in before)
        while index < len(fences) and fences[index][1] <= start:
            index += 1
        if index < len(fences) and fences[index][0] <= start:
            if index not in holds_strings:
                holds_strings[index] = budget.tree(text[slice(*fences[index])]) is not None
            if holds_strings[index] or (kind in {"open", "close"} and row == 0 and not at_line_start):
                continue
        yield _Mark(start, end, kind, row, at_line_start)


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
# What is left where a server dropped the special tokens and kept the words between them.
_STRIPPED_START = re.compile(r"\s*(?:assistant)?analysis(?=[A-Z])")
_STRIPPED_FINAL = re.compile(r"assistant(?:<\|channel\|>)?final")


def _final_channel(text: str) -> Answer | None:
    """The final channel of a Harmony conversation (github.com/openai/harmony), markers kept or stripped; None
    for other texts. A conversation without a final channel holds no answer, and nothing is left to take."""
    if _STARTS_HARMONY.match(text):
        messages = list(_CHANNEL.finditer(text))
        if not messages:
            return None
        final = next((message for message in reversed(messages) if message["name"] == "final"), None)
        close = _MESSAGE_END.search(text, final.end()) if final else None
        end = close.start() if close else len(text)
    elif _STRIPPED_START.match(text):
        final = next(reversed(list(_STRIPPED_FINAL.finditer(text))), None)
        end = len(text)
    else:
        return None
    if final is None:
        return Answer("", "", True, (remark("unclosed_thinking"),))
    return Answer(text[final.end() : end], text[: final.start()], False, (remark("channels_removed"),))
