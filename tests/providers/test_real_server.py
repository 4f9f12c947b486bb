"""A server that nobody here wrote, `transformers serve`: what its clients have to get along with."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from kernelproof.errors import ProviderError, ProviderFatal
from kernelproof.providers import AskEvent, ProviderOptions, Question, cut_by, cut_hint, open_provider
from kernelproof.types import Prompt, Response, Status
from tests.cli import material
from tests.cli.conftest import working_in
from tests.realserver import CONTEXT, DEFAULT_MOST, RealServer, start

pytestmark = pytest.mark.ci
"""Its start takes 16 s of a processor."""
EVERY_WAY = pytest.mark.parametrize(
    ("endpoint", "stream"),
    [(endpoint, stream) for endpoint in ("chat", "responses") for stream in (True, False)],
)
QUICK = ("--backend", "cpp", "--no-measure", "--trials", "1")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    with start(tmp_path_factory.mktemp("server")) as running:
        yield running


def ask(
    server: RealServer,
    user: str = "Write a kernel.",
    events: list[AskEvent] | None = None,
    *,
    model: str | None = None,
    **options: Any,
) -> Response:
    async def asked() -> Response:
        chosen = {"base_url": server.url, "max_retries": 0, "timeout_s": 60.0, **options}
        provider = open_provider(f"openai:{model or server.model}", ProviderOptions(**chosen))
        history = (("user", "first"), ("assistant", "answer"))
        prompt = Prompt(
            template="t", template_sha256="0", system="be brief", user=user, history=history, sha256="0"
        )
        heard = (events if events is not None else []).append
        try:
            return await provider.ask(Question("level1/1", "cpp", 0, 1, prompt, "key", heard))
        finally:
            await provider.aclose()

    return anyio.run(asked)


@EVERY_WAY
def test_an_answer_comes_whole(server: RealServer, endpoint: str, stream: bool) -> None:
    events: list[AskEvent] = []
    sampling = {"max_completion_tokens": 24, "temperature": 0.0}
    found = ask(server, events=events, endpoint=endpoint, stream=stream, sampling=sampling)
    assert found.text
    assert found.usage is not None and found.usage.completion_tokens == 24
    assert found.usage.prompt_tokens is not None and 10 < found.usage.prompt_tokens < 100
    assert found.served_model == server.model and found.request_id
    assert found.finish_reason == ("length" if endpoint == "chat" else "max_output_tokens")
    assert cut_by(found, sampling) == "max_tokens"
    assert any(event.kind == "streaming" and event.tokens for event in events) is stream
    assert found.raw["object"] == ("chat.completion" if endpoint == "chat" else "response")


def test_every_way_gives_the_same_answer(server: RealServer) -> None:
    ways = [(endpoint, stream) for endpoint in ("chat", "responses") for stream in (True, False)]
    sampling = {"max_completion_tokens": 24, "temperature": 0.0}
    answers = [ask(server, endpoint=e, stream=s, sampling=sampling) for e, s in ways]
    assert len({answer.text for answer in answers}) == 1
    usages = [answer.usage for answer in answers if answer.usage]
    assert len(usages) == 4
    assert len({(usage.prompt_tokens, usage.completion_tokens) for usage in usages}) == 1


@pytest.mark.parametrize("stream", [True, False])
def test_an_answer_that_ends_by_itself_is_no_answer_that_was_cut_off(
    server: RealServer, stream: bool
) -> None:
    whole = ask(server, sampling={"max_completion_tokens": 24}).text
    assert whole
    stop = whole.strip()[-8]
    found = ask(server, stream=stream, sampling={"max_completion_tokens": 24, "stop": [stop]})
    assert found.text and len(found.text) < len(whole) and whole.startswith(found.text)
    assert found.finish_reason == "stop" and cut_by(found, {"max_completion_tokens": 24}) is None


def test_the_limit_of_the_server_itself_is_told_apart(server: RealServer) -> None:
    found = ask(server)
    assert found.finish_reason == "length" and found.usage is not None
    assert found.usage.completion_tokens == DEFAULT_MOST
    after = f"the server ended the answer at its own limit after {DEFAULT_MOST} tokens"
    assert cut_hint(found, {}) == f"{after}; --max-tokens asks for more"


@EVERY_WAY
def test_a_prompt_longer_than_the_context_is_a_clear_error(
    server: RealServer, endpoint: str, stream: bool
) -> None:
    prompt = "longer than the context " * (CONTEXT // 8)
    says = rf"perhaps the prompt of {len(prompt) + 19} characters is longer than the model's context"
    with pytest.raises(ProviderError, match=says):
        ask(server, prompt, endpoint=endpoint, stream=stream, sampling={"max_completion_tokens": 4})
    assert ask(server, endpoint=endpoint, stream=stream, sampling={"max_completion_tokens": 4}).text


@EVERY_WAY
def test_what_the_server_does_not_know_ends_the_run(server: RealServer, endpoint: str, stream: bool) -> None:
    way: dict[str, Any] = {"endpoint": endpoint, "stream": stream}
    with pytest.raises(ProviderFatal, match=r"does not accept weather: change or leave out --param weather"):
        ask(server, sampling={"weather": "fine"}, **way)
    with pytest.raises(ProviderFatal, match=r"requested 'other'.*check the model's name \(--model\)"):
        ask(server, model="other", **way)
    with pytest.raises(ProviderFatal, match=r"Not Found.*--base-url; most end in /v1"):
        ask(server, base_url=server.url.removesuffix("/v1"), **way)


def test_generate_asks_it_and_stores_what_came(server: RealServer, tmp_path: Path, cache: Path) -> None:
    suite = material.problems(tmp_path / "problems")
    with working_in(tmp_path / "workspace", cache) as program:
        command = ("generate", "level1/1", "--suite", suite, "--model", f"openai:{server.model}")
        command += ("--base-url", server.url, "--temperature", 0, *QUICK)
        command += ("--max-tokens", 16)
        program.run(*command, "--endpoint", "responses", "--no-stream")
        cut = program.attempts()[0]
        assert cut.status is Status.TRUNCATED and cut.response is not None
        assert cut.response.text and cut.response.finish_reason == "max_output_tokens"
        # The server sees a stop where a token ends. The first token ends in one of these.
        letters = sorted(set(cut.response.text) - {" "})
        program.run(*command, "--param", f"stop={json.dumps(letters)}")
        ended = program.attempts()[1]
        assert ended.status is Status.NO_CODE and ended.response is not None
        assert cut.response.text.startswith(ended.response.text or "nothing")
        assert ended.response.finish_reason == "stop"
