"""Files that a user gives: Python is taken unchanged, anything else is read as a raw response."""

from __future__ import annotations

import json

import pytest

from pipeline.extraction import extract_source
from pipeline.types import Status
from tests.extraction.programs import GOOD, REFERENCE, SECOND, fence


def test_a_python_file_is_taken_unchanged() -> None:
    source = GOOD.replace("\n", "\r\n") + "S = '\u00a0<think>'\r\n"

    extraction = extract_source(source)

    assert extraction.candidate is not None
    assert (extraction.candidate.source, extraction.method) == (source, "file")
    assert extraction.span == (0, len(source))
    assert extraction.warnings == ()


def test_a_python_file_without_model_new_is_left_to_the_policy() -> None:
    extraction = extract_source(REFERENCE)

    assert extraction.candidate is not None
    assert extraction.candidate.source == REFERENCE
    assert extraction.warnings == ("no_model_new",)


def test_a_raw_response_is_searched() -> None:
    extraction = extract_source(f"<think>{fence(SECOND)}</think>\n{fence(GOOD)}")

    assert extraction.candidate is not None
    assert (extraction.candidate.source, extraction.method) == (GOOD, "fence")


def test_a_servers_json_body_is_searched() -> None:
    body = {"choices": [{"message": {"reasoning": fence(SECOND), "content": f"Here:\n{fence(GOOD)}"}}]}

    extraction = extract_source(json.dumps(body, indent=2))

    assert extraction.candidate is not None
    assert (extraction.candidate.source, extraction.method) == (GOOD, "json")


def test_a_python_file_with_a_syntax_error_is_taken_for_the_policy_to_report() -> None:
    broken = GOOD.replace("def forward(self, x):", "def forward(self x):")

    extraction = extract_source(broken)

    assert extraction.candidate is not None
    assert extraction.candidate.source == broken
    assert "does_not_parse" in extraction.warnings


def test_prose_holds_no_code() -> None:
    assert extract_source("I would import torch and write a kernel.").status is Status.NO_CODE
    assert extract_source("").status is Status.NO_CODE


def test_difficult_text_is_bounded_by_warnings_not_by_luck() -> None:
    many_versions = "".join(fence(GOOD + f"N = {i}\n(") for i in range(400))

    extraction = extract_source(many_versions)

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
    extraction = extract_source(source)

    assert extraction.candidate is not None
    assert (extraction.candidate.source, extraction.method) == (source, "file")
    assert "does_not_parse" in extraction.warnings


def test_a_program_after_a_fence_alone_is_a_program_too() -> None:
    cut = GOOD[: GOOD.index("blockDim")]

    extraction = extract_source(f"```python\n{cut}")

    assert extraction.candidate is not None
    assert (extraction.candidate.source, extraction.method) == (cut, "fence")
    assert extraction.warnings == ("unclosed_fence", "does_not_parse")


def test_a_response_in_a_file_is_still_a_response() -> None:
    cut = GOOD[: GOOD.index("blockDim")]

    assert extract_source(f"Here is the kernel:\n\n```python\n{cut}").status is Status.TRUNCATED
    assert extract_source(f"<think>\nimport torch\n{cut}").status is Status.TRUNCATED
    found = extract_source(f"# The kernel\n\nIt doubles.\n{fence(GOOD)}")
    assert found.candidate is not None and found.candidate.source == GOOD
    found = extract_source(f"import torch\nx = first(thing\n\n{fence(GOOD)}")
    assert found.candidate is not None and found.candidate.source == GOOD
