"""How a sample searches: what it asks next, given what came of the attempts so far.

`protocol` says what a strategy is and registers it. `search` has all of them but
`ideas`, which asks for plans first.
"""

from __future__ import annotations

from kernelproof.runs.strategies.protocol import (
    STRATEGIES,
    Proposal,
    Result,
    Rounds,
    Strategy,
    StrategyClass,
    Task,
    strategy,
)

__all__ = ["Proposal", "Result", "Rounds", "Strategy", "StrategyClass", "Task", "find_strategy", "strategy"]


def find_strategy(name: str) -> StrategyClass:
    """The strategy of this name: `sample`, `repair`, `refine` ..., or one of another package.

    Raises UsageError when there is none, and names those that there are.
    """
    return STRATEGIES.find(name)
