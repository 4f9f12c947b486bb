"""What a server may do wrong, each by itself. A fault gets the connection's writer and what was asked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from email.utils import formatdate
from itertools import count

from tests.faultserver.answers import (
    LAST_CHUNK,
    STREAM_HEAD,
    Answer,
    Asked,
    chunk,
    events,
    raw_chunk,
    reply,
    send,
    whole,
)

Fault = Callable[[asyncio.StreamWriter, Asked], Awaitable[None]]
_TOO_OFTEN = "429 Too Many Requests"
_LONG_AGO = 1_000_000_000
_ESCAPES = "\x1b]0;owned\x07\x1b[2J\u202e"
"""These would steer a terminal."""


def error(message: str, **fields: str) -> str:
    """As OpenAI has it."""
    return json.dumps({"error": {"message": message, **fields}})


def refusal(status: str, body: str, kind: str = "application/json", **headers: str) -> Fault:
    """A whole reply, whatever was asked."""

    async def work(writer: asyncio.StreamWriter, asked: Asked) -> None:
        reply(writer, status, body, kind, **headers)

    return work


def odd(answer: Answer, pieces: int = 1) -> Fault:
    """An answer, as it was asked for."""

    async def work(writer: asyncio.StreamWriter, asked: Asked) -> None:
        await send(writer, asked, answer, pieces=pieces)

    return work


FAULTS: dict[str, Fault] = {
    # The server is busy. The third names a moment in one second, by a clock that is decades behind.
    "busy": refusal(_TOO_OFTEN, error("slow down"), retry_after="0.1"),
    "busy_without_a_time": refusal(_TOO_OFTEN, error("slow down")),
    "busy_by_a_wrong_clock": refusal(
        _TOO_OFTEN,
        error("slow down"),
        retry_after=formatdate(_LONG_AGO + 1, usegmt=True),
        date=formatdate(_LONG_AGO, usegmt=True),
    ),
    # It fails, and may not the next time.
    "broken": refusal("500 Internal Server Error", error("it broke", type="server_error")),
    "bad_gateway": refusal(
        "502 Bad Gateway", "<html><title>502 Bad Gateway</title><body>nginx</body></html>", "text/html"
    ),
    "request_timeout": refusal("408 Request Timeout", error("took too long")),
    "conflict": refusal("409 Conflict", error("try that again")),
    # It refuses: the same question, or all of them, will never be answered.
    "bad_key": refusal("401 Unauthorized", error("Incorrect API key provided")),
    "hostile_words": refusal("401 Unauthorized", error(f"no {_ESCAPES}key\u200b", code="invalid_api_key")),
    "hostile_trouble": refusal("400 Bad Request", error(f"odd {_ESCAPES}question\u200b")),
    "no_credit": refusal("402 Payment Required", error("Insufficient Balance")),
    "forbidden": refusal("403 Forbidden", error("Your project has no access to this model")),
    "flagged": refusal("403 Forbidden", error("This model requires moderation, and your input was flagged")),
    "no_quota": refusal(
        _TOO_OFTEN, error("You exceeded your current quota", code="insufficient_quota")
    ),  # waiting does not mend it
    "no_model": refusal("404 Not Found", error("The model `no_model` does not exist")),
    "no_temperature": refusal(
        "400 Bad Request",
        error(
            "Unsupported parameter: 'temperature' is not supported with this model.",
            param="temperature",
            code="unsupported_parameter",
        ),
    ),
    "too_long": refusal(
        "400 Bad Request",
        error(
            "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens.",
            param="messages",
            code="context_length_exceeded",
        ),
    ),
    # These are odd, and answers all the same; but `too_large` is more than is read.
    "content_null": odd(Answer(None)),
    "two_choices": odd(Answer("the first", others=("the second",)), pieces=3),
    "ten_megabytes": odd(Answer("x" * 10_000_000), pieces=1000),
    "too_large": odd(Answer("x" * 80_000_000), pieces=80),
    "hostile": odd(Answer("\x1b]0;owned\x07\x1b[2J\x00 \ud800 \x9b2J\u202e\u200b\ufeff " + "`" * 1_000_000)),
    "cut_by_the_server": odd(Answer("```python\nimport torch\nclass ModelNew(", finish="length", tokens=16)),
    "aborted": odd(Answer("```python\nimport torch\n```\n", finish="abort")),
}


def fault(work: Fault) -> Fault:
    """Names a fault by its function."""
    FAULTS[work.__name__] = work
    return work


def begun(asked: Asked, pieces: int, most: int | None = None) -> bytes:
    """The first chunks of a streamed answer; all of them without `most`."""
    return STREAM_HEAD + b"".join(map(chunk, list(events(asked, Answer(asked.text), pieces))[:most]))


def half(asked: Asked) -> bytes:
    """Half of a streamed answer."""
    return begun(asked, 6, len(list(events(asked, Answer(asked.text), 6))) // 2)


async def repeat(writer: asyncio.StreamWriter, data: bytes, pause_s: float = 0.02) -> None:
    """The same bytes, until the client hangs up."""
    while True:
        writer.write(data)
        await writer.drain()
        await asyncio.sleep(pause_s)


@fault
async def busy_in_the_body(writer: asyncio.StreamWriter, asked: Asked) -> None:
    """A reply with status 200 whose body says 429, as a gateway has it that streams already."""
    body: dict[str, object] = {"error": {"message": "slow down", "code": 429}}
    if not asked.is_streaming:
        reply(writer, "200 OK", json.dumps(body))
        return
    kind = {} if asked.is_chat else {"type": "error"}
    writer.write(STREAM_HEAD + chunk(kind | body) + LAST_CHUNK)


@fault
async def endless_error(writer: asyncio.StreamWriter, asked: Asked) -> None:
    """503 with a page that has no end."""
    writer.write(b"HTTP/1.1 503 Service Unavailable\r\ntransfer-encoding: chunked\r\n\r\n")
    await repeat(writer, raw_chunk(b"<!-- " + b"x" * 65536), 0)


@fault
async def half_a_body(writer: asyncio.StreamWriter, asked: Asked) -> None:
    """Half of an answer, then it hangs up."""
    if asked.is_streaming:
        writer.write(half(asked))
    else:
        body = json.dumps(whole(asked, Answer(asked.text))).encode()
        head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body[: len(body) // 2])
    await writer.drain()
    writer.close()


@fault
async def ended_early(writer: asyncio.StreamWriter, asked: Asked) -> None:
    """Half of a stream that ends as if all had been sent."""
    writer.write(half(asked) + LAST_CHUNK)


@fault
async def error_in_the_stream(writer: asyncio.StreamWriter, asked: Asked) -> None:
    """The answer begins, then the server says that it failed."""
    failed = {"error": {"message": "the GPU fell off the bus", "type": "server_error"}}
    writer.write(begun(asked, 6, 3) + chunk(failed) + LAST_CHUNK)


@fault
async def dropped(writer: asyncio.StreamWriter, asked: Asked) -> None:
    """Hangs up without a word."""
    writer.close()


@fault
async def wrong_json(writer: asyncio.StreamWriter, asked: Asked) -> None:
    """A body, or an event, that is no JSON."""
    if asked.is_streaming:
        writer.write(STREAM_HEAD + raw_chunk(b'data: {"choices": [\n\n') + LAST_CHUNK)
    else:
        reply(writer, "200 OK", '{"choices": [')


@fault
async def no_choices(writer: asyncio.StreamWriter, asked: Asked) -> None:
    """A body without any answer."""
    if asked.is_streaming and asked.is_chat:
        writer.write(STREAM_HEAD + chunk({"choices": []}) + chunk(None) + LAST_CHUNK)
    elif asked.is_streaming:
        writer.write(STREAM_HEAD + chunk({"type": "response.created"}) + LAST_CHUNK)
    else:
        reply(writer, "200 OK", json.dumps({"object": "chat.completion", "choices": []}))


@fault
async def stall_before(writer: asyncio.StreamWriter, asked: Asked) -> None:
    """Nothing comes at all."""
    await asyncio.sleep(3600)


@fault
async def stall_after(writer: asyncio.StreamWriter, asked: Asked) -> None:
    """The first token comes, then nothing."""
    writer.write(begun(asked, 6, 2))
    await writer.drain()
    await asyncio.sleep(3600)


@fault
async def comments_for_ever(writer: asyncio.StreamWriter, asked: Asked) -> None:
    """Comments that keep the connection open, and never a token."""
    writer.write(STREAM_HEAD)
    await repeat(writer, raw_chunk(b": keep-alive\n\n"))


@fault
async def nothing_for_ever(writer: asyncio.StreamWriter, asked: Asked) -> None:
    """Pieces of the answer that hold nothing."""
    empty = {"choices": [{"index": 0, "delta": {"content": ""}}], "type": "response.output_text.delta"}
    writer.write(STREAM_HEAD)
    await repeat(writer, chunk(empty | {"delta": ""}))


@fault
async def headers_for_ever(writer: asyncio.StreamWriter, asked: Asked) -> None:
    """One header after another."""
    writer.write(b"HTTP/1.1 200 OK\r\n")
    for number in count():
        writer.write(f"x-{number}: y\r\n".encode())
        await writer.drain()
        await asyncio.sleep(0.02)


@fault
async def fifty_megabytes(writer: asyncio.StreamWriter, asked: Asked) -> None:
    """An answer of 50 MB in one piece; of Responses half as much, because a stream of it says all twice."""
    await send(writer, asked, Answer("x" * (50_000_000 if asked.is_chat else 25_000_000)))


@fault
async def unknown_fields(writer: asyncio.StreamWriter, asked: Asked) -> None:
    """Fields that nobody knows, and known ones of other types."""
    more = {"usage": "none", "model": 7, "weather": {"rain": True}, "system_fingerprint": ["a"]}
    await send(writer, asked, Answer(asked.text, more=more))


@fault
async def unfinished_end(writer: asyncio.StreamWriter, asked: Asked) -> None:
    """All of a stream but its last events: the connection breaks when everything was said."""
    sent = [chunk(event) for event in events(asked, Answer(asked.text), 3)]
    last = sent if not asked.is_chat else sent[: -2 if asked.with_usage else -1]
    writer.write(STREAM_HEAD + b"".join(last))
    await writer.drain()
    writer.close()


@fault
async def open_end(writer: asyncio.StreamWriter, asked: Asked) -> None:
    """The whole answer; then the stream is kept open with comments."""
    writer.write(begun(asked, 3))
    await repeat(writer, raw_chunk(b": keep-alive\n\n"))


@fault
async def wrong_type(writer: asyncio.StreamWriter, asked: Asked) -> None:
    """A stream that calls itself plain text."""
    writer.write(begun(asked, 3).replace(b"text/event-stream", b"text/plain", 1) + LAST_CHUNK)


@fault
async def pings(writer: asyncio.StreamWriter, asked: Asked) -> None:
    """Events without data, and ids, between the pieces of the answer."""
    ping = raw_chunk(b"id: 7\n\n: ping\n\nevent: ping\n\n")
    writer.write(STREAM_HEAD + ping.join(map(chunk, events(asked, Answer(asked.text), 3))) + LAST_CHUNK)


@fault
async def no_stream_options(writer: asyncio.StreamWriter, asked: Asked) -> None:
    """400 to `stream_options`; without it an answer."""
    if "stream_options" in asked.body:
        reply(writer, "400 Bad Request", error("Unrecognized request argument supplied: stream_options"))
    else:
        await send(writer, asked, Answer("without usage"))


@fault
async def no_streaming(writer: asyncio.StreamWriter, asked: Asked) -> None:
    """400 to a stream; without it an answer."""
    if asked.is_streaming:
        reply(writer, "400 Bad Request", error("Streaming is not supported by this model"))
    else:
        await send(writer, asked, Answer("in one piece"))


AT_RANDOM = (
    *("busy", "busy_without_a_time", "broken", "bad_gateway", "half_a_body", "dropped", "wrong_json"),
    *("no_choices", "request_timeout", "ended_early", "error_in_the_stream"),
)
"""After these the same question may be asked again, and soon."""
