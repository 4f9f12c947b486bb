"""Streamed answers: pieces of any size make the body that the server would have sent at once."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Iterable
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelproof.errors import ProviderError
from kernelproof.providers import response_from_body
from kernelproof.providers.body import MAX_BODY_BYTES, bounded, events, json_object
from kernelproof.providers.endpoints import ChatAssembler, ResponsesAssembler
from kernelproof.types import Response


async def _pieces(parts: Iterable[bytes]) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


def read(parts: Iterable[bytes]) -> list[dict[str, Any] | None]:
    async def all_of_them() -> list[dict[str, Any] | None]:
        return [event async for event in events(bounded(_pieces(parts)))]

    return anyio.run(all_of_them)


def chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"id": "c", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def chat(*deltas: dict[str, Any]) -> Response:
    assembler = ChatAssembler()
    for delta in deltas:
        assembler.add(chunk(**delta))
    assembler.add(chunk("stop"))
    body = assembler.body()
    assert body is not None
    return response_from_body(body)


@pytest.mark.parametrize(
    "stream",
    [
        b'data: {"a": 1}\r\n\r\ndata: {"b": "\xe2\x80\xa8"}\r\n\r\ndata: [DONE]\n\n',
        b'data: {"a":\ndata: 1}\n\ndata:{"b": "\xe2\x80\xa8"}\n\ndata: [DONE]',
        b': ping\n\ndata: {"a": 1}\n\nevent: ping\n\ndata: {"b": "\\u2028"}\n\ndata:\n\ndata: [DONE]\n',
        b'id: 1\ndata: {"a": 1}\n\n: ping\n\nid: 2\ndata: {"b": "\xe2\x80\xa8"}\n\n\n\ndata: [DONE]\n\n',
    ],
)
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_events_come_whole_however_servers_write_and_cut_them(stream: bytes, size: int) -> None:
    parts = [stream[start : start + size] for start in range(0, len(stream), size)]
    assert read(parts) == [{"a": 1}, {"b": "\u2028"}, None]


def test_a_byte_that_is_no_text_is_replaced() -> None:
    assert read([b'data: {"a": "x\xf0\x9f"}\n\n', b'data: {"b": 2}\n\n']) == [{"a": "x\ufffd"}, {"b": 2}]


@pytest.mark.parametrize("data", [b"data: {half\n\n", b"data: 7\n\n", b"data: " + b"[" * 100_000 + b"\n\n"])
def test_an_event_that_is_no_object_is_an_error(data: bytes) -> None:
    with pytest.raises(ProviderError, match="a piece of the server's answer is not"):
        read([data])


def test_what_json_does_not_know_becomes_null() -> None:
    assert json_object('{"a": NaN, "b": [-Infinity]}', "it") == {"a": None, "b": [None]}


def test_more_than_the_bound_is_refused() -> None:
    with pytest.raises(ProviderError, match="longer than 64 MiB"):
        read(b"x" * (1 << 20) for _ in range((MAX_BODY_BYTES >> 20) + 1))


def test_one_long_line_takes_time_in_proportion() -> None:
    def seconds(megabytes: int) -> float:
        began = time.process_time()
        read([b"x" * 4096] * (256 * megabytes))
        return time.process_time() - began

    assert seconds(32) < 16 * max(seconds(8), 0.01)


@pytest.mark.parametrize(
    ("deltas", "said", "reasoning"),
    [
        ([{"content": "a"}, {"content": "b"}], "ab", None),
        ([{"reasoning_content": "x"}, {"reasoning_content": "y"}, {"content": "a"}], "a", "xy"),
        ([{"reasoning": "x"}, {"reasoning": "y", "content": None}, {"content": "a"}], "a", "xy"),
        (
            [
                {
                    "reasoning": "x",
                    "reasoning_details": [{"type": "reasoning.text", "text": "x", "index": 0}],
                },
                {
                    "reasoning": "y",
                    "reasoning_details": [{"type": "reasoning.text", "text": "y", "index": 0}],
                },
                {"reasoning_details": [{"type": "reasoning.encrypted", "data": "opaque"}]},
                {"content": "a"},
            ],
            "a",
            "xy",
        ),
        (
            [
                {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "x"}]}]},
                {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "y"}]}]},
                {"content": "a"},
                {"content": "b"},
            ],
            "ab",
            "xy",
        ),
        (
            [{"content": [{"type": "text", "text": "a"}]}, {"content": [{"type": "text", "text": "b"}]}],
            "ab",
            None,
        ),
        ([{"role": "assistant", "content": ""}], None, None),
    ],
)
def test_every_spelling_of_reasoning_is_put_together(
    deltas: list[dict[str, Any]], said: str | None, reasoning: str | None
) -> None:
    found = chat(*deltas)
    assert (found.text, found.reasoning) == (said, reasoning)


def test_ten_thousand_pieces_of_reasoning_are_one_part() -> None:
    part = {"type": "reasoning.text", "text": "x", "index": 0}
    found = chat(*[{"reasoning_details": [part]}] * 10_000)
    (kept,) = found.raw["choices"][0]["message"]["reasoning_details"]
    assert kept == part | {"text": "x" * 10_000}


def test_the_refusal_usage_and_names_are_kept() -> None:
    assembler = ChatAssembler()
    assembler.add({**chunk(refusal="I "), "system_fingerprint": "fp", "provider": "p"})
    assembler.add(chunk("stop", refusal="will not"))
    assembler.add({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2, "cost": 0.25}})
    found = response_from_body(assembler.body() or {})
    assert (found.refusal, found.finish_reason, found.text) == ("I will not", "stop", None)
    assert (found.served_model, found.system_fingerprint, found.cost_usd) == ("m", "fp", 0.25)
    assert found.usage is not None and found.usage.completion_tokens == 2
    assert found.raw["object"] == "chat.completion" and found.raw["provider"] == "p"


def test_nothing_is_no_token() -> None:
    for assembler, nothing in (
        (ChatAssembler(), chunk(content="", reasoning_details=[{"text": ""}])),
        (ResponsesAssembler(), {"type": "response.output_text.delta", "delta": ""}),
    ):
        assembler.add(nothing)
        assert assembler.tokens == 0 and assembler.body() is None


def test_the_last_event_of_responses_is_the_answer() -> None:
    assembler = ResponsesAssembler()
    reasoning = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}
    message = {"type": "message", "content": [{"type": "output_text", "text": "cut"}]}
    assembler.add({"type": "response.created", "response": {"status": "in_progress"}})
    assembler.add({"type": "response.reasoning_summary_text.delta", "delta": "hm"})
    assembler.add({"type": "response.output_item.done", "item": reasoning})
    assembler.add({"type": "response.output_text.delta", "delta": "cut"})
    assembler.add({"type": "response.output_item.done", "item": message})
    assert assembler.tokens == 2 and not assembler.done and assembler.body() is None
    details = {
        "input_tokens": 9,
        "output_tokens": 5,
        "input_tokens_details": {"cached_tokens": 4},
        "output_tokens_details": {"reasoning_tokens": 3},
    }
    last = {
        "status": "incomplete",
        "incomplete_details": {"reason": "max_output_tokens"},
        "usage": details,
        "output": [],
    }
    assembler.add({"type": "response.incomplete", "response": last})
    assert assembler.done
    found = response_from_body(assembler.body() or {})
    assert (found.text, found.reasoning, found.finish_reason) == ("cut", "hm", "max_output_tokens")
    assert found.usage is not None
    assert (found.usage.prompt_tokens, found.usage.completion_tokens) == (9, 5)
    assert (found.usage.cached_tokens, found.usage.reasoning_tokens) == (4, 3)


leaves = st.none() | st.booleans() | st.integers() | st.text(max_size=4)
fields = "choices delta index content reasoning reasoning_details text type usage error response output"
names = st.sampled_from([*fields.split(), "finish_reason", "item", "message", "thinking", "object"])
values = st.recursive(
    leaves | st.sampled_from(["response.completed", "response.output_item.done", "response.x.delta"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4),
    max_leaves=16,
)
odd_chunk = st.builds(
    lambda delta, index: chunk("stop", **delta) | index, st.dictionaries(names, values), st.just({})
)


@pytest.mark.parametrize("kind", [ChatAssembler, ResponsesAssembler])
@given(st.lists(st.dictionaries(names, values, max_size=4) | odd_chunk, max_size=5))
def test_any_events_are_a_response_or_a_provider_error(
    kind: type[ChatAssembler] | type[ResponsesAssembler], sent: list[dict[str, Any]]
) -> None:
    assembler = kind()
    try:
        for event in sent:
            assembler.add(event)
        assembler.done = True
        body = assembler.body()
        if body is not None:
            assert isinstance(response_from_body(body), Response)
            json.dumps(body)
    except ProviderError:
        pass
