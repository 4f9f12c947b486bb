"""OpenRLHF's executor of one turn; what a model would answer is given."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from calls import URL, given, tell, tokenizer
from openrlhf.utils.agent import SingleTurnAgentExecutor

import kernelproof.trainers

asked, words = given(), tokenizer()
file = str(Path(kernelproof.trainers.__file__).parent / "openrlhf.py")
executor = SingleTurnAgentExecutor(file if asked["way"] == "file" else f"{URL}/get_reward")


class Engine:
    """In place of vLLM."""

    def __init__(self, answer: str) -> None:
        self._answer = answer

    async def generate(self, *_: Any, **__: Any) -> Any:
        """The answer, as vLLM gives it."""
        tokens = words(self._answer)["input_ids"]
        return SimpleNamespace(
            outputs=[
                SimpleNamespace(token_ids=tokens, text=self._answer, finish_reason="stop", logprobs=None)
            ]
        )


async def reward(answer: str, problem: str) -> dict[str, Any]:
    """A sample's reward."""
    sampling = SimpleNamespace(max_tokens=1000, logprobs=None)
    found = await executor.execute("Write a kernel.", problem, sampling, 100_000, words, Engine(answer))
    return {name: found[name] for name in ("reward", "scores", "extra_logs")}


async def rewards() -> list[dict[str, Any]]:
    """All at once, as a rollout asks."""
    return await asyncio.gather(*(reward(answer, asked["problem"]) for answer in asked["answers"]))


tell(rewards=asyncio.run(rewards()), unknown=asyncio.run(reward("nothing", "realu"))["reward"])
