"""verifiers: a task's reward `kernelproof.trainers.verifiers:task_reward`; its data has the field `problem`.

Before version 0.2: `vf.Rubric(funcs=[kernel_reward])`, and the data set's column `answer` is the problem.
"""

from __future__ import annotations

from typing import Any

from kernelproof.client import AsyncClient, Evaluated
from kernelproof.trainers.rewards import AGAIN, candidate, reward_of, text_of


async def task_reward(task: Any, trace: Any) -> float:
    """The reward of one rollout, by its last reply. Raises MachineError where the service failed: verifiers
    then has an error and no reward.

    `task`: its data, whose `problem` is an id or a source. `trace`: what the model said; it gets the metric
    `busy_machine`.
    """
    found = await _evaluated(str(trace.last_reply), str(task.problem))
    trace.record_metric("busy_machine", bool(found.busy))
    return reward_of(found)


async def kernel_reward(completion: Any, answer: str, state: dict[str, Any], **more: Any) -> float:
    """The same for a rubric. verifiers then takes a failure for 0 and logs it.

    `state` gets `busy_machine`. `more`: what else verifiers offers, which is not looked at.
    """
    found = await _evaluated(text_of(completion), answer)
    state["busy_machine"] = bool(found.busy)
    return reward_of(found)


async def _evaluated(source: str, problem: str) -> Evaluated:
    async with AsyncClient() as client:
        [found] = await client.evaluate_many([candidate(source, problem)], again=AGAIN)
    return found
