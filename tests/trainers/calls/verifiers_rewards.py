"""verifiers: a task with our reward plugged in by its configuration, and its own scoring."""

from __future__ import annotations

import asyncio

import verifiers.v1 as vf
from calls import given, tell
from verifiers.v1.graph import MessageNode
from verifiers.v1.trace import AgentInfo, Trace, TraceTask

asked = given()


class KernelData(vf.TaskData):
    """A row of the data set."""

    problem: str


class KernelTask(vf.Task[KernelData]):
    """A task without a reward of its own."""


async def scored(answer: str, problem: str) -> Trace:
    """A rollout with this answer, after its scoring."""
    plugged = {"kernel": {"fn": "kernelproof.trainers.verifiers:task_reward"}}
    data = KernelData(prompt="Write a kernel.", problem=problem)
    task = KernelTask(data, vf.TaskConfig(rewards=plugged))
    said = MessageNode(message=vf.AssistantMessage(content=answer), sampled=True)
    trace = Trace(
        task=TraceTask(type="KernelTask", data=data), agent=AgentInfo(config=vf.AgentConfig()), nodes=[said]
    )
    await task.score(trace)
    return trace


async def rewards() -> tuple[list[Trace], str]:
    """The answers' rollouts, and what is told of a problem that is not there."""
    found = [await scored(answer, asked["problem"]) for answer in asked["answers"]]
    try:
        await scored("nothing", "realu")
    except vf.TaskError as error:
        return found, str(error)
    raise AssertionError("a problem that is not there has a reward")


found, unknown = asyncio.run(rewards())
tell(
    rewards=[each.reward for each in found],
    busy=[each.metrics["busy_machine"] for each in found],
    unknown=unknown,
)
