"""What settings, options and filters may be: words from a list, and numbers within bounds, each in one place.

The command line and the records of a configuration refuse the same values, in the same words. Imports the
standard library alone: the command line reads words and numbers before it imports pydantic.

Example: `SAMPLES.number("0")` raises ValueError("must be 1 or more, not 0"), and a record whose field is
`samples: Annotated[int, SAMPLES]` refuses 0 with these words.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
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
    """Right with its first weights only: they are packed once, or built in, or left out; or a mask is."""
    PRECISION_NOT_SEPARABLE = "precision_not_separable"
    """As far off as coarse operands would be, where honest float32 may be as far off."""

    INTERPRETED = "interpreted"
    """Judged on a CPU by its compiler's interpreter: no kernel was compiled, and nothing was timed."""

    OUT_OF_BOUNDS_READ = "out_of_bounds_read"
    OUT_OF_BOUNDS_WRITE = "out_of_bounds_write"
    RACE = "race"
    UNINITIALISED = "uninitialised"
    UNDEFINED_BEHAVIOUR = "undefined_behaviour"
    """Reported by a sanitizer (`--sanitize`), whatever the status is; the first two also by a probe."""

    @property
    def meaning(self) -> str:
        """A few words for `show` and the documentation."""
        return _FLAG_MEANING[self]


_FLAG_MEANING = {
    Flag.SHAPE_SPECIALISED: "right at the declared sizes only",
    Flag.LAYOUT_SPECIALISED: "right for contiguous inputs only",
    Flag.STATE_NOT_UPDATED: "does not update its buffers as the reference does",
    Flag.INTERPRETED: "interpreted on a CPU: not compiled, not timed",
    Flag.WEIGHTS_SPECIALISED: "right with its first weights only",
    Flag.PRECISION_NOT_SEPARABLE: "may have coarse operands: nothing there tells them from float32",
    Flag.OUT_OF_BOUNDS_READ: "reads memory that is not its own",
    Flag.OUT_OF_BOUNDS_WRITE: "writes memory that is not its own",
    Flag.RACE: "a sanitizer saw threads that race for the same memory",
    Flag.UNINITIALISED: "a sanitizer saw it read memory that nothing was written to",
    Flag.UNDEFINED_BEHAVIOUR: "a sanitizer saw undefined behaviour",
}


def words_of(kind: Any) -> tuple[str, ...]:
    """The words of an enumeration or a `Literal`, in their order."""
    if isinstance(kind, EnumType):
        members: dict[str, Any] = dict(kind.__members__)
        return tuple(member.value for member in members.values())
    return get_args(kind)


MOST_CHARACTERS = 60
"""Of text that is no number, so much is shown."""
DAY_S = 86_400
YEAR_S = 365 * DAY_S


@dataclass(frozen=True)
class Bounds:
    """From `least` to `most`, both included."""

    least: float
    most: float
    whole: bool = True
    """A whole number."""
    above: bool = False
    """More than `least`."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """The schema of a field that has these bounds beside its type, for pydantic."""
        from pydantic_core.core_schema import no_info_wrap_validator_function

        return no_info_wrap_validator_function(self._validated, handler(source))

    def _validated(self, value: Any, validate: Callable[[Any], Any]) -> Any:
        number = value if isinstance(value, bool) else validate(value)
        if number is not None:
            self.hold(number)
        return number

    def number(self, text: str) -> float:
        """The number that a user wrote: an int where it has to be whole.

        Raises ValueError with words that fit behind a name: "must be 1 or more, not 0".
        """
        written = text.strip()
        shown = written[:MOST_CHARACTERS] + ("..." if len(written) > MOST_CHARACTERS else "")
        if self.whole and not re.fullmatch(r"[+-]?\d+", written, re.ASCII):
            raise ValueError(f"must be a whole number, not {_quoted(shown)}")
        try:
            value = float(written.replace("_", "?"))
        except ValueError:
            raise ValueError(f"must be a number, not {_quoted(shown)}") from None
        self._hold(value, shown)
        return int(written) if self.whole else value

    def hold(self, value: object) -> None:
        """Raises ValueError, in the same words, for what is no number within the bounds."""
        kind = "a whole number" if self.whole else "a number"
        if isinstance(value, bool) or not isinstance(value, int if self.whole else int | float):
            raise ValueError(f"must be {kind}, not {value!r:.60}")
        self._hold(value, f"{value:.15g}" if abs(value) < 1e300 else "so large a number")

    def _hold(self, value: float, shown: str) -> None:
        if value != value:
            raise ValueError("must be a number, not nan")
        if value < self.least or (self.above and value == self.least):
            least = f"more than {self.least:g}" if self.above else f"{self.least:g} or more"
            raise ValueError(f"must be {least}, not {shown}")
        if value > self.most:
            most = int(self.most) if float(self.most).is_integer() else self.most
            raise ValueError(f"must be {most} or less, not {shown}")


def _quoted(text: str) -> str:
    """A number that is not whole as it is; anything else as the text that it is."""
    return text if re.fullmatch(r"[+-]?\d*\.?\d+", text, re.ASCII) else repr(text)


SAMPLES = Bounds(1, 1_000_000)
TURNS = Bounds(1, 1_000)
ROOFLINE_SHARE = Bounds(0, 1, whole=False, above=True)
CONCURRENCY = Bounds(1, 1_000_000)
RETRIES = Bounds(0, 1_000)
EQUAL_ERRORS = Bounds(1, 1_000_000)
TIMEOUT_S = Bounds(0, 7 * DAY_S, whole=False, above=True)
"""Of a server's silence."""
TIME_S = Bounds(0, YEAR_S, whole=False, above=True)
DOLLARS = Bounds(0, 1e9, whole=False, above=True)
PRICE = Bounds(0, 1e6, whole=False)
TEMPERATURE = Bounds(0, 100, whole=False)
"""Servers differ in how much they allow; none allows less than 0."""
ANSWER_TOKENS = Bounds(1, 1_000_000_000)
CONTEXT_TOKENS = Bounds(1, 1_000_000_000)
ALL_TOKENS = Bounds(1, 10**15)
ATTEMPTS = Bounds(1, 1_000_000_000)
TRIALS = Bounds(1, 100)
TUNED = Bounds(1, 100_000)
SEED = Bounds(0, 2**32 - 1)
CALL_S = Bounds(0, DAY_S, whole=False, above=True)
"""For one call of a candidate."""
MEASURE_S = Bounds(0, 600, whole=False, above=True)
LEVEL = Bounds(0, 1_000_000)
NEW_LEVEL = Bounds(1, 1_000_000)
"""Of a problem that is written."""
CHECK_S = Bounds(1, DAY_S, whole=False)
"""For one problem."""
DAYS = Bounds(0, 36_500, whole=False)
ROW = Bounds(1, 2**63 - 1)
TOP = Bounds(1, 100_000_000)
PORT = Bounds(0, 65_535)
KERNELS = Bounds(0, 1000)
"""Kernels that have a section in a report."""
QUEUE = Bounds(1, 10_000_000)
LOSSES = Bounds(3, 1_000_000)
"""Of leases on an evaluation: two may be the doing of others that its daemon had, too."""
WORKER_PLACES = Bounds(0, 10_000)
"""Evaluations that a worker has at once."""
WORKERS = Bounds(0, 10_000)
CPUS = Bounds(1, 10_000)

FIELDS = {
    "temperature": TEMPERATURE,
    "top_p": Bounds(0, 1, whole=False),
    "max_tokens": ANSWER_TOKENS,
    "max_completion_tokens": ANSWER_TOKENS,
    "max_output_tokens": ANSWER_TOKENS,
}
"""Fields of a request that mean the same to every server."""
