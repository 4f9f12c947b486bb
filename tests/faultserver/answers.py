"""Answers as Chat Completions and Responses have them, whole and as streams of events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

PROMPT_TOKENS, COMPLETION_TOKENS = 100, 50
STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"


class Asked(NamedTuple):
    """A request."""

    path: str
    body: dict[str, Any]
    text: str
    """The answer it would get."""

    @property
    def is_chat(self) -> bool:
        """Else it is for Responses."""
        return self.path.endswith("/chat/completions")

    @property
    def is_streaming(self) -> bool:
        """Whether the answer is to come as a stream."""
        return bool(self.body.get("stream"))

    @property
    def with_usage(self) -> bool:
        """Whether token counts are wanted in a stream of chunks."""
        return bool((self.body.get("stream_options") or {}).get("include_usage"))


@dataclass(frozen=True)
class Answer:
    """What the model says."""

    text: str | None
    finish: str = "stop"
    """As Chat Completions spells it."""
    others: tuple[str, ...] = ()
    """Texts of further choices."""
    tokens: int = COMPLETION_TOKENS
    more: dict[str, Any] = field(default_factory=dict)
    """Fields of the body beside, or instead of, the usual ones."""


def whole(asked: Asked, answer: Answer) -> dict[str, Any]:
    """The body of an answer."""
    if not asked.is_chat:
        return _response(answer) | answer.more
    usage = {"prompt_tokens": PROMPT_TOKENS, "completion_tokens": answer.tokens}
    choices = [
        {
            "index": number,
            "finish_reason": answer.finish,
            "message": {"role": "assistant", "content": text},
        }
        for number, text in enumerate((answer.text, *answer.others))
    ]
    body = {"id": "c", "object": "chat.completion", "model": "served", "choices": choices, "usage": usage}
    return body | answer.more


def events(asked: Asked, answer: Answer, pieces: int = 1) -> Iterator[dict[str, Any] | None]:
    """The events of an answer; the last one of Chat Completions is None, for `[DONE]`."""
    texts = [_cut(text, pieces) for text in (answer.text, *answer.others)]
    if not asked.is_chat:
        yield {"type": "response.created", "response": {"id": "r", "status": "in_progress"}}
        yield from ({"type": "response.output_text.delta", "delta": part} for part in texts[0])
        kind = "completed" if answer.finish == "stop" else "incomplete"
        yield {"type": f"response.{kind}", "response": whole(asked, answer)}
        return
    head = {"id": "c", "object": "chat.completion.chunk", "model": "served"}
    head |= {name: value for name, value in answer.more.items() if name not in ("choices", "usage")}
    yield {**head, "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]}
    for number in range(max(map(len, texts), default=0)):
        for index, parts in reversed(list(enumerate(texts))):
            if number < len(parts):
                yield {**head, "choices": [{"index": index, "delta": {"content": parts[number]}}]}
    for index in range(len(texts)):
        yield {**head, "choices": [{"index": index, "delta": {}, "finish_reason": answer.finish}]}
    if asked.with_usage:
        yield {**head, "choices": [], "usage": whole(asked, answer)["usage"]}
    yield None


async def send(
    writer: asyncio.StreamWriter, asked: Asked, answer: Answer, *, pieces: int = 1, delay_s: float = 0.0
) -> None:
    """The answer as it was asked for, which takes `delay_s` seconds."""
    if not asked.is_streaming:
        await asyncio.sleep(delay_s)
        reply(writer, "200 OK", json.dumps(whole(asked, answer)))
        return
    writer.write(STREAM_HEAD)
    for event in events(asked, answer, pieces):
        if delay_s and _has_text(event):
            await asyncio.sleep(delay_s / pieces)
        writer.write(chunk(event))
        await writer.drain()
    writer.write(LAST_CHUNK)


def reply(
    writer: asyncio.StreamWriter, status: str, body: str, kind: str = "application/json", **headers: str
) -> None:
    """A whole HTTP reply."""
    data = body.encode("utf-8", "surrogatepass")
    fields = {"content-type": kind, "content-length": str(len(data)), **headers}
    head = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in fields.items())
    writer.write(f"HTTP/1.1 {status}\r\n{head}\r\n".encode() + data)


def chunk(event: dict[str, Any] | None) -> bytes:
    """An event, as a chunk of HTTP."""
    return raw_chunk(f"data: {'[DONE]' if event is None else json.dumps(event)}\n\n".encode())


def raw_chunk(data: bytes) -> bytes:
    """Any bytes as a chunk of HTTP."""
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def _response(answer: Answer) -> dict[str, Any]:
    usage = {"input_tokens": PROMPT_TOKENS, "output_tokens": answer.tokens}
    parts = [] if answer.text is None else [{"type": "output_text", "text": answer.text}]
    body = {"id": "r", "object": "response", "model": "served", "status": "completed", "usage": usage}
    body["output"] = [{"type": "message", "role": "assistant", "content": parts}]
    if answer.finish != "stop":
        reason = "max_output_tokens" if answer.finish == "length" else answer.finish
        body |= {"status": "incomplete", "incomplete_details": {"reason": reason}}
    return body


def _cut(text: str | None, pieces: int) -> list[str]:
    size = max(1, -(-len(text or "") // pieces))
    return [(text or "")[i : i + size] for i in range(0, len(text or ""), size)]


def _has_text(event: dict[str, Any] | None) -> bool:
    if event is None:
        return False
    return "delta" in event or any(choice["delta"].get("content") for choice in event.get("choices", ()))
