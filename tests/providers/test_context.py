"""A prompt that cannot fit the model's context is not sent, where the context's length is known."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelproof.errors import ProviderError
from kernelproof.providers import ProviderOptions, Question, open_provider
from kernelproof.providers.context import context_of, fewest_tokens
from kernelproof.types import Prompt, Response
from tests.providers.server import Server, Step, completion, serve

CODE = "    def forward(self, x: torch.Tensor) -> torch.Tensor:\n        return torch.relu(x + self.bias)\n"
"""About 25 tokens."""


def of_length(lines: int) -> Question:
    prompt = Prompt(
        template="t-v1", template_sha256="0", system="", user=CODE * lines, history=(), sha256="0"
    )
    return Question("level1/1", "cpp", 0, 1, prompt)


def ask(server: Server, *questions: Question, **options: Any) -> list[Response | ProviderError]:
    found: list[Response | ProviderError] = []

    async def one(provider: Any, question: Question) -> None:
        try:
            found.append(await provider.ask(question))
        except ProviderError as error:
            found.append(error)

    async def run() -> None:
        provider = open_provider("openai:m", ProviderOptions(base_url=server.url, **options))
        async with anyio.create_task_group() as group:
            for question in questions:
                group.start_soon(one, provider, question)
        await provider.aclose()

    anyio.run(run)
    return found


def listing(**fields: Any) -> Step:
    return Step({"object": "list", "data": [{"id": "other", "max_model_len": 10}, {"id": "m", **fields}]})


def test_what_cannot_fit_by_the_servers_list_is_not_sent() -> None:
    with serve(Step(completion()), models=listing(max_model_len=4096)) as server:
        found = ask(server, of_length(1000), of_length(1000), of_length(1000), of_length(20))
        assert len(server.requests) == 1 and server.listed == ["/v1/models"]
    errors = [error for error in found if isinstance(error, ProviderError)]
    assert len(errors) == 3
    for error in errors:
        assert "longer than the model's context of 4,096 tokens (the server's list of models)" in str(error)
        assert "it was not sent; use a model with a longer context or a shorter template" in str(error)
        assert error.of_question and not error.retriable


def test_long_rows_of_one_sign_do_not_make_a_prompt_too_long() -> None:
    question = of_length(100)
    text = question.prompt.user + "~" * 20_000 + " " * 20_000
    long = replace(question, prompt=question.prompt.model_copy(update={"user": text}))
    with serve(Step(completion()), models=listing(max_model_len=4096)) as server:
        assert isinstance(ask(server, long)[0], Response) and server.listed


@pytest.mark.parametrize(
    "models",
    [
        None,
        listing(),
        Step("<html>", 200),
        Step({"data": "none"}),
        Step(close=True),
        Step(status=401, body={"error": {"message": "no key"}}),
        Step(drip_s=30.0),
    ],
)
def test_a_length_that_nobody_says_leaves_all_to_the_server(
    monkeypatch: pytest.MonkeyPatch, models: Step | None
) -> None:
    if models is not None and models.drip_s:
        monkeypatch.setattr("kernelproof.providers.context.LOOK_S", 2.0)
    with serve(Step(completion()), models=models) as server:
        assert all(isinstance(each, Response) for each in ask(server, *[of_length(1000)] * 3))
        assert len(server.requests) == 3 and len(server.listed) == 1


def test_the_users_word_goes_before_the_servers() -> None:
    with serve(Step(completion()), models=listing(max_model_len=4096)) as server:
        assert isinstance(ask(server, of_length(1000), context_length=100_000)[0], Response)
        (error,) = ask(server, of_length(20), context_length=100)
        assert "context of 100 tokens (--context-length)" in str(error)
        assert server.listed == []


def test_a_short_prompt_asks_no_server_for_its_models() -> None:
    with serve(Step(completion()), models=listing(max_model_len=4096)) as server:
        ask(server, of_length(20))
        assert server.listed == []


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"data": [{"id": "m", "max_model_len": 32768}]}, 32768),
        ({"data": [{"id": "m", "context_length": 131072, "top_provider": {}}]}, 131072),
        ([{"id": "m", "context_length": 8192}], 8192),
        ({"data": [{"id": "m", "context_window": 8192}]}, 8192),
        ({"data": [{"id": "/models/q.gguf", "meta": {"n_ctx_train": 40960}}]}, 40960),
        ({"data": [{"id": "q.gguf", "meta": {"n_ctx_train": 40960, "n_ctx": 4096}}]}, 4096),
        ({"data": [{"id": "m"}, {"id": "other", "max_model_len": 9}]}, None),
        ({"data": [{"id": "a", "max_model_len": 9}, {"id": "b", "max_model_len": 9}]}, None),
        ({"data": [{"id": "m", "max_model_len": None, "context_length": 0, "meta": None}]}, None),
        ({"data": []}, None),
        ({"data": [{"id": "m", "max_model_len": "32768"}]}, None),
    ],
)
def test_the_length_is_found_as_servers_say_it(body: Any, expected: int | None) -> None:
    assert context_of(json.dumps(body), "m") == expected


@given(st.text() | st.binary().map(lambda data: data.decode("utf-8", "replace")))
def test_no_list_of_models_is_an_exception(text: str) -> None:
    assert context_of(text, "m") is None


@given(st.text())
def test_a_text_has_fewer_tokens_than_characters(text: str) -> None:
    assert 0 <= fewest_tokens(text) <= len(text)
    assert fewest_tokens(text + "~" * 1000 + " " * 1000) <= fewest_tokens(text) + 1
