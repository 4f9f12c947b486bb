"""A run: one batch with its settings. An attempt: one question asked and judged within it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from kernelproof.bounds import ROOFLINE_SHARE, TURNS
from kernelproof.choices import RunKind
from kernelproof.hashing import sha256_json
from kernelproof.types.base import FrozenRecord
from kernelproof.types.verification import VerifySettings


class RunSettings(FrozenRecord):
    """Everything that decides what a run's attempts are. The same settings are the same run."""

    name: str | None = None
    """A label of the user's: another name is another run."""
    kind: RunKind = "generate"
    """`verify` holds candidates given as files, `import` those that somebody published, `tune` what a tuner
    tried."""
    model: str
    """`openai:MODEL`, `replay:FILE`, `file` for candidates given as files, `tune` for what a tuner tried, or
    the label of an import."""
    base_url: str | None = None
    endpoint: Literal["chat", "responses"] = "chat"
    """Which of OpenAI's two interfaces the server is asked by."""
    template: str | None = None
    """Template name with version; None for candidates given as files."""
    template_sha256: str | None = None
    sampling: dict[str, Any] = Field(default_factory=dict)
    """Sampling settings the user set (temperature, max_tokens ...), nothing else. A tuning: what it tunes."""
    turns: Annotated[int, TURNS] = 1
    """Most turns of one sample: 1 is one shot, more lets the strategy ask again."""
    verify: VerifySettings = VerifySettings()
    strategy: str | None = None
    """The search strategy of a sample. None: `repair` where `turns` is more than 1, else `sample`."""
    good_enough: Annotated[float | None, ROOFLINE_SHARE] = None
    """A sample ends when its best reaches this share of its roofline, where one was computed."""
    race: bool = False
    """Attempts are screened: timed at rigor `quick`, those that are surely slower than the best of their
    sample for even less long. The best of each sample is verified once more, as `verify` says."""

    @model_serializer(mode="wrap")
    def _without_defaults(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leaves out what earlier versions had no field for, as long as it means what they did.

        The key, and the settings as they are stored, are then those that earlier versions wrote.
        """
        written: dict[str, Any] = handler(self)
        if self.strategy is None:
            written.pop("strategy", None)
        if self.good_enough is None:
            written.pop("good_enough", None)
        if not self.race:
            written.pop("race", None)
        if self.endpoint == "chat":
            written.pop("endpoint", None)
        return written

    @property
    def strategy_name(self) -> str:
        """The strategy by name, chosen or not."""
        return self.strategy or ("repair" if self.turns > 1 else "sample")

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
