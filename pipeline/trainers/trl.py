"""TRL: `GRPOTrainer(reward_funcs=kernel_reward, ...)`. The data set's column `problem` names the problem."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kernelproof.trainers.rewards import evaluated, text_of


def kernel_reward(
    completions: Sequence[Any],
    problem: Sequence[str],
    *,
    log_extra: Callable[[str, list[Any]], None] | None = None,
    **columns: Any,
) -> list[float | None]:
    """A reward for each completion. TRL leaves out those that are None.

    `completions`: texts, or conversations. `log_extra` adds a column to TRL's table of completions, where its
    version has one. `columns`: the data set's others, which are not looked at.
    """
    found = evaluated([text_of(each) for each in completions], problem)
    if log_extra is not None:
        log_extra("busy_machine", [bool(each.busy) for each in found])
    return [each.reward for each in found]
