"""The openai provider against a real server: what is sent, what comes back, what each error means."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from kernelproof.errors import ProviderError, ProviderFatal, UsageError
from kernelproof.providers import ProviderOptions, Question, open_provider
from kernelproof.providers.endpoints import ENDPOINTS
from kernelproof.types import Response
from tests.providers.questions import question
from tests.providers.server import Server, Step, completion, failure, serve


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def ask(server: Server, *, timeout_s: float = 5.0, max_retries: int = 2, **sampling: Any) -> Response:
    async def asked() -> Response:
        provider = open_provider(
            "openai:asked-model",
            ProviderOptions(
                base_url=server.url, sampling=sampling, timeout_s=timeout_s, max_retries=max_retries
            ),
        )
        try:
            return await provider.ask(question())
        finally:
            await provider.aclose()

    return anyio.run(asked)


def test_everything_the_server_said_is_kept() -> None:
    body = completion(
        "the answer",
        usage={
            "prompt_tokens": 11,
            "completion_tokens": 7,
            "completion_tokens_details": {"reasoning_tokens": 3},
            "prompt_tokens_details": {"cached_tokens": 5},
        },
        unknown={"kept": [1]},
    )
    with serve(Step(body, headers={"x-request-id": "req-9"})) as server:
        response = ask(server)
    assert response.text == "the answer"
    assert response.finish_reason == "stop"
    assert response.request_id == "req-9"
    assert response.served_model == "served-model"
    assert response.system_fingerprint == "fp_1"
    assert response.usage is not None
    assert response.usage.model_dump() == {
        "prompt_tokens": 11,
        "completion_tokens": 7,
        "reasoning_tokens": 3,
        "cached_tokens": 5,
    }
    assert response.latency_s is not None and 0 < response.latency_s < 5
    assert response.raw == body


def test_only_what_was_set_is_sent() -> None:
    with serve(Step(completion())) as server:
        ask(server, max_completion_tokens=9, top_k=4)
        ask(server)
    turns = [("system", "be brief"), ("user", "first"), ("assistant", "answer"), ("user", "again")]
    ours = {"stream": True, "stream_options": {"include_usage": True}}
    plain = ours | {"model": "asked-model", "messages": [{"role": r, "content": c} for r, c in turns]}
    assert server.requests == [plain | {"max_completion_tokens": 9, "top_k": 4}, plain]


def test_a_server_of_ones_own_needs_no_key_and_gets_no_other() -> None:
    with serve(Step(completion())) as server:
        ask(server)
    assert server.authorizations == ["Bearer no-key"]


def test_the_key_and_the_base_url_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    async def asked() -> Response:
        return await open_provider("openai:m").ask(question())

    with serve(Step(completion())) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        assert anyio.run(asked).text == "hello"
    assert server.authorizations == ["Bearer sk-secret"]


def test_a_missing_key_stops_before_anything_is_asked() -> None:
    with pytest.raises(ProviderFatal, match="OPENAI_API_KEY"):
        open_provider("openai:m")


@pytest.mark.parametrize(
    "url",
    ["localhost:8000/v1", "ftp://host/v1", "http://", "http://a:x/v1", "http://[::1/v1", "http://a b/v1"],
)
def test_a_base_url_that_is_none_is_a_usage_error(url: str) -> None:
    with pytest.raises(UsageError, match="base URL"):
        open_provider("openai:m", ProviderOptions(base_url=url))


@pytest.mark.parametrize("name", ["n", "stream", "messages", "model"])
def test_fields_that_are_not_the_users_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match=name):
        open_provider("openai:m", ProviderOptions(base_url="http://localhost/v1", sampling={name: 2}))


@pytest.mark.parametrize(
    ("step", "says"),
    [
        (failure(400, param="max_tokens"), r"change or leave out --max-tokens\."),
        (failure(400, param="max_tokens", code="unsupported_parameter"), "or use --max-tokens N"),
        (failure(422, param="stop[0]"), "--param stop"),
    ],
)
def test_a_refused_parameter_is_named_with_its_option(step: Step, says: str) -> None:
    with serve(step) as server, pytest.raises(ProviderFatal, match=says):
        ask(server, max_retries=0, temperature=0.5, max_tokens=10, stop=["x"])


def test_an_unreachable_server_is_an_error_of_one_sample() -> None:
    with serve(Step(completion())) as server:
        pass
    with pytest.raises(ProviderError, match="cannot be reached"):
        ask(server, max_retries=0)


def test_the_key_never_shows_in_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    echo = Step({"error": {"message": "bad key sk-secret"}}, 401)
    with serve(echo) as server, pytest.raises(ProviderFatal) as caught:
        ask(server)
    assert "sk-secret" not in str(caught.value)
    assert "[key]" in str(caught.value)


@pytest.mark.parametrize("key", ["sk-secret\r\nx: y", "sk secret", "sk-s\u00e9cret", "sk-\x07"])
def test_a_key_that_cannot_be_sent_is_refused_without_showing_it(
    monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setenv("MY_KEY", key)
    with pytest.raises(ProviderFatal, match="MY_KEY holds characters") as caught:
        open_provider("openai:m", ProviderOptions(key_variable="MY_KEY"))
    assert "secret" not in str(caught.value).lower().replace("characters", "")


def test_the_line_feed_at_the_end_of_a_key_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret\n")
    with serve(Step(completion())) as server:
        ask(server)
    assert server.authorizations == ["Bearer sk-secret"]


def test_the_key_never_shows_in_an_error_inside_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    with (
        serve(Step({"error": {"message": "upstream refused sk-secret\ud800"}})) as server,
        pytest.raises(ProviderError, match=r"upstream refused \[key\]\\ud800"),
    ):
        ask(server, max_retries=0)


@pytest.mark.parametrize("setting", [float("nan"), float("inf"), object()])
def test_a_setting_that_json_does_not_know_is_refused(setting: object) -> None:
    with pytest.raises(UsageError, match="cannot be sent as JSON"):
        open_provider("openai:m", ProviderOptions(base_url="http://a/v1", sampling={"top_p": setting}))


def test_an_earlier_answer_with_lone_surrogates_is_sent_without_them() -> None:
    async def asked(server: Server) -> Response:
        told = question()
        prompt = told.prompt.model_copy(update={"history": (("user", "a"), ("assistant", "b\ud800\x00"))})
        provider = open_provider("openai:m", ProviderOptions(base_url=server.url))
        return await provider.ask(Question(told.problem_id, told.backend, 0, 1, prompt))

    with serve(Step(completion())) as server:
        assert anyio.run(asked, server).text == "hello"
    assert server.requests[0]["messages"][2] == {"role": "assistant", "content": "b?\x00"}


def test_a_question_is_sent_with_its_key_each_time() -> None:
    async def asked(server: Server) -> Response:
        told = question()
        provider = open_provider("openai:m", ProviderOptions(base_url=server.url))
        return await provider.ask(Question(told.problem_id, told.backend, 0, 1, told.prompt, key="ab" * 32))

    with serve(failure(500), Step(completion())) as server:
        anyio.run(asked, server)
    assert server.keys == ["ab" * 32] * 2


def test_a_page_for_people_says_where_to_look() -> None:
    with (
        serve(
            Step("<!doctype html><title>A web page</title>", headers={"content-type": "text/html"})
        ) as server,
        pytest.raises(ProviderError, match=r"is not JSON: a page for people; does the base URL"),
    ):
        ask(server, max_retries=0)


def test_settings_have_other_names_in_responses() -> None:
    settings = {"max_completion_tokens": 9, "reasoning_effort": "high", "top_p": 0.5}
    sent = ENDPOINTS["responses"].request("m", question().prompt, settings)
    turns = [("user", "first"), ("assistant", "answer"), ("user", "again")]
    assert sent == {
        "model": "m",
        "instructions": "be brief",
        "input": [{"role": role, "content": text} for role, text in turns],
        "store": False,
        "stream": False,
        "max_output_tokens": 9,
        "reasoning": {"effort": "high"},
        "top_p": 0.5,
    }
    both = ENDPOINTS["responses"].request(
        "m", question().prompt, {"reasoning": {"summary": "auto"}, "reasoning_effort": "low"}
    )
    assert both["reasoning"] == {"summary": "auto", "effort": "low"}
