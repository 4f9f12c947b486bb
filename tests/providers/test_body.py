"""Bodies as different servers shape them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.errors import ProviderError
from pipeline.providers import response_from_body
from pipeline.types import Response
from tests.providers.server import completion


@pytest.mark.parametrize(
    ("message", "reasoning"),
    [
        ({"reasoning_content": "b"}, "b"),
        ({"reasoning": "c"}, "c"),
        ({"reasoning_details": [{"text": "a"}], "reasoning_content": "b", "reasoning": "c"}, "a"),
        ({"reasoning_details": [{"type": "x", "summary": "s1 "}, {"text": "s2"}]}, "s1 s2"),
        ({"reasoning_details": [{"data": "opaque"}], "reasoning": "c"}, "c"),
        ({"reasoning_content": "", "reasoning": None}, None),
        ({}, None),
    ],
)
def test_reasoning_is_taken_from_the_first_field_that_holds_text(
    message: dict[str, Any], reasoning: str | None
) -> None:
    assert response_from_body(completion("x", message=message)).reasoning == reasoning


def test_content_may_be_null_beside_reasoning() -> None:
    response = response_from_body(completion(None, message={"reasoning_content": "only thoughts"}))
    assert response.text is None
    assert response.reasoning == "only thoughts"


def test_content_may_come_in_parts() -> None:
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hmm"}]},
        {"type": "text", "text": "the "},
        {"type": "text", "text": "answer"},
    ]
    response = response_from_body(completion(parts))
    assert (response.text, response.reasoning) == ("the answer", "hmm")


def test_unknown_usage_is_not_zero() -> None:
    assert response_from_body(completion(usage=None)).usage is None
    usage = response_from_body(completion(usage={"prompt_tokens": 3, "completion_tokens": None})).usage
    assert usage is not None
    assert (usage.prompt_tokens, usage.completion_tokens, usage.reasoning_tokens) == (3, None, None)


def test_a_refusal_is_kept() -> None:
    assert response_from_body(completion(None, message={"refusal": "I will not"})).refusal == "I will not"


def test_think_tags_stay_in_the_text_for_the_extraction() -> None:
    assert response_from_body(completion("<think>x</think>y")).text == "<think>x</think>y"


leaves = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
parts = st.dictionaries(st.sampled_from(["type", "text", "thinking", "message", "error"]), leaves, max_size=2)
json_values = leaves | parts | st.lists(leaves | parts, max_size=3)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.dictionaries(st.sampled_from(["choices", "usage", "id", "model", "error"]), json_values),
    st.dictionaries(
        st.sampled_from(["content", "reasoning_details", "reasoning", "refusal", "tool_calls"]), json_values
    ),
)
def test_any_body_is_a_response_or_a_provider_error(fields: dict[str, Any], message: dict[str, Any]) -> None:
    for body in (fields, completion(message=message) | {k: v for k, v in fields.items() if k != "choices"}):
        try:
            response = response_from_body(body)
        except ProviderError:
            continue
        assert isinstance(response, Response)
        assert response.raw == body
