"""SkyRL's gym: the environment by its name, and a rollout of as many turns as there are answers."""

from __future__ import annotations

import skyrl_gym
from calls import given, tell

asked = given()
skyrl_gym.register(id="kernels", entry_point="kernelproof.trainers.skyrl:KernelEnv")
extras = {"reward_spec": {"ground_truth": asked["problem"]}, "max_turns": len(asked["answers"])}
environment = skyrl_gym.make("kernels", env_config={}, extras=extras)
environment.init([{"role": "user", "content": "Write a kernel."}])
tell(steps=[dict(environment.step(answer)) for answer in asked["answers"]])
environment.close()
