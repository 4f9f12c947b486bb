"""Each fault of a server: asked again, given up for one question, or the end of the run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anyio
import pytest

from kernelproof.errors import ProviderError, ProviderFatal
from kernelproof.providers import AskEvent, ProviderOptions, Question, cut_by, cut_hint, open_provider
from kernelproof.types import Response
from tests.faultserver import FaultServer, start
from tests.providers.questions import question

WAYS = [(endpoint, stream) for endpoint in ("chat", "responses") for stream in (True, False)]
EVERY_WAY = pytest.mark.parametrize(("endpoint", "stream"), WAYS)
STREAMED = pytest.mark.parametrize("endpoint", ["chat", "responses"])


@pytest.fixture(scope="module")
def server() -> Iterator[FaultServer]:
    with start() as running:
        yield running


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernelproof.providers.pacing.FIRST_BACKOFF_S", 0.01)


async def ask_many(
    server: FaultServer, model: str, questions: int = 1, events: list[AskEvent] | None = None, **options: Any
) -> list[Response]:
    """Asks so many questions at once."""
    heard = events if events is not None else []
    found: list[Response] = []
    chosen = {"base_url": server.url, "timeout_s": 5.0, "max_retries": 1, **options}
    provider = open_provider(f"openai:{model}", ProviderOptions(**chosen))

    async def one(number: int) -> None:
        q = question()
        found.append(
            await provider.ask(
                Question(q.problem_id, q.backend, number, q.turn, q.prompt, f"key{number}", heard.append)
            )
        )

    try:
        if questions == 1:
            await one(0)
            return found
        async with anyio.create_task_group() as group:
            for number in range(questions):
                group.start_soon(one, number)
    finally:
        await provider.aclose()
    return found


def ask(server: FaultServer, model: str, events: list[AskEvent] | None = None, **options: Any) -> Response:
    async def asked() -> list[Response]:
        return await ask_many(server, model, 1, events, **options)

    return anyio.run(asked)[0]


@EVERY_WAY
def test_an_answer_is_whole_however_it_comes(server: FaultServer, endpoint: str, stream: bool) -> None:
    events: list[AskEvent] = []
    found = ask(server, "any", events, endpoint=endpoint, stream=stream)
    assert found.text == "no code today" and found.finish_reason in ("stop", "completed")
    assert found.usage is not None
    assert (found.usage.prompt_tokens, found.usage.completion_tokens) == (100, 50)
    assert events[0] == AskEvent("sent")
    assert any(event.kind == "streaming" and event.tokens for event in events) is stream


@EVERY_WAY
@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("broken", r"openai:broken: it broke \(HTTP 500\)$"),
        ("bad_gateway", r"openai:bad_gateway: HTTP 502 Bad Gateway$"),
        ("request_timeout", "took too long"),
        ("conflict", "try that again"),
        ("half_a_body", "cannot be reached, or broke off"),
        ("dropped", "cannot be reached, or broke off"),
        ("wrong_json", "not JSON"),
        ("no_choices", "holds no message|broke off after 0 tokens"),
        ("aborted", "failed before the end of its answer: abort"),
    ],
)
def test_what_may_pass_is_asked_again_and_then_an_error_of_one_question(
    server: FaultServer, fault: str, says: str, endpoint: str, stream: bool
) -> None:
    before = server.counts()["requests"]
    with pytest.raises(ProviderError, match=says) as caught:
        ask(server, fault, endpoint=endpoint, stream=stream)
    assert caught.value.retriable
    assert server.counts()["requests"] == before + 2


@STREAMED
def test_a_stream_that_ends_in_the_middle_of_an_answer_is_asked_for_again(
    server: FaultServer, endpoint: str
) -> None:
    before = server.counts()["requests"]
    with pytest.raises(ProviderError, match=r"the answer broke off after [23] tokens"):
        ask(server, "ended_early", endpoint=endpoint)
    with pytest.raises(ProviderError, match="the server broke the answer off: the GPU fell off the bus"):
        ask(server, "error_in_the_stream", endpoint=endpoint)
    assert server.counts()["requests"] == before + 4


def test_an_error_without_an_end_is_not_read_to_its_end(server: FaultServer) -> None:
    with pytest.raises(ProviderError, match=r"HTTP 503 Service Unavailable$") as caught:
        ask(server, "endless_error", max_retries=0)
    assert caught.value.retriable


@STREAMED
@pytest.mark.parametrize("fault", ["stall_before", "stall_after"])
def test_a_silent_server_is_given_up(server: FaultServer, fault: str, endpoint: str) -> None:
    with pytest.raises(ProviderError, match=r"said nothing for 0\.3 s \(--timeout\)") as caught:
        ask(server, fault, timeout_s=0.3, max_retries=0, endpoint=endpoint)
    assert caught.value.retriable


@STREAMED
@pytest.mark.parametrize("fault", ["comments_for_ever", "nothing_for_ever", "headers_for_ever"])
def test_a_server_that_keeps_the_connection_open_and_says_nothing_is_given_up(
    server: FaultServer, fault: str, endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kernelproof.providers.openai_api.SILENCES", 5)
    with pytest.raises(ProviderError, match=r"sent no token for 0\.5 s, though it kept the connection open"):
        ask(server, fault, timeout_s=0.1, max_retries=0, endpoint=endpoint)


def test_an_answer_may_take_longer_than_the_longest_silence() -> None:
    with start(delay_s=1.5, pieces=10) as slow:
        assert ask(slow, "any", timeout_s=0.7, max_retries=0).text == "no code today"


@pytest.mark.few(4)
@EVERY_WAY
@pytest.mark.parametrize(
    ("fault", "seconds"), [("busy", "0.1"), ("busy_by_a_wrong_clock", "1.0"), ("busy_in_the_body", "0.0")]
)
def test_a_busy_server_is_waited_for(
    server: FaultServer,
    fault: str,
    seconds: str,
    endpoint: str,
    stream: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kernelproof.providers.server.BUSY_TRIES", 1)
    events: list[AskEvent] = []
    with pytest.raises(ProviderError, match="slow down") as caught:
        ask(server, fault, events, max_retries=0, endpoint=endpoint, stream=stream)
    assert caught.value.retriable
    (said,) = [event.note for event in events if event.kind == "waiting"]
    assert said.startswith(f"again in {seconds} s: openai:{fault}: ")


def test_a_busy_server_is_asked_less_often_and_every_question_is_answered() -> None:
    events: list[AskEvent] = []
    with start(share=0.3, faults=["busy"], delay_s=0.05) as server:

        async def asked() -> list[Response]:
            return await ask_many(server, "any", 60, events, concurrency=16, max_retries=0)

        assert len(anyio.run(asked)) == 60
        counts = server.counts()
    assert counts["most_in_flight"] <= 16 and sum(counts["answered"].values()) == 60
    assert any("the server is busy: " in event.note for event in events)


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("bad_key", "Incorrect API key provided .*check the key in OPENAI_API_KEY"),
        ("no_credit", "quota is used up: Insufficient Balance"),
        ("no_temperature", "leave out --temperature"),
    ],
)
def test_what_no_question_survives_ends_the_run(
    server: FaultServer, fault: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-mine")
    before = server.counts()["requests"]
    with pytest.raises(ProviderFatal, match=says):
        ask(server, fault, sampling={"temperature": 0.5})
    assert server.counts()["requests"] == before + 1


@pytest.mark.parametrize("key", [None, "", " "])
def test_a_key_that_is_missing_is_not_called_wrong(
    server: FaultServer, key: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MY_KEY", raising=False)
    if key is not None:
        monkeypatch.setenv("MY_KEY", key)
    with pytest.raises(ProviderFatal) as refused:
        ask(server, "bad_key", key_variable="MY_KEY")
    assert "no key is set: put one into MY_KEY (--key-variable names another)" in str(refused.value)
    assert "check the key" not in str(refused.value)


@pytest.mark.parametrize(
    ("fault", "says"), [("too_long", "maximum context length is 4096"), ("flagged", "your input was flagged")]
)
def test_what_is_wrong_with_one_prompt_is_not_sent_again(server: FaultServer, fault: str, says: str) -> None:
    before = server.counts()["requests"]
    with pytest.raises(ProviderError, match=says) as caught:
        ask(server, fault)
    assert not caught.value.retriable
    assert server.counts()["requests"] == before + 1


@pytest.mark.parametrize(
    ("fault", "text"), [("no_stream_options", "without usage"), ("no_streaming", "in one piece")]
)
def test_what_the_client_adds_by_itself_is_left_out_where_it_is_refused(
    server: FaultServer, fault: str, text: str
) -> None:
    before = server.counts()["requests"]

    async def asked() -> list[Response]:
        return await ask_many(server, fault, 8, max_retries=0)

    assert {found.text for found in anyio.run(asked)} == {text}
    assert server.counts()["requests"] <= before + 16


@pytest.mark.few(2)
@EVERY_WAY
def test_odd_answers_are_answers(server: FaultServer, endpoint: str, stream: bool) -> None:
    way: dict[str, Any] = {"endpoint": endpoint, "stream": stream}
    assert ask(server, "content_null", **way).text is None
    assert ask(server, "two_choices", **way).text == "the first"
    assert len(ask(server, "ten_megabytes", **way).text or "") == 10_000_000
    odd = ask(server, "unknown_fields", **way)
    assert odd.text == "no code today" and (odd.usage, odd.served_model) == (None, None)
    hostile = ask(server, "hostile", **way).text or ""
    assert hostile.startswith("\x1b]0;owned\x07\x1b[2J\x00 \ud800 ") and hostile.count("`") == 1_000_000


@EVERY_WAY
def test_an_answer_that_the_server_cut_off_is_told_apart_from_one_at_the_users_limit(
    server: FaultServer, endpoint: str, stream: bool
) -> None:
    cut = ask(server, "cut_by_the_server", endpoint=endpoint, stream=stream)
    assert cut_by(cut, {}) == cut_by(cut, {"max_completion_tokens": 4000}) == "server"
    assert "at its own limit after 16 tokens; --max-tokens asks for more" in cut_hint(cut, {})
    assert cut_by(cut, {"max_completion_tokens": 16}) == "max_tokens"


@STREAMED
@pytest.mark.parametrize("fault", ["unfinished_end", "open_end", "wrong_type", "pings"])
def test_an_answer_that_came_whole_is_taken_however_its_stream_ends(
    server: FaultServer, fault: str, endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kernelproof.providers.openai_api.DRAIN_S", 0.1)
    before = server.counts()["requests"]
    assert ask(server, fault, endpoint=endpoint).text == "no code today"
    assert server.counts()["requests"] == before + 1


@pytest.mark.few(2)
@EVERY_WAY
def test_an_answer_above_the_bound_is_refused(server: FaultServer, endpoint: str, stream: bool) -> None:
    with pytest.raises(ProviderError, match="longer than 64 MiB") as caught:
        ask(server, "too_large", timeout_s=60.0, endpoint=endpoint, stream=stream)
    assert not caught.value.retriable


def test_connections_are_used_again(server: FaultServer) -> None:
    """A stream is read to its end, so that the next question needs no new connection."""
    ports: set[int] = set()

    async def asked() -> None:
        import httpx2

        class Counting(httpx2.AsyncHTTPTransport):
            async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
                reply = await super().handle_async_request(request)
                ports.add(reply.extensions["network_stream"].get_extra_info("client_addr")[1])
                return reply

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("httpx2.AsyncHTTPTransport", Counting)
            provider = open_provider("openai:any", ProviderOptions(base_url=server.url))
            for _ in range(3):
                await provider.ask(question())
            await provider.aclose()

    anyio.run(asked)
    assert len(ports) == 1
