"""A measurement: raw samples of candidate and baseline, and the speedup with its interval."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from kernelproof.types.base import FrozenRecord
from kernelproof.types.roofline import Roofline


class Pace(StrEnum):
    """What the interval of the speedup allows to say."""

    FASTER = "faster"
    SAME = "same"
    SLOWER = "slower"
    UNRESOLVED = "unresolved"


def resolved(figure: float, pace: Pace | str) -> float:
    """A speedup, or an end of its interval, as ranks, rates and means take it: a pace that is unresolved
    claims no more than 1."""
    return min(figure, 1.0) if pace == Pace.UNRESOLVED else figure


class Interval(FrozenRecord):
    """A 95 % bootstrap interval of a ratio or a time."""

    low: float
    high: float


class Paced(FrozenRecord):
    """What has a pace. Without a reason it is written as versions wrote it that gave none."""

    @model_serializer(mode="wrap")
    def _without_reason(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written: dict[str, Any] = handler(self)
        if written.get("unresolved_because") is None:
            written.pop("unresolved_because", None)
        return written


class Against(Paced):
    """The candidate against one more baseline, through the eager one that both were measured against."""

    baseline: str
    """`compile` or `max-autotune`: torch.compile's default mode, or the one that searches."""
    baseline_ms: float
    speedup: float
    """The baseline's time over the candidate's; above 1 the candidate is faster."""
    speedup_interval: Interval
    pace: Pace
    unresolved_because: str | None = None
    """Why the pace is unresolved; None where it is not, and in records of policy 2 and before."""
    measured: str
    """When this baseline was measured (UTC, ISO 8601): earlier, when it came from the cache."""


class Replayed(FrozenRecord):
    """One call replayed as a CUDA graph: what is left of a launch-bound time without the launches."""

    candidate_ms: float | None
    """None when the candidate cannot be captured."""
    baseline_ms: float | None


class Measurement(Paced):
    """Times in milliseconds for one call of forward, measured in alternating blocks."""

    baseline: str = "eager"
    """What the candidate was measured against: `eager`."""
    candidate_ms: float
    """Time of one call of the candidate, as claimed: the baseline's over the speedup."""
    baseline_ms: float
    """Median time of one call of the baseline, measured in the same minutes."""
    speedup: float
    """Baseline over candidate: the median over blocks, or what the referee's own clock alone reaches if that
    is less; above 1 the candidate is faster."""
    speedup_interval: Interval
    """The lower end ranks: at least this is claimed."""
    pace: Pace
    unresolved_because: str | None = None
    """The same."""
    resolution: float
    """Smallest gain this measurement claims: max(1 %, 3 x the A/A spread seen). A loss above 5 % is claimed
    in any case."""
    aa_spread: float
    """Half-width of the interval of baseline against itself, as a fraction."""
    host_ms: float
    """One candidate call by the referee's own clock alone, as its block differs from the baseline's."""
    overhead_ms: float
    """The loop overhead taken off: flush, marks and copying out for one call, seen around the baseline."""
    flush_bytes: int
    """Bytes written between calls to empty the L2 cache; 0 when none."""
    slots: int
    """Number of distinct input sets (addresses) a block walks through."""
    candidate_samples_ms: tuple[tuple[float, ...], ...] = ()
    """Raw times, one tuple a block, in the order they were taken."""
    baseline_samples_ms: tuple[tuple[float, ...], ...] = ()
    host_samples_ms: tuple[tuple[float, float], ...] = ()
    """For each block the referee's own clock around the candidate's and around the baseline's."""
    order: tuple[str, ...] = ()
    """For each block `BC` (baseline first) or `CB`."""
    clocks_before: dict[str, float | int | str | None] = Field(default_factory=dict)
    """GPU clocks, temperature, power and throttle reasons read before; load averages on a CPU."""
    clocks_after: dict[str, float | int | str | None] = Field(default_factory=dict)
    inside_ms: float | None = None
    """One candidate call by the contestant's clock alone."""
    unseen_ms: float = 0.0
    """`candidate_ms` less the median inside."""
    sessions: tuple[int, ...] = ()
    """For each block the number of the process pair it ran in, from 0; empty for a single pair."""
    calls: tuple[int, ...] = ()
    """For each block its secret number of calls; empty in records of 0.2 and before."""
    disturbed: tuple[str, ...] = ()
    """Why blocks were thrown away and repeated, one entry a block."""
    launch_bound: bool = False
    """Whether launching takes longer than computing (about 20 us and less)."""
    replayed: Replayed | None = None
    """Given for launch-bound calls on a GPU."""
    against: tuple[Against, ...] = ()
    """Further baselines."""
    roofline: Roofline | None = None

    @property
    def claimed(self) -> float:
        """What ranks: the lower end of the speedup's interval, 1 at most where the pace is unresolved."""
        return resolved(self.speedup_interval.low, self.pace)

    @property
    def claimed_interval(self) -> Interval:
        """The speedup's interval; its ends are 1 at most where the pace is unresolved."""
        found = self.speedup_interval
        return Interval(low=resolved(found.low, self.pace), high=resolved(found.high, self.pace))
