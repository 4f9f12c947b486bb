"""What every provider of model answers is: one question in, one response out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

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


class Provider(Protocol):
    """A source of answers. Several questions may be asked at the same time."""

    @property
    def name(self) -> str:
        """What a run records as its model: `openai:MODEL` or `replay:FILE`."""
        ...

    async def ask(self, question: Question) -> Response:
        """The answer, raw.

        Raises ProviderError when this question got none (its `retriable` says whether asking again can
        help), and ProviderFatal when no question can get one and the run must stop.
        """
        ...

    def turns(self, problem_id: str, backend: str, sample: int) -> int | None:
        """How many turns of a sample it can answer, where a conversation ends; None: no limit."""
        ...

    async def aclose(self) -> None:
        """Give connections and files back; nothing may be asked afterwards."""
        ...


def messages(prompt: Prompt) -> list[dict[str, str]]:
    """The prompt as Chat Completions messages: system, earlier turns, user."""
    turns = (("system", prompt.system), *prompt.history, ("user", prompt.user))
    return [{"role": role, "content": text} for role, text in turns]
