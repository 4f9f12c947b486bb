"""Bodies of replies: bounded, as JSON, or as the events of a stream."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from kernelproof.errors import ProviderError

MAX_BODY_BYTES = 64 << 20
"""A longer answer is refused."""
_FIRST = ("data:", "event:", "id:", "retry:", ": ")
_STREAM = {"content-type": "text/event-stream; charset=utf-8"}


async def bounded(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The pieces of a body. Raises ProviderError when they are more than `MAX_BODY_BYTES`."""
    size = 0
    async for piece in pieces:
        size += len(piece)
        if size > MAX_BODY_BYTES:
            raise ProviderError(
                f"the server's answer is longer than {MAX_BODY_BYTES >> 20} MiB", retriable=False
            )
        yield piece


async def text_of(pieces: AsyncIterator[bytes]) -> str:
    """The whole body. Raises ProviderError as `bounded` does."""
    whole = bytearray()
    async for piece in bounded(pieces):
        whole += piece
    return whole.decode("utf-8", "replace")


async def events(pieces: AsyncIterator[bytes]) -> AsyncIterator[dict[str, Any] | None]:
    """The data of each event: a JSON object; None for `[DONE]`. Events without data are left out.

    Read by httpx2. The openai package ends the stream, and loses the answer, at an event without data, at a
    comment after an `id` and at a byte that is no UTF-8, and does not tell `[DONE]` from the end of a body.
    Raises ProviderError for data that is no JSON object.
    """
    import httpx2

    async def ended() -> AsyncIterator[bytes]:
        async for piece in pieces:
            yield piece
        yield b"\n\n"  # servers leave it out after the last event

    request = httpx2.Request("POST", "http://server")  # named in errors alone
    reply = httpx2.Response(200, headers=_STREAM, content=ended(), request=request)
    async for event in httpx2.EventSource(reply, max_event_size=None):
        if event.data.strip() == "[DONE]":
            yield None
        elif event.data:
            yield json_object(event.data, "a piece of the server's answer")


def looks_streamed(body: str) -> bool:
    """Whether a body is a stream of events, though its content type does not say so."""
    return body.lstrip().startswith(_FIRST)


def json_object(text: str, what: str) -> dict[str, Any]:
    """A JSON text as an object; NaN and infinities, which JSON does not know, as null.

    Raises ProviderError, which calls the text `what`, for any other text.
    """
    if not text.strip():
        raise ProviderError(f"{what} is empty")
    try:
        found = json.loads(text, parse_constant=lambda _: None)
    except (ValueError, RecursionError) as error:
        page = ": a page for people; does the base URL (--base-url) end in /v1?" if text[:1] == "<" else ""
        raise ProviderError(f"{what} is not JSON{page}: {text[:200]!r}") from error
    if not isinstance(found, dict):
        raise ProviderError(f"{what} is not a JSON object: {text[:200]!r}")
    return found
