"""OpenAI's two interfaces, as far as they differ: the fields of a request and the events of an answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kernelproof.providers.assembling import ChatAssembler, ResponsesAssembler
from kernelproof.providers.base import messages
from kernelproof.types import Prompt


@dataclass(frozen=True)
class Endpoint:
    """One of the two."""

    path: str
    """Where it is, as a batch names it."""
    ours: frozenset[str]
    """Fields of the request that are not the user's to set: a sample is one call with one answer."""
    usage_field: Mapping[str, Any]
    """What asks a streaming server for its token counts."""
    request: Callable[[str, Prompt, Mapping[str, Any]], dict[str, Any]]
    """The body of a request for a model's name, a prompt and sampling settings."""
    assembler: type[ChatAssembler] | type[ResponsesAssembler]
    """Puts a streamed answer together."""


def _of_chat(model: str, prompt: Prompt, sampling: Mapping[str, Any]) -> dict[str, Any]:
    return {"model": model, "messages": messages(prompt), **sampling}


def _of_responses(model: str, prompt: Prompt, sampling: Mapping[str, Any]) -> dict[str, Any]:
    """The system text as instructions, and sampling settings by the names they have here. Nothing is stored
    at the server."""
    settings = dict(sampling)
    for name in ("max_completion_tokens", "max_tokens"):
        if name in settings:
            settings["max_output_tokens"] = settings.pop(name)
    if "reasoning_effort" in settings:
        reasoning = settings.get("reasoning")
        effort = {"effort": settings.pop("reasoning_effort")}
        settings["reasoning"] = {**reasoning, **effort} if isinstance(reasoning, Mapping) else effort
    # `stream` is said in any case: the server of transformers streams where it is not.
    ours = {"input": messages(prompt)[1:], "store": False, "stream": False}
    return {"model": model, "instructions": prompt.system, **ours, **settings}


ENDPOINTS = {
    "chat": Endpoint(
        "/v1/chat/completions",
        frozenset({"model", "messages", "stream", "stream_options", "n"}),
        {"stream_options": {"include_usage": True}},
        _of_chat,
        ChatAssembler,
    ),
    "responses": Endpoint(
        "/v1/responses",
        frozenset(
            {"model", "input", "instructions", "stream", "store", "background", "previous_response_id"}
        ),
        {},
        _of_responses,
        ResponsesAssembler,
    ),
}
"""By the names that users choose from."""
