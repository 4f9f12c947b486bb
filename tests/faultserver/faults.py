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
FAULTS: dict[str, Fault] = {}
_TOO_OFTEN = "429 Too Many Requests"


def fault(work: Fault) -> Fault:
    """Names a fault by its function."""
    FAULTS[work.__name__] = work
    return work


def error(message: str, **fields: str) -> str:
    """As OpenAI has it."""
    return json.dumps({"error": {"message": message, **fields}})


# The server is busy.


@fault
async def busy(writer: asyncio.StreamWriter, asked: Asked) -> None:
    """429 that says how long to wait."""
    reply(writer, _TOO_OFTEN, error("slow down"), retry_after="0.1")


@fault
async def busy_without_a_time(writer: asyncio.StreamWriter, asked: Asked) -> None:
    """429 that does not say how long to wait."""
    reply(writer, _TOO_OFTEN, error("slow down"))


@fault
async def busy_by_a_wrong_clock(writer: asyncio.StreamWriter, asked: Asked) -> None:
    """429 that names a moment in one second, by a clock that is decades behind."""
    now = 1_000_000_000
    headers = {"retry_after": formatdate(now + 1, usegmt=True), "date": formatdate(now, usegmt=True)}
    reply(writer, _TOO_OFTEN, error("slow down"), **headers)


@fault
async def busy_in_the_body(writer: asyncio.StreamWriter, asked: Asked) -> None:
    """A reply with status 200 whose body says 429, as a gateway has it that streams already."""
    body: dict[str, object] = {"error": {"message": "slow down", "code": 429}}
    if not asked.is_streaming:
        reply(writer, "200 OK", json.dumps(body))
        return
    kind = {} if asked.is_chat else {"type": "error"}
    writer.write(STREAM_HEAD + chunk(kind | body) + LAST_CHUNK)


# It fails, and may not the next time.


@fault
async def broken(writer: asyncio.StreamWriter, asked: Asked) -> None:
    """500 in JSON."""
    reply(writer, "500 Internal Server Error", error("it broke", type="server_error"))


@fault
async def bad_gateway(writer: asyncio.StreamWriter, asked: Asked) -> None:
    """502 with a page of HTML, as proxies send it."""
    page = "<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>"
    reply(writer, "502 Bad Gateway", page, "text/html")


@fault
async def endless_error(writer: asyncio.StreamWriter, asked: Asked) -> None:
    """503 with a page that has no end."""
    writer.write(b"HTTP/1.1 503 Service Unavailable\r\ntransfer-encoding: chunked\r\n\r\n")
    while True:
        writer.write(raw_chunk(b"<!-- " + b"x" * 65536))
        await writer.drain()


@fault
async def request_timeout(writer: asyncio.StreamWriter, asked: Asked) -> None:
    """408."""
    reply(writer, "408 Request Timeout", error("took too long"))


@fault
async def conflict(writer: asyncio.StreamWriter, asked: Asked) -> None:
    """409."""
    reply(writer, "409 Conflict", error("try that again"))


@fault
async def half_a_body(writer: asyncio.StreamWriter, asked: Asked) -> None:
    """Half of an answer, then it hangs up."""
    if asked.is_streaming:
        sent = [chunk(event) for event in events(asked, Answer(asked.text), 6)]
        writer.write(STREAM_HEAD + b"".join(sent[: len(sent) // 2]))
    else:
        body = json.dumps(whole(asked, Answer(asked.text))).encode()
        head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body[: len(body) // 2])
    await writer.drain()
    writer.close()


@fault
async def ended_early(writer: asyncio.StreamWriter, asked: Asked) -> None:
    """Half of a stream that ends as if all had been sent."""
    sent = [chunk(event) for event in events(asked, Answer(asked.text), 6)]
    writer.write(STREAM_HEAD + b"".join(sent[: len(sent) // 2]) + LAST_CHUNK)


@fault
async def error_in_the_stream(writer: asyncio.StreamWriter, asked: Asked) -> None:
    """The answer begins, then the server says that it failed."""
    begun = b"".join(map(chunk, list(events(asked, Answer(asked.text), 6))[:3]))
    failed = {"error": {"message": "the GPU fell off the bus", "type": "server_error"}}
    writer.write(STREAM_HEAD + begun + chunk(failed) + LAST_CHUNK)


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


# It is silent, or says nothing for ever. These last until the client hangs up.


@fault
async def stall_before(writer: asyncio.StreamWriter, asked: Asked) -> None:
    """Nothing comes at all."""
    await asyncio.sleep(3600)


@fault
async def stall_after(writer: asyncio.StreamWriter, asked: Asked) -> None:
    """The first token comes, then nothing."""
    writer.write(STREAM_HEAD + b"".join(map(chunk, list(events(asked, Answer(asked.text), 6))[:2])))
    await writer.drain()
    await asyncio.sleep(3600)


@fault
async def comments_for_ever(writer: asyncio.StreamWriter, asked: Asked) -> None:
    """Comments that keep the connection open, and never a token."""
    writer.write(STREAM_HEAD)
    while True:
        writer.write(raw_chunk(b": keep-alive\n\n"))
        await writer.drain()
        await asyncio.sleep(0.02)


@fault
async def nothing_for_ever(writer: asyncio.StreamWriter, asked: Asked) -> None:
    """Pieces of the answer that hold nothing."""
    empty = {"choices": [{"index": 0, "delta": {"content": ""}}], "type": "response.output_text.delta"}
    writer.write(STREAM_HEAD)
    while True:
        writer.write(chunk(empty | {"delta": ""}))
        await writer.drain()
        await asyncio.sleep(0.02)


@fault
async def headers_for_ever(writer: asyncio.StreamWriter, asked: Asked) -> None:
    """One header after another."""
    writer.write(b"HTTP/1.1 200 OK\r\n")
    for number in count():
        writer.write(f"x-{number}: y\r\n".encode())
        await writer.drain()
        await asyncio.sleep(0.02)


# The following is odd, and an answer all the same.


@fault
async def content_null(writer: asyncio.StreamWriter, asked: Asked) -> None:
    """A message without content."""
    await send(writer, asked, Answer(None))


@fault
async def two_choices(writer: asyncio.StreamWriter, asked: Asked) -> None:
    """Two answers to one question."""
    await send(writer, asked, Answer("the first", others=("the second",)), pieces=3)


@fault
async def ten_megabytes(writer: asyncio.StreamWriter, asked: Asked) -> None:
    """An answer of 10 MB."""
    await send(writer, asked, Answer("x" * 10_000_000), pieces=1000)


@fault
async def fifty_megabytes(writer: asyncio.StreamWriter, asked: Asked) -> None:
    """An answer of 50 MB in one piece; of Responses half as much, because a stream of it says all twice."""
    await send(writer, asked, Answer("x" * (50_000_000 if asked.is_chat else 25_000_000)))


@fault
async def too_large(writer: asyncio.StreamWriter, asked: Asked) -> None:
    """An answer of 80 MB: more than is read."""
    await send(writer, asked, Answer("x" * 80_000_000), pieces=80)


@fault
async def unknown_fields(writer: asyncio.StreamWriter, asked: Asked) -> None:
    """Fields that nobody knows, and known ones of other types."""
    more = {"usage": "none", "model": 7, "weather": {"rain": True}, "system_fingerprint": ["a"]}
    await send(writer, asked, Answer(asked.text, more=more))


@fault
async def hostile(writer: asyncio.StreamWriter, asked: Asked) -> None:
    """Terminal escapes, NUL, a lone surrogate, reordering, no width, a million backticks."""
    text = "\x1b]0;owned\x07\x1b[2J\x00 \ud800 \x9b2J\u202e\u200b\ufeff " + "`" * 1_000_000
    await send(writer, asked, Answer(text))


@fault
async def hostile_words(writer: asyncio.StreamWriter, asked: Asked) -> None:
    """401 whose message would steer a terminal."""
    reply(
        writer, "401 Unauthorized", error("no \x1b]0;owned\x07\x1b[2J\u202ekey\u200b", code="invalid_api_key")
    )


@fault
async def hostile_trouble(writer: asyncio.StreamWriter, asked: Asked) -> None:
    """400 for this question alone, whose message would steer a terminal."""
    reply(writer, "400 Bad Request", error("odd \x1b]0;owned\x07\x1b[2J\u202equestion\u200b"))


@fault
async def cut_by_the_server(writer: asyncio.StreamWriter, asked: Asked) -> None:
    """The answer ends at the server's own limit, after few tokens."""
    text = "```python\nimport torch\nclass ModelNew("
    await send(writer, asked, Answer(text, finish="length", tokens=16))


@fault
async def aborted(writer: asyncio.StreamWriter, asked: Asked) -> None:
    """The server stops the answer, and calls it an answer all the same."""
    await send(writer, asked, Answer("```python\nimport torch\n```\n", finish="abort"))


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
    writer.write(STREAM_HEAD + b"".join(map(chunk, events(asked, Answer(asked.text), 3))))
    while True:
        writer.write(raw_chunk(b": keep-alive\n\n"))
        await writer.drain()
        await asyncio.sleep(0.02)


@fault
async def wrong_type(writer: asyncio.StreamWriter, asked: Asked) -> None:
    """A stream that calls itself plain text."""
    head = STREAM_HEAD.replace(b"text/event-stream", b"text/plain")
    writer.write(head + b"".join(map(chunk, events(asked, Answer(asked.text), 3))) + LAST_CHUNK)


@fault
async def pings(writer: asyncio.StreamWriter, asked: Asked) -> None:
    """Events without data, and ids, between the pieces of the answer."""
    ping = raw_chunk(b"id: 7\n\n: ping\n\nevent: ping\n\n")
    writer.write(STREAM_HEAD + ping.join(map(chunk, events(asked, Answer(asked.text), 3))) + LAST_CHUNK)


# It refuses: the same question, or all of them, will never be answered.


@fault
async def bad_key(writer: asyncio.StreamWriter, asked: Asked) -> None:
    """401."""
    reply(writer, "401 Unauthorized", error("Incorrect API key provided"))


@fault
async def no_credit(writer: asyncio.StreamWriter, asked: Asked) -> None:
    """402."""
    reply(writer, "402 Payment Required", error("Insufficient Balance"))


@fault
async def forbidden(writer: asyncio.StreamWriter, asked: Asked) -> None:
    """403."""
    reply(writer, "403 Forbidden", error("Your project has no access to this model"))


@fault
async def flagged(writer: asyncio.StreamWriter, asked: Asked) -> None:
    """403 of a gateway's moderation: for this prompt alone."""
    reply(writer, "403 Forbidden", error("This model requires moderation, and your input was flagged"))


@fault
async def no_quota(writer: asyncio.StreamWriter, asked: Asked) -> None:
    """429 that waiting does not mend."""
    reply(writer, _TOO_OFTEN, error("You exceeded your current quota", code="insufficient_quota"))


@fault
async def no_model(writer: asyncio.StreamWriter, asked: Asked) -> None:
    """404."""
    reply(writer, "404 Not Found", error("The model `no_model` does not exist"))


@fault
async def no_temperature(writer: asyncio.StreamWriter, asked: Asked) -> None:
    """400: a parameter that the model does not take."""
    said = "Unsupported parameter: 'temperature' is not supported with this model."
    reply(writer, "400 Bad Request", error(said, param="temperature", code="unsupported_parameter"))


@fault
async def too_long(writer: asyncio.StreamWriter, asked: Asked) -> None:
    """400: the prompt is longer than the model's context."""
    said = "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens."
    reply(writer, "400 Bad Request", error(said, param="messages", code="context_length_exceeded"))


# It refuses what the client adds by itself.


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
