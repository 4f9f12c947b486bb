"""OpenAI's two interfaces, as far as they differ: the fields of a request and the events of an answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kernelproof.providers.protocol import messages
from kernelproof.providers.server_errors import AnswerError
from kernelproof.types import Prompt

BROKE_OFF = "the server broke the answer off"
_TEXT_FIELDS = ("text", "summary", "thinking")
"""Where a part of a content, or of the reasoning, holds its text."""


class Assembler:
    """Puts the events of an answer together."""

    tokens = 0
    """Pieces of text that came so far."""
    done = False
    """The server said that this was all; what follows is not read."""


class ChatAssembler(Assembler):
    def __init__(self) -> None:
        self._head: dict[str, Any] = {}
        self._message: dict[str, _Pieces] = {}
        self._first: object = None
        """Index of the choice that came first: the others are left out."""
        self._finish: str | None = None
        self._usage: dict[str, Any] | None = None

    def add(self, event: Mapping[str, Any]) -> None:
        """Takes the next chunk. Raises AnswerError where it says that the answer failed."""
        if event.get("error") or event.get("object") == "error":
            raise AnswerError(event, BROKE_OFF)
        for name, value in event.items():
            if name not in ("choices", "usage", "object") and value is not None:
                self._head.setdefault(name, value)
        if isinstance(event.get("usage"), Mapping):
            self._usage = dict(event["usage"])
        choices = event.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, Mapping):
                self._choice(choice)

    def _choice(self, choice: Mapping[str, Any]) -> None:
        if choice.get("error"):
            raise AnswerError(choice, BROKE_OFF)
        index = choice.get("index") or 0
        self._first = index if self._first is None else self._first
        if index != self._first:
            return
        if isinstance(choice.get("finish_reason"), str):
            self._finish = choice["finish_reason"]
        delta = choice.get("delta")
        if not isinstance(delta, Mapping):
            delta = choice.get("message")
        came = False
        for name, value in delta.items() if isinstance(delta, Mapping) else ():
            if name != "role" and isinstance(value, str | list | Mapping):
                came |= self._message.setdefault(name, _Pieces()).add(value)
        self.tokens += came

    def body(self) -> dict[str, Any] | None:
        """As a `chat.completion`; None as long as it is not whole: without a finish reason, until the server
        said that this was all.
        """
        if self._finish is None and not self.done:
            return None
        message: dict[str, Any] = {"role": "assistant", "content": None}
        message |= {name: value for name, pieces in self._message.items() if (value := pieces.value())}
        choice = {"index": 0, "finish_reason": self._finish, "message": message}
        choices = [] if self._first is None else [choice]
        body = {**self._head, "object": "chat.completion", "choices": choices}
        return body if self._usage is None else body | {"usage": self._usage}


class ResponsesAssembler(Assembler):
    """The events of Responses. The last one holds the whole response."""

    def __init__(self) -> None:
        self._body: dict[str, Any] | None = None
        self._items: list[Any] = []

    def add(self, event: Mapping[str, Any]) -> None:
        """Takes the next event. Raises AnswerError where it says that the answer failed."""
        kind = event.get("type")
        if kind == "error" or (event.get("error") and not kind):
            raise AnswerError(event, BROKE_OFF)
        if not isinstance(kind, str):
            return
        self.tokens += kind.endswith(".delta") and bool(event.get("delta"))
        if kind == "response.output_item.done":
            self._items.append(event.get("item"))
        response = event.get("response")
        whole = kind in ("response.completed", "response.incomplete", "response.failed")
        if whole and isinstance(response, Mapping):
            # Some servers leave the items out of the last event.
            self._body = dict(response) | {"output": response.get("output") or self._items}
            self.done = True

    def body(self) -> dict[str, Any] | None:
        """The response; None as long as it is not whole."""
        return self._body


class _Pieces:
    """The value of one field, which comes in pieces: of text, or lists of parts that hold text.

    Pieces of one part are joined, so that ten thousand tokens are one part and not ten thousand.
    """

    def __init__(self) -> None:
        self._runs: list[tuple[dict[str, Any] | None, str, list[str]]] = []
        """For each part: its other fields (None: it is text alone), the field of its text, the pieces."""

    def add(self, value: str | list[Any] | Mapping[str, Any]) -> bool:
        """Takes the next piece. False when it holds nothing."""
        came = False
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, str):
                came |= self._joined(None, "text", part)
            elif isinstance(part, Mapping):
                name = next((name for name in _TEXT_FIELDS if _flat(part.get(name)) is not None), "")
                beside = {key: value for key, value in part.items() if key != name}
                came |= self._joined(beside, name, _flat(part.get(name)) or "") or bool(part.get("data"))
        return came

    def _joined(self, beside: dict[str, Any] | None, name: str, text: str) -> bool:
        if self._runs and name and self._runs[-1][:2] == (beside, name):
            self._runs[-1][2].append(text)
        elif text or beside is not None:
            self._runs.append((beside, name, [text]))
        return bool(text)

    def value(self) -> str | list[dict[str, Any]]:
        """Text, where nothing but text came; else the parts."""
        if all(beside is None for beside, _, _ in self._runs):
            return "".join(text for _, _, texts in self._runs for text in texts)
        return [
            {**({"type": "text"} if beside is None else beside), **({name: "".join(texts)} if name else {})}
            for beside, name, texts in self._runs
        ]


def _flat(value: object) -> str | None:
    """A text, or a list of parts with nothing but text (as Mistral's thinking) as one; None for others."""
    if not isinstance(value, list):
        return value if isinstance(value, str) else None
    texts = [part.get("text") if isinstance(part, Mapping) else None for part in value]
    known = [text for text in texts if isinstance(text, str)]
    return "".join(known) if len(known) == len(texts) else None


@dataclass(frozen=True)
class Endpoint:
    path: str
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
