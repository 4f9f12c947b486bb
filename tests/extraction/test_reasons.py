"""Why an answer holds no program, in words."""

from __future__ import annotations

import pytest

from kernelproof.extraction import extract
from kernelproof.types import Response, Usage
from tests.extraction.programs import CLASS, EXTENSION, GOOD, IMPORTS, fence

USED = Usage(completion_tokens=4096)
REASONS = {
    "the server's finish reason is length, after 4096 tokens": Response(
        text=GOOD, finish_reason="length", usage=USED
    ),
    "the server's finish reason is MAX_TOKENS": Response(text=None, finish_reason="MAX_TOKENS"),
    "the server says: I cannot help with that.": Response(text=None, refusal="I cannot\n help with that. "),
    "the server says: No., the server's finish reason is refusal": Response(
        text=GOOD, refusal="No.", finish_reason="refusal"
    ),
    "the server's finish reason is content_filter": Response(text=GOOD, finish_reason="content_filter"),
    "there is no text, the server's finish reason is stop": Response(text=None, finish_reason="stop"),
    "there is no text": Response(text=" "),
    "there is only reasoning, of 7 characters, the server's finish reason is stop": Response(
        text="", reasoning="Let me.", finish_reason="stop"
    ),
    "its thinking never ends": Response(text="<think>Let me.", finish_reason="stop"),
    "it ends inside a program": Response(
        text=f"Here:\n```python\n{GOOD[: GOOD.index('blockDim')]}", finish_reason="stop"
    ),
    "no part of it is a program that defines ModelNew": Response(text="It depends.", finish_reason="stop"),
    "A block needs names that only other blocks define; blocks are never joined: ext": Response(
        text=f"{fence(IMPORTS + EXTENSION)}And:\n{fence(CLASS)}"
    ),
    f"the server says: {'no ' * 100} ...": Response(text=None, refusal="no " * 4000),
    "": Response(text=GOOD, finish_reason="stop", usage=USED),
}


@pytest.mark.parametrize("reason", REASONS, ids=lambda reason: reason[:60])
def test_why_there_is_no_program(reason: str) -> None:
    assert extract(REASONS[reason]).reason == reason
