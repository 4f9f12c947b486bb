"""verl: `reward.custom_reward_function.path=.../kernelproof/trainers/verl.py`, function `compute_score`.

`reward_model.ground_truth` of the data set is the problem: an id, or its source.
"""

from __future__ import annotations

from typing import Any

from kernelproof.trainers.rewards import evaluated, reward_of


def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: str,
    extra_info: dict[str, Any] | None = None,
    *,
    unjudged: float | None = None,
    **more: Any,
) -> dict[str, Any]:
    """The reward of one answer.

    verl knows no missing reward. Where the service failed `unjudged` is the score, and MachineError is raised
    where that is None. verl gives it from `custom_reward_function.reward_kwargs`.
    """
    [found] = evaluated([solution_str], [ground_truth])
    return {
        "score": reward_of(found, unjudged),
        "correct": float(found.correct),
        "judged": float(found.reward is not None),
        "busy_machine": float(bool(found.busy)),
    }
