"""KernelGYM's own client, from its repository's file."""

from __future__ import annotations

import asyncio
import importlib.util
from pathlib import Path

import ray
from calls import URL, given, tell
from omegaconf import OmegaConf

asked = given()
file = Path("source/drkernel/kernel/rewards/reward_client.py").resolve()
spec = importlib.util.spec_from_file_location("reward_client", file)
assert spec is not None and spec.loader is not None
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
settings = OmegaConf.load(Path("source/drkernel/kernel/config/kernel_trainer.yaml"))
config = OmegaConf.merge(settings.reward_model, {"server_url": URL, "max_concurrent": 2, "rate_limit": 2})
ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
tasks = [
    {
        "reference_code": asked["problem"],
        "kernel_code": answer,
        "entry_point": "Model",
        "num_correct_trials": 1,
    }
    for answer in asked["answers"]
]
client = module.KernelRewardClient(reward_config=config)
found = asyncio.run(client.compute_batch_rewards(tasks))
ray.shutdown()
names = ("status", "compiled", "correctness", "speedup", "reward", "error")
tell(rewards=[{name: each.get(name) for name in names} for each in found])
