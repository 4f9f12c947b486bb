"""verl's reward manager, made from verl's own configuration with our file as the reward function."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy
import torch
import verl
from calls import given, tell, tokenizer
from omegaconf import OmegaConf
from verl import DataProto
from verl.trainer.ppo.reward import load_reward_manager

import kernelproof.trainers

asked, words = given(), tokenizer()
usual = OmegaConf.load(Path(verl.__file__).parent / "trainer" / "config" / "reward" / "reward.yaml")
ours = {"path": str(Path(kernelproof.trainers.__file__).parent / "verl.py"), "name": "compute_score"}
config = OmegaConf.create({"reward": OmegaConf.merge(usual, {"custom_reward_function": ours})})


def sample(answer: str) -> DataProto:
    """One rollout, as verl has it."""
    prompt, response = (torch.tensor([words(text)["input_ids"]]) for text in ("Write.", answer))
    return DataProto.from_dict(
        tensors={
            "prompts": prompt,
            "responses": response,
            "attention_mask": torch.ones(1, prompt.shape[1] + response.shape[1], dtype=torch.long),
        },
        non_tensors={
            "data_source": numpy.array(["kernels"], dtype=object),
            "reward_model": numpy.array([{"ground_truth": asked["problem"]}], dtype=object),
            "extra_info": numpy.array([{}], dtype=object),
        },
    )


async def rewards() -> list[dict[str, Any]]:
    """As a worker of verl's reward loop asks."""
    manager = load_reward_manager(config, words)
    return [await manager.run_single(sample(answer)) for answer in asked["answers"]]


tell(rewards=asyncio.run(rewards()))
