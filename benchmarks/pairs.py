"""One candidate verified twice, in a batch and alone or hours apart: is that the same?

The two statuses have to be equal, and none may be `correct` whose author meant it not to be. Two speedups
agree when their 95 % intervals overlap, or the logarithm of their ratio is within both half-widths added in
quadrature: a 95 % interval of that ratio, so by chance one of twenty may be beyond it. `reproduce` is what
`kernelproof reproduce` would find, which allows for the resolution that each claims as well.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.candidates import Work
from benchmarks.evidence import table
from kernelproof.runs.reproduction import compare
from kernelproof.types import Measurement, Status, Verification


@dataclass(frozen=True)
class Times:
    """A speedup and its 95 % interval."""

    speedup: float
    low: float
    high: float

    @classmethod
    def of(cls, measured: Measurement | None) -> Times | None:
        if measured is None:
            return None
        interval = measured.speedup_interval
        return cls(measured.speedup, interval.low, interval.high)

    @property
    def half(self) -> float:
        """The interval's half-width as a log-ratio."""
        return math.log(self.high / self.low) / 2

    def __str__(self) -> str:
        return f"{self.speedup:.3f} [{self.low:.3f}, {self.high:.3f}]"


@dataclass(frozen=True)
class Pair:
    """One candidate, verified in the batch and alone."""

    number: int
    problem: str
    expected: str
    """The status that its author meant it to have."""
    together: str
    """The status in the batch."""
    alone: str
    times_together: Times | None
    times_alone: Times | None
    reason_together: str
    reason_alone: str
    reproduce: str
    """What `kernelproof reproduce` would find, the lone one being the first."""

    @property
    def same_status(self) -> bool:
        return self.together == self.alone

    @property
    def wrongly_correct(self) -> bool:
        """Whether a candidate that is not right, or lies to the clock, got through."""
        return self.expected != Status.CORRECT and Status.CORRECT in (self.together, self.alone)

    @property
    def overlap(self) -> bool | None:
        """Whether the two intervals overlap; None where one of the two was not measured."""
        one, other = self.times_together, self.times_alone
        return None if one is None or other is None else one.low <= other.high and other.low <= one.high

    @property
    def within(self) -> bool | None:
        """Whether the ratio of the two is within both half-widths in quadrature; None as for `overlap`."""
        one, other = self.times_together, self.times_alone
        if one is None or other is None:
            return None
        return abs(math.log(one.speedup / other.speedup)) <= math.hypot(one.half, other.half)

    @property
    def agree(self) -> bool | None:
        """The rule: the intervals overlap, or the ratio is within both; None as for `overlap`."""
        return None if self.overlap is None else bool(self.overlap or self.within)


JUDGED = ("same_status", "wrongly_correct", "overlap", "within", "agree")
"""What follows from a pair, and goes into its line of JSON."""


def as_rows(pairs: Sequence[Pair]) -> list[dict[str, Any]]:
    """A line of JSON for each."""
    return [asdict(pair) | {name: getattr(pair, name) for name in JUDGED} for pair in pairs]


def all_right(pairs: Sequence[Pair]) -> bool:
    """Whether every status is the same twice, and none is correct that was not meant to be."""
    return all(pair.same_status and not pair.wrongly_correct for pair in pairs)


def paired(number: int, work: Work, together: Verification, alone: Verification) -> Pair:
    """The two of one candidate."""
    return Pair(
        number=number,
        problem=together.problem_id,
        expected=work.expected,
        together=str(together.status),
        alone=str(alone.status),
        times_together=Times.of(together.measurement),
        times_alone=Times.of(alone.measurement),
        reason_together=together.reason,
        reason_alone=alone.reason,
        reproduce=str(compare(alone, together)[0]),
    )


def shown(pairs: Sequence[Pair], one: str = "in the batch", other: str = "alone") -> str:
    """A line for each candidate; the two names say what was done twice."""
    rows = []
    for pair in pairs:
        status = pair.together if pair.same_status else f"{pair.together}, {other} {pair.alone}"
        words = {None: "", True: "agree", False: "DIFFER"}[pair.agree]
        times = (str(times or "") for times in (pair.times_together, pair.times_alone))
        rows.append((pair.number, pair.problem, status, *times, words, pair.reproduce))
    return table(("", "problem", "status", one, other, "speedups", "reproduce"), rows)


def summary(pairs: Sequence[Pair]) -> str:
    """The counts, and the reasons of every status that is not the same."""
    measured = [pair for pair in pairs if pair.agree is not None]
    agreeing, beyond = sum(bool(p.agree) for p in measured), sum(not p.within for p in measured)
    found = ", ".join(f"{count} {name}" for name, count in Counter(p.reproduce for p in pairs).most_common())
    lost = sum(Status.INFRASTRUCTURE_ERROR in (pair.together, pair.alone) for pair in pairs)
    unjudged = f"; {lost} could not be judged" if lost else ""
    lines = [
        f"{sum(pair.same_status for pair in pairs)} of {len(pairs)} statuses are the same{unjudged}",
        f"{agreeing} of {len(measured)} speedups agree; {beyond} beyond both half-widths in quadrature",
        f"reproduce: {found}",
    ]
    for pair in pairs:
        if pair.wrongly_correct:
            lines.append(f"{pair.number} {pair.problem} is correct here, and was written as {pair.expected}")
        if not pair.same_status:
            lines.append(
                f"{pair.number} {pair.problem}, in the batch: {pair.together}, {pair.reason_together}"
            )
            lines.append(f"{pair.number} {pair.problem}, alone: {pair.alone}, {pair.reason_alone}")
    return "\n".join(lines)
