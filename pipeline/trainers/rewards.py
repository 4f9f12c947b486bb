"""What the reward functions share: one client for the process, and the reward of an evaluation."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

from kernelproof.client import Candidate, Client, Evaluated


@functools.cache
def client() -> Client:
    """The client of this process: KERNELPROOF_URL and KERNELPROOF_TOKEN say where and who."""
    return Client()


def reward_of(found: Evaluated) -> float | None:
    """0 for a wrong program, 1 for a right one, and 1 + log2 of its score for a faster one.

    None where the service failed, and nothing is known of the program.
    """
    if found.score is None:
        return None
    if not found.correct:
        return 0.0
    return 1.0 + max(0.0, math.log2(found.score)) if found.score > 0 else 1.0


def rewards(sources: Sequence[str], problems: Sequence[str], **settings: Any) -> list[float | None]:
    """The reward of each answer for its problem. Raises UsageError, MachineError.

    A text is a problem's source where it defines `class Model`, else a problem's id.
    """
    candidates = [
        _candidate(source, problem, settings) for source, problem in zip(sources, problems, strict=True)
    ]
    return [reward_of(found) for found in client().evaluate_many(candidates)]


def _candidate(source: str, problem: str, settings: dict[str, Any]) -> Candidate:
    if "class Model" in problem:
        return Candidate(source, reference=problem, settings=settings)
    return Candidate(source, problem=problem, settings=settings)


def text_of(answer: Any) -> str:
    """An answer's text: as it is, or the last message of a conversation."""
    return str(answer if isinstance(answer, str) else answer[-1]["content"])
