"""Thinking is taken out of an answer, and nothing else is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelproof.extraction import without_thinking

IN_STRINGS = 'Here:\n```python\nt = "<think>"\nu = t.replace("</think>", "")\n```'


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<think>draft</think>answer", "answer"),
        ("before\n<think>draft\n</think>\nafter", "before\n\nafter"),
        ('<think budget="9">\na\n</think>\nb', "b"),
        ("<THINKING>a</THINKING>b", "b"),
        ("<think>a\n<think>b</think>c</think>d", "d"),
        ("the opener was swallowed</think>\nanswer", "answer"),
        ("the opener was swallowed</think>answer", "answer"),
        ("answer\n<think>never closed", "answer"),
        ("<think>a</think>b\n<think>c</think>d", "b\nd"),
        (IN_STRINGS, IN_STRINGS),
        (
            "<|channel|>analysis<|message|>draft<|end|><|start|>assistant<|channel|>final<|message|>a<|return|>",
            "a",
        ),
        ("<|channel>thought\ndraft<channel|>answer<turn|>", "answer"),
        ("draft[/THINK]\nanswer", "answer"),
        ("no tags at all", "no tags at all"),
        ("", ""),
    ],
)
def test_what_stays_is_the_answer(text: str, answer: str) -> None:
    assert without_thinking(text) == answer


@given(st.text(alphabet="ab<>/ \n", max_size=60))
def test_a_closed_block_before_the_answer_leaves_no_trace(draft: str) -> None:
    assert without_thinking(f"<think>{draft}</think>\nanswer") == "answer"
