"""TRL: `GRPOTrainer(reward_funcs=kernel_reward, ...)`. The data set's column `problem` names the problem."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kernelproof.trainers.rewards import rewards, text_of


def kernel_reward(completions: Sequence[Any], problem: Sequence[str], **columns: Any) -> list[float | None]:
    """A reward for each completion. TRL leaves out those that are None.

    `completions`: texts, or conversations. `columns`: the data set's others, which are not looked at.
    """
    return rewards([text_of(each) for each in completions], problem)
