"""What the reward functions share: one client for the process, and how answers become candidates."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from kernelproof.client import Candidate, Client


@functools.cache
def client() -> Client:
    """The client of this process: KERNELPROOF_URL and KERNELPROOF_TOKEN say where and who."""
    return Client()


def rewards(sources: Sequence[str], problems: Sequence[str], **settings: Any) -> list[float | None]:
    """The reward of each answer for its problem. Raises UsageError, MachineError.

    `settings`: of the verification.
    """
    sent = [candidate(source, problem, settings) for source, problem in zip(sources, problems, strict=True)]
    return [found.reward for found in client().evaluate_many(sent)]


def candidate(source: str, problem: str, settings: dict[str, Any] | None = None) -> Candidate:
    """A candidate for a problem: an id, or the problem's source where it defines `class Model`."""
    settings = settings or {}
    if "class Model" in problem:
        return Candidate(source, reference=problem, settings=settings)
    return Candidate(source, problem=problem, settings=settings)


def text_of(answer: Any) -> str:
    """An answer's text: as it is, or the last message of a conversation."""
    return str(answer if isinstance(answer, str) else answer[-1]["content"])
