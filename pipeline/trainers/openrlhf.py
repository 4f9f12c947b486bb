"""OpenRLHF: `--remote_rm_url .../kernelproof/trainers/openrlhf.py`.

The labels of the data set are the problems. OpenRLHF waits 180 s for a batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kernelproof.trainers.rewards import rewards


def reward_func(
    queries: Sequence[str], prompts: Sequence[str], labels: Sequence[str], **more: Any
) -> dict[str, Any]:
    """Rewards of a batch. A query is the prompt with the answer behind it."""
    answers = [query.removeprefix(prompt) for query, prompt in zip(queries, prompts, strict=True)]
    found = rewards(answers, labels)
    known = [reward or 0.0 for reward in found]
    judged = [float(reward is not None) for reward in found]
    return {"rewards": known, "scores": known, "extra_logs": {"judged": judged}}
