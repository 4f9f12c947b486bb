"""What an answer costs: as the server said, else by the prices that the user gave, else unknown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from kernelproof.bounds import PRICE

if TYPE_CHECKING:
    from kernelproof.types import Response


CLOSED = {"extra": "forbid"}
"""For pydantic: a key that there is not is an error."""


@dataclass(frozen=True)
class Price:
    """US dollars for a million tokens."""

    __pydantic_config__ = CLOSED

    input: Annotated[float, PRICE]
    """Of the prompt."""
    output: Annotated[float, PRICE]
    """Of the answer, reasoning included."""
    cached: Annotated[float | None, PRICE] = None
    """Of that part of the prompt which the server had in its cache; None: as `input`."""

    def of(self, prompt: int, completion: int, cached: int = 0) -> float:
        """US dollars for so many tokens; `cached` are among those of the prompt."""
        kept = min(cached, prompt)
        cheaper = self.input if self.cached is None else self.cached
        return ((prompt - kept) * self.input + kept * cheaper + completion * self.output) / 1e6


def with_cost(response: Response, price: Price | None) -> Response:
    """The answer with its cost, where that is known."""
    usage = response.usage
    if response.cost_usd is not None or price is None or usage is None:
        return response
    if usage.prompt_tokens is None or usage.completion_tokens is None:
        return response
    cost = price.of(usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens or 0)
    return response.model_copy(update={"cost_usd": cost})
