"""Why an answer holds no program, in words: the server's own, and what was seen in the text."""

from __future__ import annotations

from typing import Any

from kernelproof.extraction.remarks import WARNINGS
from kernelproof.types import Response, Status
from kernelproof.types.exchange import FAILED, FILTERED, LIMITED, REFUSED
from kernelproof.wording import counted

MAX_WORDS = 300
"""Most characters of a refusal that are quoted; the response keeps all of it."""
_EXPLAIN = ("split_over_blocks", "placeholder_skipped", "diff_skipped", "code_only_in_reasoning", "too_long")
"""Warnings that say why there is no program."""


def declined(response: Response) -> Status | None:
    """`filtered`, `refused` or `provider_error`, where the server says so; whatever text there is, nothing is
    taken from it."""
    finish = (response.finish_reason or "").lower()
    if finish in FAILED:
        return Status.PROVIDER_ERROR
    if finish in FILTERED:
        return Status.FILTERED
    return Status.REFUSED if finish in REFUSED or (response.refusal or "").strip() else None


def reason_of(status: Status, response: Response, warnings: tuple[str, ...]) -> str:
    """One sentence for a person: `the server's finish reason is length, after 4096 tokens`."""
    match status:
        case Status.REFUSED | Status.FILTERED | Status.PROVIDER_ERROR:
            return _joined(_refusal(response), _finish(response))
        case Status.TRUNCATED if (response.finish_reason or "").lower() in LIMITED:
            return _joined(_finish(response), _tokens(response))
        case Status.TRUNCATED:
            return (
                "its thinking never ends" if "unclosed_thinking" in warnings else "it ends inside a program"
            )
        case Status.EMPTY:
            asked = _tools(response)
            return asked or _joined(_only_reasoning(response) or "there is no text", _finish(response))
    said = [
        f"{WARNINGS[name].rstrip('.')}{detail}" for name, detail in map(_split, warnings) if name in _EXPLAIN
    ]
    return "; ".join(said) or "no part of it is a program that defines ModelNew"


def _tools(response: Response) -> str:
    """A clause about an answer that calls tools, of Chat Completions or of Responses; empty for others."""
    choices, output = response.raw.get("choices"), response.raw.get("output")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    called = message.get("tool_calls") if isinstance(message, dict) else None
    calls = [each.get("function") for each in _dicts(called)]
    calls += [each for each in _dicts(output) if each.get("type") == "function_call"]
    if not calls:
        return ""
    names = [str(each.get("name")) for each in calls if isinstance(each, dict) and each.get("name")]
    told = ", ".join(" ".join(name.split())[:60] for name in dict.fromkeys(names[:3]))
    named = f"the tool {told}" if told else "a tool"
    return f"it asks for {named}, and no tools are offered: the answer has to be the program itself"


def _dicts(value: object) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _refusal(response: Response) -> str:
    words = " ".join((response.refusal or "").split())
    cut = f"{words[:MAX_WORDS]} ..." if len(words) > MAX_WORDS else words
    return f"the server says: {cut}" if cut else ""


def _finish(response: Response) -> str:
    return f"the server's finish reason is {response.finish_reason}" if response.finish_reason else ""


def _tokens(response: Response) -> str:
    used = response.usage.completion_tokens if response.usage else None
    return "" if used is None else f"after {counted(used, 'token')}"


def _only_reasoning(response: Response) -> str:
    reasoning = (response.reasoning or "").strip()
    return f"there is only reasoning, of {counted(len(reasoning), 'character')}" if reasoning else ""


def _split(warning: str) -> tuple[str, str]:
    name, colon, detail = warning.partition(": ")
    return name, f": {detail}" if colon else ""


def _joined(*parts: str) -> str:
    return ", ".join(filter(None, parts))
