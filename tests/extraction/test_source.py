"""Files that a user gives: Python is taken unchanged, anything else is read as a raw response."""

from __future__ import annotations

import json

from pipeline.extraction import extract_source
from pipeline.nouns import Status
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
