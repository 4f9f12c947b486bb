"""A question's identity: all that decides which answer comes. Attempts that ask the same share one answer."""

from __future__ import annotations

from kernelproof.hashing import sha256_json
from kernelproof.types import AttemptKey, Prompt, RunSettings


def question_key(settings: RunSettings, key: AttemptKey, prompt: Prompt) -> str:
    """SHA-256 over the run's name, the model with its server and parameters, the prompt, sample and turn.

    How answers are judged is no part of it: other settings of the verification ask nothing again. The run's
    name is: another name means fresh answers.
    """
    return sha256_json(
        {
            "name": settings.name,
            "model": settings.model,
            "base_url": settings.base_url,
            "endpoint": settings.endpoint,
            "sampling": settings.sampling,
            "problem": key.problem_sha256,
            "prompt": prompt.sha256,
            "sample": key.sample,
            "turn": key.turn,
        }
    )
