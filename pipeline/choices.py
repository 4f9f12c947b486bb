"""The words that settings, options and filters choose from, each list in one place.

Imports the standard library alone: the command line offers these words before it imports pydantic.
"""

from __future__ import annotations

from enum import EnumType, StrEnum
from typing import Any, Literal, get_args

Numerics = Literal["fp32", "tf32"]
"""The arithmetic of float32 problems."""
Purity = Literal["any", "own-compute"]
"""Whether libraries may compute."""
Baseline = Literal["compile", "max-autotune"]
"""Baselines beside the eager one: torch.compile's default mode, or the mode that searches."""
RunKind = Literal["generate", "verify", "import", "tune"]
"""Runs that ask a model, of candidates given as files, of programs that somebody published, and of the
configurations that a tuner tried."""


class Role(StrEnum):
    """The work that a daemon of the evaluation service takes."""

    ALL = "all"
    """Evaluations, from the candidate to the verdict."""
    BUILD = "build"
    """Evaluations that are to be built: it compiles, and needs no device."""
    JUDGE = "judge"
    """Evaluations that are built."""


class Rigor(StrEnum):
    """How narrow the speedup's interval has to be: half-widths of 3 %, 1 % and 0.5 %."""

    QUICK = "quick"
    STANDARD = "standard"
    PUBLISH = "publish"
    """Three fresh pairs of processes."""

    @property
    def half_width(self) -> float:
        """Target half-width of the speedup's 95 % interval, as a fraction."""
        return {Rigor.QUICK: 0.03, Rigor.STANDARD: 0.01, Rigor.PUBLISH: 0.005}[self]

    @property
    def seconds(self) -> float:
        """Most seconds of timed blocks for one pair of processes, where a run does not say.

        With the rest of a verification, from request to verdict, about 3 s at `quick` and 8 s at `standard`.
        """
        return {Rigor.QUICK: 2.0, Rigor.STANDARD: 6.0, Rigor.PUBLISH: 20.0}[self]

    @property
    def sessions(self) -> int:
        """Pairs of fresh processes that are measured, at least."""
        return 3 if self is Rigor.PUBLISH else 1


class ErrorClass(StrEnum):
    """What arithmetic a float32 result could come from, by its error against float64; best first."""

    FP32_EQUIVALENT = "fp32-equivalent"
    TF32_CLASS = "tf32-class"
    HALF_CLASS = "half-class"
    WORSE = "worse"


RewardName = Literal["score", "correct", "speedup", "correct-and-speedup"]
"""Formulas of a training pair's reward: `kernelproof.report.export.rewards`."""


class Flag(StrEnum):
    """What a reader should know of a correct candidate; the leaderboard can leave such out."""

    SHAPE_SPECIALISED = "shape_specialised"
    """Right at the declared shapes only: another batch or size, or one more dimension, failed."""
    LAYOUT_SPECIALISED = "layout_specialised"
    """Right for contiguous inputs only: strided or offset views raised an error or gave a wrong result."""
    STATE_NOT_UPDATED = "state_not_updated"
    """Right outputs, but buffers (running statistics) are not updated as the reference updates its own."""
    WEIGHTS_SPECIALISED = "weights_specialised"
    """Right with a fresh model's weights only: a scale of ones or a bias of zeros is left out or built in."""

    INTERPRETED = "interpreted"
    """Judged on a CPU by its compiler's interpreter: no kernel was compiled, and nothing was timed."""

    @property
    def meaning(self) -> str:
        """A few words for `show` and the documentation."""
        return _FLAG_MEANING[self]


_FLAG_MEANING = {
    Flag.SHAPE_SPECIALISED: "right at the declared sizes only",
    Flag.LAYOUT_SPECIALISED: "right for contiguous inputs only",
    Flag.STATE_NOT_UPDATED: "does not update its buffers as the reference does",
    Flag.INTERPRETED: "interpreted on a CPU: not compiled, not timed",
    Flag.WEIGHTS_SPECIALISED: "right with a fresh model's weights only",
}


def words_of(kind: Any) -> tuple[str, ...]:
    """The words of an enumeration or a `Literal`, in their order."""
    if isinstance(kind, EnumType):
        members: dict[str, Any] = dict(kind.__members__)
        return tuple(member.value for member in members.values())
    return get_args(kind)
