"""verifiers: `vf.Rubric(funcs=[kernel_reward])`. The data set's column `answer` is the problem."""

from __future__ import annotations

from typing import Any

from kernelproof.client import AsyncClient
from kernelproof.trainers.rewards import candidate, text_of


async def kernel_reward(completion: Any, answer: str, **state: Any) -> float:
    """The reward of one rollout, by its last message. verifiers knows no missing reward: then it is 0.

    `state`: prompt, info and what else verifiers offers, which is not looked at.
    """
    async with AsyncClient() as client:
        found = await client.evaluate(candidate(text_of(completion), answer))
    return found.reward or 0.0
