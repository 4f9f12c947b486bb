"""Bodies of replies: bounded, as JSON or a stream's events, and read as servers really send them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any, Literal

from kernelproof.errors import ProviderError
from kernelproof.providers.server_errors import AnswerError
from kernelproof.types import Response, Usage
from kernelproof.types.exchange import FAILED, LIMITED
from kernelproof.wording import counted

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


MAX_DEPTH = 100
"""A body whose lists and objects lie deeper in each other is refused: not everything could store it."""
_MOST = 2**53
"""No count of tokens is larger."""
_REASONING_FIELDS = ("reasoning_details", "reasoning_content", "reasoning")
_SAID = "the server answered with an error"
_PART_FIELDS = ("text", "summary", "thinking")


def response_from_body(
    body: Mapping[str, Any], *, request_id: str | None = None, latency: float | None = None
) -> Response:
    """The response in a server's JSON body, of Chat Completions or of Responses; the whole body is kept in
    `raw`.

    `latency` is in seconds; without a `request_id` the body's own `id` stands for it. Reasoning is taken
    from the first of `reasoning_details`, `reasoning_content` and `reasoning` that holds text; think tags
    inside the content stay there for the extraction to judge.
    Raises AnswerError when the body holds an error, ProviderError when it holds no choice with a message or
    its finish reason says that the server failed.
    """
    if _is_deep(body):
        raise ProviderError("the server's answer is nested too deeply", retriable=False)
    is_of_responses = "output" in body and "choices" not in body
    response = (_of_responses if is_of_responses else _of_chat)(body, request_id, latency)
    if (response.finish_reason or "").lower() in FAILED:
        raise ProviderError(f"the server failed before the end of its answer: {response.finish_reason}")
    return response


def _of_chat(body: Mapping[str, Any], request_id: str | None, latency: float | None) -> Response:
    """A `chat.completion` body."""
    choice = _choice(body)
    message = choice["message"]
    text, thoughts = _content(message.get("content"))
    return Response(
        text=text,
        reasoning=next(filter(None, (_text_of(message.get(f)) for f in _REASONING_FIELDS)), thoughts),
        refusal=_string(message.get("refusal")),
        finish_reason=_string(choice.get("finish_reason")),
        usage=_usage(body.get("usage")),
        request_id=request_id or _string(body.get("id")),
        served_model=_string(body.get("model")),
        system_fingerprint=_string(body.get("system_fingerprint")),
        latency_s=latency,
        cost_usd=_cost(body.get("usage")),
        raw=dict(body),
    )


def cut_by(response: Response, sampling: Mapping[str, Any]) -> Literal["server", "max_tokens"] | None:
    """What ended an answer at a limit of tokens: the limit that was asked for, or one of the server's own.

    None when no limit did. A server's own limit is the model's context, or a default that a larger
    `--max-tokens` lifts.
    """
    if (response.finish_reason or "").lower() not in LIMITED:
        return None
    names = ("max_completion_tokens", "max_tokens", "max_output_tokens")
    asked = next((sampling[name] for name in names if isinstance(sampling.get(name), int)), None)
    used = response.usage.completion_tokens if response.usage else None
    if asked is None or (used is not None and used < 0.98 * asked):
        return "server"
    return "max_tokens"


def with_limit(response: Response, sent: Mapping[str, Any]) -> Response:
    """The response, with the limit of tokens in `sent` as its finish reason where that is what ended it.

    Servers of their own (that of transformers 5, say) call such an answer of Responses completed.
    """
    most, usage = sent.get("max_output_tokens"), response.usage
    used = usage.completion_tokens if usage else None
    if response.finish_reason != "completed" or not isinstance(most, int) or used is None or used < most:
        return response
    return response.model_copy(update={"finish_reason": "max_output_tokens"})


def cut_hint(response: Response, sampling: Mapping[str, Any]) -> str:
    """What to do about an answer that a limit of tokens ended; empty when none did."""
    cut = cut_by(response, sampling)
    if cut == "max_tokens":
        return "the answer reached --max-tokens; give a larger one"
    if cut == "server":
        used = response.usage.completion_tokens if response.usage else None
        after = f" after {counted(used, 'token')}" if used is not None else ""
        return f"the server ended the answer at its own limit{after}; --max-tokens asks for more"
    return ""


def _of_responses(body: Mapping[str, Any], request_id: str | None, latency: float | None) -> Response:
    """A `response` body: a list of items, of which messages and reasoning are read."""
    if body.get("error"):
        raise AnswerError(body, _SAID)
    output = body.get("output")
    items = [item for item in output if isinstance(item, Mapping)] if isinstance(output, list) else []
    parts = [part for item in items if item.get("type") == "message" for part in _parts(item.get("content"))]
    thoughts = [item for item in items if item.get("type") == "reasoning"]
    why = body.get("incomplete_details")
    reason = _string(why.get("reason")) if isinstance(why, Mapping) else None
    return Response(
        text=_joined(part.get("text") for part in parts if part.get("type") != "refusal"),
        reasoning=_joined(item.get("content") or item.get("summary") for item in thoughts),
        refusal=_joined(part.get("refusal") for part in parts),
        finish_reason=reason or _string(body.get("status")),
        usage=_usage(body.get("usage")),
        request_id=request_id or _string(body.get("id")),
        served_model=_string(body.get("model")),
        latency_s=latency,
        cost_usd=_cost(body.get("usage")),
        raw=dict(body),
    )


def _parts(content: object) -> list[Mapping[str, Any]]:
    if isinstance(content, str):
        return [{"type": "output_text", "text": content}]
    return [part for part in content if isinstance(part, Mapping)] if isinstance(content, list) else []


def _choice(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """The first choice, known to hold a message object."""
    choices = body.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    for holder in (body, choice):
        if isinstance(holder, Mapping) and (holder.get("error") or holder.get("object") == "error"):
            raise AnswerError(holder, _SAID)
    if not isinstance(choice, Mapping) or not isinstance(choice.get("message"), Mapping):
        fields = ", ".join(map(str, body))[:500]
        raise ProviderError(f"the server's answer holds no message; its fields: {fields or 'none'}")
    return choice


def _is_deep(body: object) -> bool:
    """Whether lists and objects lie in each other more than `MAX_DEPTH` times. Without recursion."""
    level = [body]
    for _ in range(MAX_DEPTH):
        inner: list[object] = []
        for holder in level:
            values = holder.values() if isinstance(holder, Mapping) else holder
            inner += (value for value in values if isinstance(value, Mapping | list))  # type: ignore[attr-defined]
        if not inner:
            return False
        level = inner
    return True


def _content(content: object) -> tuple[str | None, str | None]:
    """Text and thinking of a message's content: a string, or a list of typed parts."""
    if not isinstance(content, list):
        return _string(content), None
    parts = [part for part in content if isinstance(part, Mapping)]
    thoughts = _joined(part.get("thinking") for part in parts if part.get("type") == "thinking")
    return _joined(part.get("text") for part in parts if part.get("type") != "thinking"), thoughts


def _text_of(value: object) -> str | None:
    """The text of a reasoning field: a string, a part that holds text, or a list of such parts."""
    if isinstance(value, Mapping):
        return next(filter(None, (_text_of(value.get(field)) for field in _PART_FIELDS)), None)
    if isinstance(value, list):
        return _joined(value)
    return _string(value)


def _joined(values: Iterable[object]) -> str | None:
    """The texts of several parts as one; None when there is none."""
    texts = [text for text in map(_text_of, values) if text]
    return "".join(texts) or None


def _usage(usage: object) -> Usage | None:
    """Token counts, by the names of Chat Completions, else of Responses."""
    if not isinstance(usage, Mapping):
        return None

    def first(*places: tuple[object, str]) -> int | None:
        return next((found for place in places if (found := _count(*place)) is not None), None)

    return Usage(
        prompt_tokens=first((usage, "prompt_tokens"), (usage, "input_tokens")),
        completion_tokens=first((usage, "completion_tokens"), (usage, "output_tokens")),
        reasoning_tokens=first(
            (usage.get("completion_tokens_details"), "reasoning_tokens"),
            (usage.get("output_tokens_details"), "reasoning_tokens"),
        ),
        cached_tokens=first(
            (usage.get("prompt_tokens_details"), "cached_tokens"),
            (usage.get("input_tokens_details"), "cached_tokens"),
            (usage, "prompt_cache_hit_tokens"),
        ),
    )


def _cost(usage: object) -> float | None:
    """US dollars, where the server says so (OpenRouter's `usage.cost`)."""
    cost = usage.get("cost") if isinstance(usage, Mapping) else None
    known = isinstance(cost, int | float) and not isinstance(cost, bool) and 0 <= cost < _MOST
    return float(cost) if known and cost is not None else None


def _count(holder: object, field: str) -> int | None:
    value = holder.get(field) if isinstance(holder, Mapping) else None
    known = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST
    return value if known else None


def _string(value: object) -> str | None:
    return value if isinstance(value, str) else None
