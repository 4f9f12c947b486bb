"""Times, speedups and rooflines of a candidate, and the kernels that ran."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Any, Protocol

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from kernelproof.types.record import FrozenRecord


class Ceilings(FrozenRecord):
    """What a device did at best, measured once (docs/rationale/roofline.md says how)."""

    bytes_per_s: float
    """The fastest of copying, reading and writing device memory, read and written bytes counted."""
    operations_per_s: float
    """The fastest dense matrix product of any dtype, 2 operations for a multiply-add."""
    cache_bytes: int
    """Written bytes that may still lie in the last-level cache when a call ends."""
    aa_spread: float
    """How far two processes that run the same thing were apart: a fraction, 95 % of the pairs."""
    measured: str
    """UTC, ISO 8601."""


class Roofline(FrozenRecord):
    """One problem's least time on one device, and how close the candidate came."""

    bytes_read: int
    """Bytes of inputs and weights that the reference reads at least once (indexed reads: what is taken)."""
    bytes_written: int
    """Bytes of the outputs."""
    bytes_needed: int
    """Bytes of the inputs that no program can do without; docs/rationale/roofline.md says which are not."""
    operations: int
    """Operations of the reference's matrix products, convolutions and attention."""
    memory_ms: float
    """Least time for the bytes: writes that fit the last-level cache left out."""
    compute_ms: float
    """Least time for the operations."""
    needed_ms: float
    """Least time for the needed bytes and the same writes: a call that is clearly faster is impossible."""
    fraction: float
    """max(memory_ms, compute_ms) / candidate's time: 1 is the roofline itself."""
    ceilings: Ceilings


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


BUSY_SHARE = 0.25
"""With so many of its rounds thrown away as disturbed, a measurement was made on a busy machine: more of them
are never repeated."""


class Interval(FrozenRecord):
    """A 95 % bootstrap interval of a ratio or a time."""

    low: float
    high: float


class _Sped(Protocol):
    @property
    def speedup(self) -> float: ...

    @property
    def speedup_interval(self) -> Interval: ...


def quotient_reach(over: _Sped, under: _Sped, *more: float) -> tuple[float, float]:
    """How far the quotient of two speedups may lie below and above, on the logarithmic scale.

    The reach of each interval on a side of its speedup adds in quadrature, and so does `more`: a speedup that
    the referee's clock bounds stands at the low end of its interval.
    """
    a, b = over.speedup_interval, under.speedup_interval
    down = math.hypot(math.log(over.speedup / a.low), math.log(b.high / under.speedup), *more)
    up = math.hypot(math.log(a.high / over.speedup), math.log(under.speedup / b.low), *more)
    return down, up


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
    def busy(self) -> str:
        """What shows that the machine was busy meanwhile, so that noise may have lowered the claim: one of
        `disturbed`, with how many there were. Empty where it was quiet enough."""
        taken = len(self.disturbed) + len(self.order)
        if len(self.disturbed) < BUSY_SHARE * taken or not self.disturbed:
            return ""
        of = f"{len(self.disturbed)} of {taken} rounds were disturbed and left out"
        return f"{of}; the last: {self.disturbed[-1]}"

    @property
    def claimed_interval(self) -> Interval:
        """The speedup's interval; its ends are 1 at most where the pace is unresolved."""
        found = self.speedup_interval
        return Interval(low=resolved(found.low, self.pace), high=resolved(found.high, self.pace))


class Origin(StrEnum):
    """Whose code a launch ran."""

    OWN = "own"
    """An extension that the candidate built."""
    JIT = "jit"
    """Compiled while it ran, by NVRTC or another compiler that the candidate's source calls."""
    INDUCTOR = "inductor"
    """Made by torch.compile, or by Triton."""
    LIBRARY = "library"
    """ATen, cuBLAS, cuDNN, CUTLASS and the like."""
    COPY = "copy"
    """Copies and fills of memory."""
    UNKNOWN = "unknown"
    """Nothing shows whose it is: it does not count as the candidate's."""


class Launch(FrozenRecord):
    """All launches of one kernel (CUDA), or calls of one function or operator (CPU), in the traced call."""

    name: str
    origin: Origin
    count: int
    ms: float | None = None
    """Device time of all of them together; None where no profiler timed it."""
    threads: int | None = None
    """Threads of a block, in the launch that took longest. This and the next three are None where the
    profiler does not say."""
    blocks: int | None = None
    """Blocks of that launch."""
    registers: int | None = None
    """Registers of a thread."""
    shared_bytes: int | None = None
    """Shared memory of a block."""


class Kernels(FrozenRecord):
    """What ran in one traced call. Seen inside the contestant: a claim (docs/rationale/trust.md)."""

    launches: tuple[Launch, ...] = ()
    operators: tuple[str, ...] = ()
    """Compute operators of torch that were dispatched, e.g. `aten.mm`; views and allocations apart."""
    own_share: float | None = Field(default=None, ge=0, le=1)
    """Share of the device time in launches of origin `own` and `jit`; None where times are not known."""
    replaced_share: float | None = Field(default=None, ge=0, le=1)
    """Share of the reference's time in operators of torch whose work no library does in the candidate; None
    where the reference was not traced, or calls none."""
    replaced_outside_products: float | None = Field(default=None, ge=0, le=1)
    """The same of what is no matrix product and no convolution; None where the reference calls none such."""
    allocations: dict[str, int] = Field(default_factory=dict)
    """Functions of CUDA's that took memory or gave it back in that call, e.g. `cudaMallocAsync`, and how many
    calls of each there were. A call that stays in torch's own pool calls none."""
    trouble: str = ""
    """Why there is no profile, or only a part of one."""
    raised: bool = False
    """Whether that is an exception of the candidate's: its call raises when it is traced, and only then."""

    @property
    def longest_first(self) -> list[Launch]:
        """The launches by their time, those of the same time by their count."""
        return sorted(self.launches, key=lambda launch: (-(launch.ms or 0.0), -launch.count))
