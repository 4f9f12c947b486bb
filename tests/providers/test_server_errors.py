"""What servers say when they fail, in their own shapes, and what is done about it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelproof.providers.pacing import MAX_BACKOFF_S, MAX_RETRY_AFTER_S, backoff, retry_after
from kernelproof.providers.server_errors import (
    Complaint,
    Reaction,
    complaint,
    complaint_of_reply,
    reaction_to,
)

SENT: dict[str, object] = {
    "model": "m",
    "messages": [],
    "temperature": 0.5,
    "max_completion_tokens": 100,
    "reasoning_effort": "high",
    "top_k": 4,
    "stop": ["x"],
    "stream": True,
    "stream_options": {"include_usage": True},
}


def read(status: int, body: Any) -> tuple[Complaint, Reaction]:
    text = body if isinstance(body, str) else json.dumps(body)
    found = complaint_of_reply(status, "Reason", text.encode())
    return found, reaction_to(found, found.message, SENT, "MY_KEY")


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"error": {"message": "too many"}}, "too many (HTTP 400)"),
        ({"error": "too many"}, "too many (HTTP 400)"),
        ({"message": "too many"}, "too many (HTTP 400)"),
        ({"detail": "too many"}, "too many (HTTP 400)"),
        ([{"error": {"code": 400, "message": "too many", "status": "X"}}], "too many (HTTP 400)"),
        ({"object": "error", "message": "too many", "code": 400}, "too many (HTTP 400)"),
        (
            {"detail": [{"type": "int_type", "loc": ["body", "seed"], "msg": "Input should be an integer"}]},
            "seed: Input should be an integer (HTTP 400)",
        ),
        (
            {"message": {"detail": [{"loc": ["body", "seed"], "msg": "no"}]}, "type": "invalid"},
            "seed: no (HTTP 400)",
        ),
        (
            {"error": {"message": "Provider returned error", "metadata": {"raw": "out of memory"}}},
            "Provider returned error: out of memory (HTTP 400)",
        ),
        ("no such path", "no such path (HTTP 400)"),
        ("<!doctype html><h1>Oh no</h1>", "HTTP 400 Reason"),
        ("", "HTTP 400 Reason"),
        ({}, "HTTP 400 Reason"),
        ("[]", "HTTP 400 Reason"),
        ("null", "HTTP 400 Reason"),
    ],
)
def test_the_servers_words_are_found(body: Any, says: str) -> None:
    assert read(400, body)[0].message == says


@pytest.mark.parametrize(
    ("message", "flag"),
    [
        ("Unsupported parameter: 'temperature' is not supported with this model.", "--temperature"),
        ("Unsupported value: 'temperature' does not support 0.5 with this model.", "--temperature"),
        ("`temperature` may only be set to 1", "--temperature"),
        ("temperature is deprecated for this model", "--temperature"),
        ("Unrecognized request argument supplied: top_k", "--param top_k"),
        ("Unknown parameter: 'top_k'.", "--param top_k"),
        ("property 'top_k' is unsupported", "--param top_k"),
        ('Invalid JSON payload received. Unknown name "top_k": Cannot find field.', "--param top_k"),
        ("top_k: Extra inputs are not permitted", "--param top_k"),
        ("[{'type': 'extra_forbidden', 'loc': ('body', 'top_k'), 'msg': 'Extra inputs'}]", "--param top_k"),
        ("Unexpected fields in the request: {'top_k'}", "--param top_k"),
        ("unknown field `stop`, expected one of `model`", "--param stop"),
        ("Argument not supported on this model: stop", "--param stop"),
        ("max_completion_tokens is too large: 100.", "--max-tokens"),
        ("This model does not support `reasoning_effort`", "--reasoning-effort"),
    ],
)
def test_a_field_that_the_server_does_not_accept_is_told_with_its_flag(message: str, flag: str) -> None:
    for status in (400, 422):
        _, reaction = read(status, {"error": {"message": message}})
        assert reaction.fatal is not None and message in reaction.fatal
        assert f"change or leave out {flag}" in reaction.fatal
        assert not reaction.retry


@pytest.mark.parametrize(
    ("body", "parameter"),
    [
        ({"error": {"message": "Unrecognized request argument supplied: stream_options"}}, "stream_options"),
        (
            {"detail": [{"loc": ["body", "stream_options"], "msg": "Extra inputs are not permitted"}]},
            "stream_options",
        ),
        ({"error": {"message": "Streaming is not supported"}}, "stream"),
        ({"error": {"message": "Your organization must be verified", "param": "stream"}}, "stream"),
    ],
)
def test_what_the_client_added_is_named(body: Any, parameter: str) -> None:
    assert read(400, body)[1].parameter == parameter


@pytest.mark.parametrize(
    "message",
    [
        "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens.",
        "'max_completion_tokens' is too large: 100. This model's maximum context length is 90 tokens",
        "prompt is too long: 210000 tokens > 200000 maximum",
        "the request exceeds the available context size, try increasing it",
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        "Invalid prompt: your prompt was flagged as potentially violating our usage policy.",
    ],
)
def test_an_error_of_one_prompt_is_told_from_others(message: str) -> None:
    assert read(400, {"error": {"message": message}})[1] == Reaction(of_question=True)


def test_an_error_that_may_be_of_any_prompt_is_none_of_one() -> None:
    assert read(400, {"error": {"message": "messages: you did something odd"}})[1] == Reaction()


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, {"message": "no", "code": "content_filter"}),
        (400, {"message": "no", "code": 400, "type": "exceed_context_size_error", "n_ctx": 4096}),
        (403, {"message": "your input was flagged"}),
        (413, {"message": "Request Entity Too Large"}),
        (200, {"message": "no", "code": "content_policy_violation"}),
        (200, {"message": "maximum context length is 1"}),
    ],
)
def test_codes_tell_an_error_of_one_prompt_too(status: int, error: dict[str, Any]) -> None:
    found = (
        complaint({"error": error})
        if status == 200
        else complaint_of_reply(status, "", json.dumps({"error": error}).encode())
    )
    reaction = reaction_to(found, found.message, SENT, "MY_KEY")
    assert reaction == Reaction(of_question=True)


@pytest.mark.parametrize(
    ("status", "error", "says"),
    [
        (401, {"message": "no"}, "check the key in MY_KEY (--key-variable names another)"),
        (400, {"message": "API key not valid. Please pass a valid API key."}, "check the key in MY_KEY"),
        (403, {"message": "no"}, "the key in MY_KEY may not use this model or server"),
        (402, {"message": "no"}, "the account needs credit"),
        (429, {"message": "no", "code": "insufficient_quota"}, "the quota is used up"),
        (429, {"message": "no", "type": "insufficient_quota"}, "the quota is used up"),
        (404, {"message": "no"}, "--model) and the base URL (--base-url"),
        (405, {"message": "Method Not Allowed"}, "--base-url"),
        (400, {"message": "no", "code": "model_not_found"}, "check the model's name"),
        (400, {"message": "The model `m` does not exist"}, "check the model's name"),
        (400, {"message": "no", "param": "model"}, "check the model's name"),
    ],
)
def test_what_holds_for_every_question_stops_the_run(status: int, error: dict[str, str], says: str) -> None:
    reaction = read(status, {"error": error})[1]
    assert reaction.fatal is not None and says in reaction.fatal


@pytest.mark.parametrize(
    ("status", "retry", "busy"),
    [(408, True, False), (409, True, False), (429, True, True), (413, False, False), (418, False, False)]
    + [(status, True, False) for status in (500, 501, 502, 503, 504, 520, 529)],
)
def test_a_status_says_whether_to_ask_again(status: int, retry: bool, busy: bool) -> None:
    reaction = read(status, {"error": {"message": "no"}})[1]
    assert (reaction.retry, reaction.busy, reaction.fatal) == (retry, busy, None)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ({"message": "x", "code": 429}, (True, True)),
        ({"message": "x", "code": "rate_limit_exceeded"}, (True, True)),
        ({"message": "x", "code": 502}, (True, False)),
        ({"message": "x", "code": "server_error"}, (True, False)),
        ({"message": "x", "type": "invalid_request_error"}, (False, False)),
        ({"message": "x", "code": "content_filter"}, (False, False)),
        ({"message": "maximum context length is 1"}, (False, False)),
        ("anything", (True, False)),
    ],
)
def test_an_error_in_the_body_of_an_answer_is_judged_by_its_code(
    error: Any, expected: tuple[bool, bool]
) -> None:
    found = complaint({"error": error})
    reaction = reaction_to(found, found.message, SENT, "MY_KEY")
    assert (reaction.retry, reaction.busy) == expected and reaction.fatal is None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["error", "message", "detail", "code", "type", "param", "loc", "msg", "metadata"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.sampled_from([400, 401, 403, 422, 429, 500]), json_values | st.text())
def test_no_error_of_a_server_is_an_exception(status: int, body: Any) -> None:
    found, reaction = read(status, body)
    assert found.message and not (reaction.fatal and reaction.retry)
    complaint(body)


@given(st.sampled_from(["retry-after", "retry-after-ms", "date"]), st.text(max_size=40))
def test_no_header_leads_to_a_longer_wait_than_allowed(name: str, value: str) -> None:
    headers = {"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"} | {name: value}
    found = retry_after(headers)
    assert found is None or 0 <= found <= MAX_RETRY_AFTER_S


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "86400"}, 120.0),
        ({"retry-after": "inf"}, 120.0),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Wed, 21 Oct 99999999999999999999 07:28:00 GMT"}, None),
        # A date is in the server's time, whatever ours is.
        ({"retry-after": "Wed, 21 Oct 2015 07:28:30 GMT", "date": "Wed, 21 Oct 2015 07:28:00 GMT"}, 30.0),
        ({"retry-after": "Sun, 21 Oct 2125 07:28:30 GMT", "date": "Wed, 21 Oct 2015 07:28:00 GMT"}, 120.0),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:30 GMT"}, 0.0),
        ({"retry-after": "Sun, 21 Oct 2125 07:28:30 GMT"}, 120.0),
    ],
)
def test_retry_after_is_seconds_or_a_date(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


@given(st.integers(0, 10_000))
def test_waits_grow_to_a_bound(tries: int) -> None:
    assert 0.25 <= backoff(tries) <= MAX_BACKOFF_S
    if tries >= 7:
        assert backoff(tries) >= MAX_BACKOFF_S / 2
