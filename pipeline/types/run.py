"""A run: one batch with its settings. An attempt: one question asked and judged within it."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from pipeline.hashing import sha256_json
from pipeline.types.base import FrozenRecord
from pipeline.types.verification import VerifySettings


class RunSettings(FrozenRecord):
    """Everything that decides what a run's attempts are. The same settings are the same run."""

    name: str | None = None
    """A label of the user's: another name is another run."""
    kind: Literal["generate", "verify"] = "generate"
    """`verify` holds candidates given as files."""
    model: str
    """`openai:MODEL`, `replay:FILE`, or `file` for candidates given as files."""
    base_url: str | None = None
    template: str | None = None
    """Template name with version; None for candidates given as files."""
    template_sha256: str | None = None
    sampling: dict[str, Any] = Field(default_factory=dict)
    """Sampling settings the user set (temperature, max_tokens ...), nothing else."""
    turns: int = Field(default=1, ge=1, le=20)
    """Most turns of one sample: 1 is one shot, more adds repair turns."""
    verify: VerifySettings = VerifySettings()

    @property
    def key(self) -> str:
        """The run's identity."""
        return sha256_json(self.model_dump(mode="json"))


class AttemptKey(FrozenRecord):
    """Which attempt of a run: completed keys are never asked for again."""

    problem_id: str
    problem_sha256: str
    sample: int = Field(ge=0)
    turn: int = Field(ge=1)
