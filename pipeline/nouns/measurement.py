"""A measurement: raw samples of candidate and baseline, and the speedup with its interval."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from pipeline.nouns.base import Noun


class Pace(StrEnum):
    """What the interval of the speedup allows to say."""

    FASTER = "faster"
    SAME = "same"
    SLOWER = "slower"
    UNRESOLVED = "unresolved"


class Interval(Noun):
    """A 95 % bootstrap interval of a ratio or a time."""

    low: float
    high: float


class Measurement(Noun):
    """Times in milliseconds for one call of forward, measured in alternating blocks."""

    baseline: str = "eager"
    """What the candidate was measured against: `eager`."""
    candidate_ms: float
    """Median time of one call of the candidate."""
    baseline_ms: float
    """Median time of one call of the baseline, measured in the same minutes."""
    speedup: float
    """Median over blocks of baseline / candidate; above 1 the candidate is faster."""
    speedup_interval: Interval
    pace: Pace
    resolution: float
    """Smallest relative difference this measurement claims: max(1 %, 3 x the A/A spread seen)."""
    aa_spread: float
    """Half-width of the interval of baseline against itself, as a fraction."""
    host_ms: float
    """One candidate call by the referee's own clock, loop overhead taken off: median over blocks."""
    overhead_ms: float
    """The loop overhead taken off: flush, marks and copying out for one call, seen around the baseline."""
    flush_bytes: int
    """Bytes written between calls to empty the L2 cache; 0 when none."""
    slots: int
    """Number of distinct input sets (addresses) a block walks through."""
    candidate_samples_ms: tuple[tuple[float, ...], ...] = ()
    """Raw times, one tuple a block, in the order they were taken."""
    baseline_samples_ms: tuple[tuple[float, ...], ...] = ()
    order: tuple[str, ...] = ()
    """For each block `BC` (baseline first) or `CB`."""
    clocks_before: dict[str, float | int | str | None] = Field(default_factory=dict)
    """GPU clocks, temperature, power and throttle reasons read before; load averages on a CPU."""
    clocks_after: dict[str, float | int | str | None] = Field(default_factory=dict)
