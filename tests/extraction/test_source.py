"""Texts that are programs, whole or with a fault: they are taken as they are, wherever they come from."""

from __future__ import annotations

import pytest

from kernelproof.extraction import extract
from kernelproof.types import Extraction, Response, Status
from tests.extraction.programs import GOOD, REFERENCE, fence


def given_text(text: str) -> Extraction:
    """What is found in a text of which no server said anything."""
    return extract(Response(text=text))


def test_a_python_file_is_taken_unchanged() -> None:
    source = GOOD.replace("\n", "\r\n") + "S = '\u00a0<think>'\r\n"
    extraction = given_text(source)
    assert extraction.candidate is not None
    assert (extraction.candidate.source, extraction.method) == (source, "whole")
    assert extraction.span == (0, len(source))
    assert extraction.warnings == ()


def test_a_python_file_without_model_new_is_left_to_the_policy() -> None:
    extraction = given_text(REFERENCE)
    assert extraction.candidate is not None
    assert extraction.candidate.source == REFERENCE
    assert extraction.warnings == ("no_model_new",)


def test_a_python_file_with_a_syntax_error_is_taken_for_the_policy_to_report() -> None:
    broken = GOOD.replace("def forward(self, x):", "def forward(self x):")
    extraction = given_text(broken)
    assert extraction.candidate is not None
    assert extraction.candidate.source == broken
    assert "does_not_parse" in extraction.warnings


def test_difficult_text_is_bounded_by_warnings_not_by_luck() -> None:
    many_versions = "".join(fence(GOOD + f"N = {i}\n(") for i in range(400))
    extraction = given_text(many_versions)
    assert "work_limit" in extraction.warnings


IN_A_DOCSTRING = '"""Doubles.\n\n```python\nModelNew()(x)\n```\n"""\n'
UNTERMINATED = {
    "a string": GOOD[: GOOD.index("blockDim")],
    "a string, with what follows": GOOD.replace('}\n"""', "}\n"),
    "a bracket": GOOD.replace("return ext.scale(x)", "return ext.scale((x)"),
    "a bracket in the middle": GOOD.replace('functions=["scale"],\n)', 'functions=["scale"],\n'),
    "a line": GOOD[: GOOD.index("super().__init__") + 8],
    "a body": GOOD[: GOOD.index("        return ext.scale")],
    "a docstring": '"""Doubles.\n' + GOOD[: GOOD.index("cuda_source")],
    "a string without ModelNew before it": GOOD[: GOOD.index("blockDim")].replace("ModelNew", ""),
    "a string with a tag": GOOD.replace("#include", "<think>\n#include")[: GOOD.index("return y")],
    "a docstring with a fence, then a string": IN_A_DOCSTRING + GOOD[: GOOD.index("blockDim")],
    "a docstring with an open fence, then a bracket": IN_A_DOCSTRING.replace("```\n", "") + GOOD + "(",
    "a comment, then a string": "# ModelNew doubles.\n\n" + GOOD[: GOOD.index("blockDim")],
    "the first line": "import torch,\n" + GOOD,
    "after a whole class": GOOD + "\nEXTRA = '''\n",
    "after a comment like prose": "# Here is the kernel:\n" + GOOD + "x = (",
}


@pytest.mark.parametrize("source", UNTERMINATED.values(), ids=UNTERMINATED)
def test_python_that_never_ends_is_taken_for_the_policy_to_report(source: str) -> None:
    extraction = given_text(source)
    assert extraction.candidate is not None
    assert (extraction.candidate.source, extraction.method) == (source, "whole")
    assert "does_not_parse" in extraction.warnings


def test_a_response_in_a_file_is_still_a_response() -> None:
    cut = GOOD[: GOOD.index("blockDim")]
    assert given_text(f"Here is the kernel:\n\n```python\n{cut}").status is Status.TRUNCATED
    assert given_text(f"<think>\nimport torch\n{cut}").status is Status.TRUNCATED
    found = given_text(f"# The kernel\n\nIt doubles.\n{fence(GOOD)}")
    assert found.candidate is not None and found.candidate.source == GOOD
    found = given_text(f"import torch\nx = first(thing\n\n{fence(GOOD)}")
    assert found.candidate is not None and found.candidate.source == GOOD


TOOL = {"type": "function", "function": {"name": "web_search\n\x1b[31m", "arguments": "{}"}}


@pytest.mark.parametrize(
    ("raw", "named"),
    [
        ({"choices": [{"message": {"content": None, "tool_calls": [TOOL]}}]}, "the tool web_search"),
        ({"output": [{"type": "function_call", "name": "python"}]}, "the tool python"),
        ({"choices": [{"message": {"tool_calls": [{"function": None}, "x"]}}]}, "a tool"),
    ],
)
def test_an_answer_that_asks_for_tools_says_so(raw: dict[str, object], named: str) -> None:
    found = extract(Response(text=None, finish_reason="tool_calls", raw=raw))
    assert found.status is Status.EMPTY and found.reason.startswith(f"it asks for {named}")
    assert found.reason.endswith("no tools are offered: the answer has to be the program itself")


@pytest.mark.parametrize("raw", [{}, {"choices": "x", "output": 3}, {"choices": [{"message": 1}]}])
def test_an_empty_answer_without_tools_says_what_the_server_said(raw: dict[str, object]) -> None:
    assert extract(Response(text=None, finish_reason="stop", raw=raw)).reason.startswith("there is no text")
