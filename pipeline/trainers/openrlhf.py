"""OpenRLHF: `--reward.remote_url .../kernelproof/trainers/openrlhf.py`, or the service's route `/get_reward`.

The labels of the data set are the problems.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kernelproof.trainers.rewards import evaluated, reward_of


def reward_func(
    queries: Sequence[str], prompts: Sequence[str], labels: Sequence[str], **more: Any
) -> dict[str, Any]:
    """Rewards of a batch. A query is the prompt with the answer behind it.

    Raises MachineError where the service failed: OpenRLHF then has no reward, which is not 0.
    """
    answers = [query.removeprefix(prompt) for query, prompt in zip(queries, prompts, strict=True)]
    found = evaluated(answers, labels)
    known = [reward_of(each) for each in found]
    logs = {
        "correct": [float(each.correct) for each in found],
        "busy_machine": [float(bool(each.busy)) for each in found],
    }
    return {"rewards": known, "scores": known, "extra_logs": logs}
