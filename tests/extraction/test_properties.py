"""What holds for every text: no exception, the same result twice, clean programs untouched, bounded work."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelproof.extraction import WARNINGS, extract
from kernelproof.types import Response, Status
from tests.extraction.programs import CLASS, CUDA, DIFFICULT, EXTENSION, GOOD, IMPORTS, fence

PIECES = [
    *(
        GOOD,
        CLASS,
        EXTENSION,
        IMPORTS,
        CUDA,
        "```",
        "````",
        "~~~",
        "```python\n",
        "``` then",
        "\n",
        "> ",
        "- ",
        "   ",
    ),
    *(
        "<think>",
        "</think>",
        "<thinking a='b'>",
        "<|channel|>final<|message|>",
        "<|channel|>analysis<|message|>",
    ),
    *(
        "analysisWe",
        "assistantfinal",
        '"""',
        "'",
        "\u201c",
        "\u00a0",
        "\x1b[31m",
        "\0",
        "\ud800",
        "{",
        '{"code": "',
    ),
    *("class ModelNew:", "ModelNew = X", "It's so.", "@@ -1 +1 @@", "\r\n", "\u200b", "import torch", "("),
]
MESSY = st.lists(st.sampled_from(PIECES) | st.text(max_size=8), max_size=12).map("".join)

DEAR = (1, 3, 5, 8, 16)
"""The numbers of the difficult texts that take a second or more."""


@given(MESSY | st.text())
@settings(max_examples=200, deadline=None)
def test_any_text_gives_a_program_or_a_status(text: str) -> None:
    result = extract(Response(text=text))
    assert (result.candidate is None) == (result.status is not None)
    assert {warning.partition(":")[0] for warning in result.warnings} <= set(WARNINGS)
    assert result == extract(Response(text=text))
    if result.span is not None and result.candidate is not None:
        assert text[slice(*result.span)] == result.candidate.source


@given(MESSY)
@settings(max_examples=100, deadline=None)
def test_what_was_taken_is_taken_again_unchanged(text: str) -> None:
    first = extract(Response(text=text))
    if first.candidate is not None and "does_not_parse" not in first.warnings:
        again = extract(Response(text=first.candidate.source))
        assert again.candidate == first.candidate
        assert again.method == "whole"


@given(
    st.lists(
        st.sampled_from([f"X{i} = {i}\n" for i in range(9)] + ["# note\n", "\n", "def f():\n    pass\n"])
    )
)
def test_a_fenced_program_comes_back_exactly(lines: list[str]) -> None:
    program = "".join(lines) + GOOD + "".join(reversed(lines))
    extraction = extract(Response(text=f"Here it is.\n\n{fence(program)}\nDone."))
    assert extraction.candidate is not None
    assert extraction.candidate.source == program
    assert (extraction.method, extraction.warnings) == ("fence", ())


@pytest.mark.few(4)
@pytest.mark.parametrize(
    "unit",
    [
        pytest.param(unit, id=str(number), marks=pytest.mark.ci if number in DEAR else [])
        for number, unit in enumerate(DIFFICULT)
    ],
)
def test_a_long_text_of_anything_takes_seconds_of_a_core(unit: str) -> None:
    text = unit * (400_000 // len(unit))
    start = time.process_time()
    extract(Response(text=text))
    assert time.process_time() - start < 8  # about a second each; quadratic work would take a minute


@pytest.mark.parametrize("text", ["`" * 4_000_001, GOOD + "#\n" * 25_000_000], ids=["backticks", "program"])
def test_more_than_any_program_is_not_looked_at(text: str) -> None:
    start = time.process_time()
    extraction = extract(Response(text=text))
    assert time.process_time() - start < 2
    assert (extraction.status, extraction.warnings) == (Status.NO_CODE, (f"too_long: {len(text)}",))
    assert str(len(text)) in extraction.reason
    assert extract(Response(text=text, finish_reason="length")).status is Status.TRUNCATED


def test_a_megabyte_of_program_is_extracted() -> None:
    program = GOOD + "# a comment of some length\n" * 37_000
    extraction = extract(Response(text=fence(program)))
    assert extraction.candidate is not None
    assert extraction.candidate.source == program
