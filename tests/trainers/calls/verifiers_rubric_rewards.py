"""verifiers before version 0.2: a rubric of our reward function."""

from __future__ import annotations

import asyncio

import verifiers as vf
from calls import given, tell

from kernelproof.trainers.verifiers import kernel_reward

asked = given()


async def scored() -> list[vf.State]:
    """Rollouts with the rubric's scores."""
    rubric, found = vf.Rubric(funcs=[kernel_reward]), []
    for answer in asked["answers"]:
        state = vf.State(
            input={
                "prompt": [{"role": "user", "content": "Write a kernel."}],
                "answer": asked["problem"],
                "example_id": 0,
                "task": "kernels",
            },
            completion=[{"role": "assistant", "content": answer}],
            timing={"generation_ms": 0.0, "scoring_ms": 0.0, "total_ms": 0.0},
            trajectory=[],
        )
        await rubric.score_rollout(state)
        found.append(state)
    return found


found = asyncio.run(scored())
tell(rewards=[each["reward"] for each in found], busy=[each["busy_machine"] for each in found])
