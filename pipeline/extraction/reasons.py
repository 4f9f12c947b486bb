"""Why an answer holds no program, in words: the server's own, and what was seen in the text."""

from __future__ import annotations

from typing import Any

from kernelproof.types import Response, Status
from kernelproof.types.exchange import LIMITED
from kernelproof.wording import counted

WARNINGS: dict[str, str] = {
    "normalised": "Characters that no program needs were replaced or removed; the detail names the kinds.",
    "thinking_removed": "Text inside thinking tags was set aside.",
    "missing_think_opener": "A thinking part was closed that was never opened; all before it was set aside.",
    "unclosed_thinking": "A thinking part never ends: nothing is taken, or `taken_from_thinking` says so.",
    "taken_from_thinking": "The program ends a thinking part that nothing closes: it may be a draft.",
    "next_turn_removed": "What follows the end of the model's turn, a turn that it invented, was set aside.",
    "channels_removed": "Only the final channel of a Harmony conversation was read.",
    "empty_content": "The response has no text.",
    "code_only_in_reasoning": "ModelNew occurs in the reasoning and not in the answer.",
    "unclosed_fence": "The fence around the program is never closed.",
    "opened_without_fence": "The program starts without an opening fence.",
    "curly_quotes_replaced": "Typographic quotes outside strings were made straight: else it does not parse.",
    "trimmed_trailing_lines": "That many lines after the program, prose that did not parse, were cut off.",
    "second_version_wins": "Several blocks define ModelNew; the last complete one was taken.",
    "later_version_incomplete": "A later block's ModelNew is incomplete; an earlier block was taken.",
    "reference_echoed": "The program, or another block, also defines the reference's class Model.",
    "placeholder_skipped": "A block whose ModelNew is only a placeholder was passed over.",
    "split_over_blocks": "A block needs names that only other blocks define; blocks are never joined.",
    "fences_joined": "A fence ended inside a string of C++ and another went on with it; they were joined.",
    "diff_skipped": "A diff was passed over: it does not fit, or a whole program stands beside it.",
    "does_not_parse": "The program is complete but not valid Python; the syntax error is reported later.",
    "model_new_not_top_level": "ModelNew is defined where importing the program does not reach it.",
    "no_model_new": "The text is Python and does not define ModelNew.",
    "finish_reason": "The server's reason for ending the response, where it matters.",
    "too_long": "The text has that many characters, far more than any program; nothing of it was looked at.",
    "work_limit": "The response was too intricate to look at every possible program in it.",
}


def remark(name: str, detail: str | int | None = None) -> str:
    """The warning `name`, with its detail. Raises KeyError for a name that WARNINGS does not list."""
    WARNINGS[name]
    return name if detail is None else f"{name}: {detail}"


MAX_WORDS = 300
"""Most characters of a refusal that are quoted; the response keeps all of it."""
_EXPLAIN = ("split_over_blocks", "placeholder_skipped", "diff_skipped", "code_only_in_reasoning", "too_long")
"""Warnings that say why there is no program."""


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
