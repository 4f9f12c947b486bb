"""How a sample searches: what it asks next, given what came of the attempts so far. One class a file."""

from __future__ import annotations

from kernelproof.runs.strategies.base import Proposal, Result, Rounds, Strategy, Task
from kernelproof.runs.strategies.registry import STRATEGIES, StrategyClass, strategy

__all__ = ["Proposal", "Result", "Rounds", "Strategy", "StrategyClass", "Task", "find_strategy", "strategy"]


def find_strategy(name: str) -> StrategyClass:
    """The strategy of this name: `sample`, `repair`, `refine` ..., or one of another package.

    Raises UsageError when there is none, and names those that there are.
    """
    return STRATEGIES.find(name)
