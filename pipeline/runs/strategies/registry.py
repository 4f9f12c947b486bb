"""The registry of strategies: `@strategy("NAME")` above a class makes NAME a strategy of runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from kernelproof.registry import Registry, class_with
from kernelproof.runs.strategies.base import Strategy, Task


class StrategyClass(Protocol):
    """What a registered class is called with."""

    def __call__(self, task: Task, /) -> Strategy:
        """The strategy for one sample."""
        ...


S = TypeVar("S", bound=StrategyClass)

STRATEGIES: Registry[StrategyClass] = Registry(
    "strategy",
    group="kernelproof.strategies",
    package="kernelproof.runs.strategies",
    check=class_with("ask", "tell"),
)


def strategy(name: str) -> Callable[[S], S]:
    """The decorator that registers a strategy's class: `@strategy("refine")`."""

    def registered(cls: S) -> S:
        STRATEGIES.add(name, cls)
        return cls

    return registered
