"""What an extraction can remark about a response: each warning is a name, with `: detail` where useful."""

from __future__ import annotations

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
"""Name to meaning."""


def remark(name: str, detail: str | int | None = None) -> str:
    """The warning `name`, with its detail. Raises KeyError for a name that WARNINGS does not list."""
    WARNINGS[name]
    return name if detail is None else f"{name}: {detail}"
