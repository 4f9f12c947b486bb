"""What the reward functions share: one client for the process, and how answers become candidates."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from kernelproof.client import Candidate, Client, Evaluated
from kernelproof.errors import MachineError

AGAIN = 2
"""An answer at which the service failed is sent again so often."""


@functools.cache
def client() -> Client:
    """The client of this process: KERNELPROOF_URL and KERNELPROOF_TOKEN say where and who."""
    return Client()


def evaluated(sources: Sequence[str], problems: Sequence[str]) -> list[Evaluated]:
    """The service's verdict on each answer for its problem. Raises UsageError, MachineError."""
    sent = [candidate(source, problem) for source, problem in zip(sources, problems, strict=True)]
    return client().evaluate_many(sent, again=AGAIN)


def candidate(source: str, problem: str) -> Candidate:
    """A candidate for a problem: an id, or the problem's source where it defines `class Model`."""
    if "class Model" in problem:
        return Candidate(source, reference=problem)
    return Candidate(source, problem=problem)


def reward_of(evaluated: Evaluated, unjudged: float | None = None) -> float:
    """The reward, for trainers that know no missing one.

    `unjudged`: in place of a missing one. Raises MachineError where it is None.
    """
    if evaluated.reward is not None:
        return evaluated.reward
    if unjudged is not None:
        return unjudged
    raise MachineError(f"the service did not judge an answer, so that it has no reward: {evaluated.reason}")


def text_of(answer: Any) -> str:
    """An answer's text: as it is, or the last message of a conversation."""
    return str(answer if isinstance(answer, str) else answer[-1]["content"])
