"""Bodies as different servers shape them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernelproof.errors import ProviderError
from kernelproof.providers import cut_by, cut_hint, response_from_body
from kernelproof.types import Response
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


@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        ({"cost": 0.5}, 0.5),
        ({"cost": 0}, 0.0),
        ({}, None),
        (None, None),
        ({"cost": -1}, None),
        ({"cost": True}, None),
        ({"cost": "0.5"}, None),
        ({"cost": float("nan")}, None),
        ({"cost": float("inf")}, None),
        ({"cost": 10**400}, None),
    ],
)
def test_a_cost_is_known_only_where_the_server_says_a_number(usage: Any, cost: float | None) -> None:
    assert response_from_body(completion(usage=usage)).cost_usd == cost


def test_a_count_that_no_database_holds_is_unknown() -> None:
    usage = response_from_body(completion(usage={"prompt_tokens": 2**63, "completion_tokens": 5})).usage
    assert usage is not None and (usage.prompt_tokens, usage.completion_tokens) == (None, 5)


def test_a_body_that_is_nested_too_deeply_is_refused() -> None:
    deep: Any = []
    for _ in range(400):
        deep = [deep]
    with pytest.raises(ProviderError, match="nested too deeply") as caught:
        response_from_body(completion(message={"reasoning": deep}))
    assert not caught.value.retriable


@pytest.mark.parametrize(
    ("finish", "used", "sampling", "cut"),
    [
        ("stop", 10, {"max_tokens": 10}, None),
        ("length", 10, {"max_tokens": 10}, "max_tokens"),
        ("length", 10, {"max_completion_tokens": 10}, "max_tokens"),
        ("max_output_tokens", 10, {"max_completion_tokens": 10}, "max_tokens"),
        ("MAX_TOKENS", 10, {"max_tokens": 10}, "max_tokens"),
        ("length", 4096, {"max_tokens": 100_000}, "server"),
        ("length", 4096, {}, "server"),
        ("length", None, {"max_tokens": 10}, "max_tokens"),
        ("length", None, {}, "server"),
        (None, 10, {"max_tokens": 10}, None),
    ],
)
def test_what_cut_an_answer_off(
    finish: str | None, used: int | None, sampling: dict[str, int], cut: str | None
) -> None:
    usage = None if used is None else {"completion_tokens": used}
    body = completion("x", usage=usage)
    body["choices"][0]["finish_reason"] = finish
    found = response_from_body(body)
    assert cut_by(found, sampling) == cut
    assert bool(cut_hint(found, sampling)) is (cut is not None)


def test_an_answer_of_responses_is_read_by_its_items() -> None:
    body = {
        "id": "resp_1",
        "object": "response",
        "model": "served",
        "status": "completed",
        "output": [
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "thought"}]},
            {"type": "message", "content": [{"type": "output_text", "text": "the "}]},
            {"type": "message", "content": [{"type": "output_text", "text": "answer"}]},
        ],
        "usage": {"input_tokens": 3, "output_tokens": 2, "cost": 0.1},
    }
    found = response_from_body(body)
    assert (found.text, found.reasoning, found.finish_reason) == ("the answer", "thought", "completed")
    assert (found.request_id, found.served_model, found.cost_usd) == ("resp_1", "served", 0.1)
    refusal = {"type": "message", "content": [{"type": "refusal", "refusal": "I will not"}]}
    refused = response_from_body(body | {"output": [refusal]})
    assert (refused.text, refused.refusal) == (None, "I will not")
    filtered = {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}
    assert response_from_body(body | filtered).finish_reason == "content_filter"
    with pytest.raises(ProviderError, match="the server answered with an error: it broke"):
        response_from_body(body | {"status": "failed", "error": {"message": "it broke"}})


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
