"""OpenAI's two interfaces, as far as they differ: the fields of a request and the events of an answer."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, cast

from kernelproof.providers.assembling import Assembler, ChatAssembler, ResponsesAssembler
from kernelproof.providers.base import messages
from kernelproof.types import Prompt

if TYPE_CHECKING:
    import openai
    from openai._response import AsyncAPIResponse

Sent: TypeAlias = "AbstractAsyncContextManager[AsyncAPIResponse[Any]]"
"""A request on its way."""


class Endpoint(Protocol):
    """One of the two."""

    path: str
    """Where it is, as a batch names it."""
    ours: frozenset[str]
    """Fields of the request that are not the user's to set: a sample is one call with one answer."""
    usage_field: Mapping[str, Any]
    """What asks a streaming server for its token counts."""

    def request(self, model: str, prompt: Prompt, sampling: Mapping[str, Any]) -> dict[str, Any]:
        """The body of the request."""
        ...

    def send(self, client: openai.AsyncOpenAI, body: Mapping[str, Any], headers: Mapping[str, str]) -> Sent:
        """The request on its way: a context that holds the reply while it is read."""
        ...

    def assembler(self) -> Assembler:
        """Puts a streamed answer together."""
        ...


class Chat:
    """Chat Completions."""

    path = "/v1/chat/completions"
    ours = frozenset({"model", "messages", "stream", "stream_options", "n"})
    usage_field: Mapping[str, Any] = {"stream_options": {"include_usage": True}}

    def request(self, model: str, prompt: Prompt, sampling: Mapping[str, Any]) -> dict[str, Any]:
        """Model and messages, and what the user set."""
        return {"model": model, "messages": messages(prompt), **sampling}

    def send(self, client: openai.AsyncOpenAI, body: Mapping[str, Any], headers: Mapping[str, str]) -> Sent:
        """By the package's method. Its types of questions and answers are not used: servers take and send
        what they like, and walking through a long conversation by its types takes milliseconds.
        """
        create: Any = client.chat.completions.with_streaming_response.create
        return cast(Sent, create(model=body["model"], messages=[], extra_body=body, extra_headers=headers))

    def assembler(self) -> Assembler:
        """Of chunks."""
        return ChatAssembler()


class Responses:
    """Responses. Nothing is stored at the server."""

    path = "/v1/responses"
    ours = frozenset(
        {"model", "input", "instructions", "stream", "store", "background", "previous_response_id"}
    )
    usage_field: Mapping[str, Any] = {}

    def request(self, model: str, prompt: Prompt, sampling: Mapping[str, Any]) -> dict[str, Any]:
        """The system text as instructions, and sampling settings by the names they have here."""
        settings = dict(sampling)
        for name in ("max_completion_tokens", "max_tokens"):
            if name in settings:
                settings["max_output_tokens"] = settings.pop(name)
        if "reasoning_effort" in settings:
            reasoning = settings.get("reasoning")
            effort = {"effort": settings.pop("reasoning_effort")}
            settings["reasoning"] = {**reasoning, **effort} if isinstance(reasoning, Mapping) else effort
        turns = [{"role": each["role"], "content": each["content"]} for each in messages(prompt)[1:]]
        # `stream` is said in any case: the server of transformers streams where it is not.
        ours = {"input": turns, "store": False, "stream": False}
        return {"model": model, "instructions": prompt.system, **ours, **settings}

    def send(self, client: openai.AsyncOpenAI, body: Mapping[str, Any], headers: Mapping[str, str]) -> Sent:
        """By the package's method, as for Chat Completions."""
        create: Any = client.responses.with_streaming_response.create
        return cast(Sent, create(model=body["model"], input=[], extra_body=body, extra_headers=headers))

    def assembler(self) -> Assembler:
        """Of events."""
        return ResponsesAssembler()


def endpoint(name: Literal["chat", "responses"]) -> Endpoint:
    """The interface of this name."""
    return Chat() if name == "chat" else Responses()
