"""verl: `custom_reward_function.path=.../kernelproof/trainers/verl.py`, whose function is `compute_score`.

`reward_model.ground_truth` of the data set is the problem: an id, or its source.
"""

from __future__ import annotations

from typing import Any

from kernelproof.trainers.rewards import rewards


def compute_score(
    data_source: str, solution_str: str, ground_truth: str, extra_info: dict[str, Any] | None = None
) -> dict[str, Any]:
    """The reward of one answer. verl knows no missing reward: then `score` is 0 and `judged` is 0."""
    [found] = rewards([solution_str], [ground_truth])
    return {"score": found or 0.0, "judged": float(found is not None)}
