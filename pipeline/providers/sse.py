"""Server-sent events, as models' servers stream their answers.

https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from kernelproof.errors import ProviderError

MAX_BODY_BYTES = 64 << 20
"""A longer answer is refused."""
_FIRST = ("data:", "event:", "id:", "retry:", ": ")


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


async def lines(pieces: AsyncIterator[bytes]) -> AsyncIterator[str]:
    """The lines of a stream, without their ends. Only a line feed ends one: JSON may hold others."""
    rest = bytearray()
    async for piece in pieces:
        first, *more = piece.split(b"\n")
        rest += first
        for following in more:
            yield _text(rest)
            rest = bytearray(following)
    if rest:
        yield _text(rest)


async def events(found: AsyncIterator[str]) -> AsyncIterator[dict[str, Any] | None]:
    """The data of each event: a JSON object; None for `[DONE]`. Comments and empty events are left out.

    Raises ProviderError for data that is no JSON object.
    """
    data: list[str] = []
    async for line in found:
        if line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
        elif not line and any(data):
            yield _event("\n".join(data))
            data = []
    if any(data):
        yield _event("\n".join(data))


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


def _event(text: str) -> dict[str, Any] | None:
    return None if text.strip() == "[DONE]" else json_object(text, "a piece of the server's answer")


def _text(line: bytearray) -> str:
    return line.removesuffix(b"\r").decode("utf-8", "replace")
