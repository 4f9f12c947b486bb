"""Runs, the keys of their attempts, and the progress of a batch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from kernelproof.choices import ROOFLINE_SHARE, TURNS, RunKind
from kernelproof.hashing import sha256_json
from kernelproof.types.measurement import Pace
from kernelproof.types.record import FrozenRecord
from kernelproof.types.status import Status
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


N = TypeVar("N", int, float)

AT_SERVER = ("asking", "sent", "answering", "waiting", "batched")
"""Places of an attempt that has no answer yet."""
HERE = ("queued", "building", "checking", "timing")
"""Places of an attempt whose answer is judged, in their order."""
PLACES = ("elsewhere", *AT_SERVER, *HERE)
"""Where an attempt that is not done may be."""


class TokenCounts(FrozenRecord):
    """Tokens of answers that this command asked for. None: no answer came that says it."""

    prompt: int | None = None
    """Cached ones included."""
    cached: int | None = None
    completion: int | None = None
    """Reasoning included."""
    reasoning: int | None = None
    unknown: int = 0
    """Answers without counts."""


class FastAttempt(FrozenRecord):
    """A correct attempt that was measured."""

    model: str
    problem_id: str
    attempt_id: int | None
    sample: int
    turn: int
    speedup: float
    low: float
    """Lower end of the 95 % interval."""
    high: float
    """Upper end of the 95 % interval."""
    pace: Pace
    claimed: float
    """What ranks: the lower end, 1 at most where the pace is unresolved."""
    screened: bool = False
    """Whether it is a screening: the best of its sample is verified again, and counts then."""


class FailureCount(FrozenRecord):
    """How many attempts ended with one status that is not `correct`, and what was said most often."""

    status: Status
    count: int
    reason: str
    """Cleaned; the server's words where a server failed. Empty where nothing was said."""
    attempt_id: int | None = None
    """The newest attempt with this reason."""


class ModelProgress(FrozenRecord):
    """How far one model of a batch is."""

    model: str
    samples: int
    """Samples of all problems that the batch wants."""
    over: int = 0
    """Samples of which no attempt follows."""
    answered: int = 0
    """Questions that this command asked and that were answered."""
    reused: int = 0
    """Answers that were stored already and are judged by this command."""
    kept: int = 0
    """Attempts that had ended before this command."""
    places: dict[str, int] = Field(default_factory=dict)
    """Attempts that are not done, by where they are: `PLACES`. Places where none is are left out."""
    tokens_per_s: float | None = None
    """Tokens that came in the last seconds; None when no answer is coming."""
    streamed: int = 0
    """Tokens so far of the answers that are coming."""
    silence_s: float | None = None
    """Seconds since the server's last sign of life, of the question that waits longest for one."""
    waiting_for: str = ""
    """Why questions wait to be sent again: the newest reason, cleaned."""
    batches: tuple[str, ...] = ()
    """How far each batch is that questions are in, the oldest first, cleaned."""
    statuses: dict[Status, int] = Field(default_factory=dict)
    """Attempts that ended, by status; those of before included."""
    fastest: float | None = None
    """Best speedup: of the attempt that claims most."""
    tokens: TokenCounts = TokenCounts()
    cost_usd: float | None = None
    """Cost of the answers whose cost is known; None when none is."""
    unpriced: int = 0
    """Answers whose cost is unknown."""
    projected_usd: float | None = None
    """What the model will have cost at the end; None as long as that is unknown."""
    left_s: float | None = None
    """Seconds until it is done; None as long as that is unknown."""

    @property
    def ended(self) -> int:
        """Attempts that ended."""
        return sum(self.statuses.values())

    @property
    def correct(self) -> int:
        """Attempts that are correct."""
        return self.statuses.get(Status.CORRECT, 0)


class BatchProgress(FrozenRecord):
    """How far a batch is."""

    elapsed_s: float
    """Seconds since it began."""
    models: tuple[ModelProgress, ...]
    fastest: tuple[FastAttempt, ...] = ()
    """Best first."""
    failures: tuple[FailureCount, ...] = ()
    """The most frequent first."""
    busy_share: float | None = None
    """Part of their time in which referees judged a candidate; None before there was one."""
    left_s: float | None = None
    """Seconds until all models are done; None as long as that is unknown."""

    def as_json(self) -> dict[str, Any]:
        """As the database keeps it; `BatchProgress.model_validate` reads it."""
        return self.model_dump(mode="json")

    @property
    def whole(self) -> ModelProgress:
        """All models as one."""
        return _together(self.models, self.left_s)


def _together(models: tuple[ModelProgress, ...], left_s: float | None) -> ModelProgress:
    places = {place: sum(m.places.get(place, 0) for m in models) for place in PLACES}
    statuses = {status: sum(m.statuses.get(status, 0) for m in models) for status in Status}
    projected = [m.projected_usd if m.answered or m.over < m.samples else 0.0 for m in models]
    silences = [m.silence_s for m in models if m.silence_s is not None]
    return ModelProgress(
        model="all",
        samples=sum(m.samples for m in models),
        over=sum(m.over for m in models),
        answered=sum(m.answered for m in models),
        reused=sum(m.reused for m in models),
        kept=sum(m.kept for m in models),
        places={place: number for place, number in places.items() if number},
        tokens_per_s=_sum(m.tokens_per_s for m in models),
        streamed=sum(m.streamed for m in models),
        silence_s=max(silences, default=None),
        batches=tuple(batch for m in models for batch in m.batches),
        waiting_for=next((m.waiting_for for m in models if m.waiting_for), ""),
        statuses={status: number for status, number in statuses.items() if number},
        fastest=max((m.fastest for m in models if m.fastest is not None), default=None),
        tokens=TokenCounts(
            prompt=_sum(m.tokens.prompt for m in models),
            cached=_sum(m.tokens.cached for m in models),
            completion=_sum(m.tokens.completion for m in models),
            reasoning=_sum(m.tokens.reasoning for m in models),
            unknown=sum(m.tokens.unknown for m in models),
        ),
        cost_usd=_sum(m.cost_usd for m in models),
        unpriced=sum(m.unpriced for m in models),
        projected_usd=None if None in projected else _sum(projected),
        left_s=left_s,
    )


def _sum(values: Iterable[N | None]) -> N | None:
    """The sum of the known values; None when none is known."""
    known = [value for value in values if value is not None]
    return sum(known[1:], start=known[0]) if known else None
