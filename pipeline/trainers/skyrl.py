"""SkyRL: `skyrl_gym.register(id="kernels", entry_point="kernelproof.trainers.skyrl:KernelEnv")`.

`reward_spec.ground_truth` of the data set is the problem. With `max_turns` above 1 the evidence follows an
answer, as in `kernelproof generate`.
"""

from __future__ import annotations

from typing import Any

from skyrl_gym.envs.base_text_env import BaseTextEnv, BaseTextEnvStepOutput

from kernelproof.trainers.rewards import evaluated, reward_of


class KernelEnv(BaseTextEnv):  # type: ignore[misc]  # its package has no types
    """One sample: the model answers, and gets the evidence until its turns are over."""

    def __init__(self, env_config: Any, extras: dict[str, Any] | None = None) -> None:
        super().__init__()
        given = extras or {}
        self._problem = str(given["reward_spec"]["ground_truth"])
        self._unjudged = (env_config or {}).get("unjudged")
        self.max_turns = int(given.get("max_turns", 1))

    def step(self, action: str) -> BaseTextEnvStepOutput:
        """One answer: its reward, and the evidence as the next question.

        Where the service failed `unjudged` of the environment's settings is the reward, and MachineError is
        raised where there is none.
        """
        self.turns += 1
        [found] = evaluated([action], [self._problem])
        reward, done = reward_of(found, self._unjudged), self.turns >= self.max_turns
        next_question = [] if done else [{"role": "user", "content": found.feedback or ""}]
        metadata = {"status": found.status, "score": found.score, "judged": found.reward is not None}
        metadata["busy_machine"] = bool(found.busy)
        return BaseTextEnvStepOutput(observations=next_question, reward=reward, done=done, metadata=metadata)
