"""The registry of strategies: `@strategy("NAME")` above a class makes NAME a strategy of runs."""

from __future__ import annotations

from typing import Protocol

from pipeline.registry import Registry
from pipeline.runs.strategies.base import Strategy, Task


class StrategyClass(Protocol):
    """What a registered class is called with."""

    def __call__(self, task: Task) -> Strategy:
        """The strategy for one sample."""
        ...


STRATEGIES: Registry[StrategyClass] = Registry(
    "strategy", package="pipeline.runs.strategies", needs=("ask", "tell")
)
strategy = STRATEGIES.register
"""The decorator: `@strategy("refine")`."""
