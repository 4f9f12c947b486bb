"""What every provider of model answers is: one question in, one response out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from pipeline.errors import UsageError
from pipeline.types import Prompt, Response


@dataclass(frozen=True)
class Question:
    """One call to a model: which attempt it is for, and the prompt."""

    problem_id: str
    backend: str
    sample: int
    """Index of the sample, from 0."""
    turn: int
    """Turn of the conversation, from 1."""
    prompt: Prompt

    def __str__(self) -> str:
        return f"{self.problem_id}, backend {self.backend}, sample {self.sample}, turn {self.turn}"


@dataclass(frozen=True)
class ProviderOptions:
    """What the user set for the model, beside its name. A provider refuses what it cannot obey."""

    base_url: str | None = None
    """The server's address."""
    sampling: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the request: `temperature`, `max_completion_tokens` ...; only those that were set."""
    timeout_s: float = 600.0
    """Longest wait for the server, in seconds."""
    max_retries: int = 2

    def refuse(self, name: str, because: str) -> None:
        """Raises UsageError if a base URL or a sampling setting was given; `because` says why none can be."""
        if self.base_url is not None or self.sampling:
            raise UsageError(f"{name} {because}: a base URL and sampling settings have no effect on it")


class Provider(Protocol):
    """A source of answers. Several questions may be asked at the same time.

    A class that inherits from this needs `name` and `ask` alone.
    """

    @property
    def name(self) -> str:
        """What a run records as its model: `openai:MODEL`, `replay:FILE`; in general `KIND:REST`."""
        ...

    async def ask(self, question: Question) -> Response:
        """The answer, raw.

        Raises ProviderError when this question got none (its `retriable` says whether asking again can
        help), and ProviderFatal when no question can get one and the run must stop.
        """
        ...

    def turns(self, problem_id: str, backend: str, sample: int) -> int | None:
        """How many turns of a sample it can answer, where a conversation ends; None: no limit."""
        return None

    async def aclose(self) -> None:
        """Give connections and files back; nothing may be asked afterwards."""
        return None


def messages(prompt: Prompt) -> list[dict[str, str]]:
    """The prompt as Chat Completions messages: system, earlier turns, user."""
    turns = (("system", prompt.system), *prompt.history, ("user", prompt.user))
    return [{"role": role, "content": text} for role, text in turns]
