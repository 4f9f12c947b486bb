"""Questions to ask in tests."""

from __future__ import annotations

from kernelproof.providers import Question
from kernelproof.types import Prompt


def question(problem: str = "level1/1", backend: str = "cpp", sample: int = 0, turn: int = 1) -> Question:
    """A question whose conversation has one earlier turn."""
    prompt = Prompt(
        template="t-v1",
        template_sha256="0",
        system="be brief",
        user="again",
        history=(("user", "first"), ("assistant", "answer")),
        sha256="0",
    )
    return Question(problem, backend, sample, turn, prompt)
