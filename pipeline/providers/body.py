"""Reads a `chat.completion` body as servers really send it: fields missing, null, or of another type."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pipeline.errors import ProviderError
from pipeline.types import Response, Usage

_REASONING_FIELDS = ("reasoning_details", "reasoning_content", "reasoning")
_PART_FIELDS = ("text", "summary", "thinking")


def response_from_body(
    body: Mapping[str, Any], *, request_id: str | None = None, latency: float | None = None
) -> Response:
    """The response in a server's JSON body; the whole body is kept in `raw`.

    `latency` is in seconds; without a `request_id` the body's own `id` stands for it. Reasoning is taken
    from the first of `reasoning_details`, `reasoning_content` and `reasoning` that holds text; think tags
    inside the content stay there for the extraction to judge.
    Raises ProviderError when the body holds an error, or no choice with a message.
    """
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
        raw=dict(body),
    )


def _choice(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """The first choice, known to hold a message object."""
    choices = body.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    for holder in (body, choice):
        if isinstance(holder, Mapping) and holder.get("error"):
            raise ProviderError(f"the server answered with an error: {_error_text(holder['error'])}")
    if not isinstance(choice, Mapping) or not isinstance(choice.get("message"), Mapping):
        raise ProviderError(f"the server's answer holds no message; its fields: {', '.join(map(str, body))}")
    return choice


def _error_text(error: object) -> str:
    message = error.get("message") if isinstance(error, Mapping) else None
    return str(message or error)[:500]


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
    if not isinstance(usage, Mapping):
        return None
    return Usage(
        prompt_tokens=_count(usage, "prompt_tokens"),
        completion_tokens=_count(usage, "completion_tokens"),
        reasoning_tokens=_count(usage.get("completion_tokens_details"), "reasoning_tokens"),
        cached_tokens=_count(usage.get("prompt_tokens_details"), "cached_tokens"),
    )


def _count(holder: object, field: str) -> int | None:
    value = holder.get(field) if isinstance(holder, Mapping) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _string(value: object) -> str | None:
    return value if isinstance(value, str) else None
