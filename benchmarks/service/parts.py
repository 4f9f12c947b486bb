"""An evaluation's latency in parts, from the times of its request, its engine and its answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.service.load import Answered


@dataclass(frozen=True)
class Parts:
    """Seconds of one evaluation."""

    total: float
    """From the sending of the request to its answer."""
    slot: float
    """Waiting for a free slot of the engine."""
    engine: float
    before: float
    """From a free slot, or the sending if that is later, until the engine begins."""
    after: float
    """From the engine's end to the answer."""

    @property
    def overhead(self) -> float:
        """The rest beside the engine's time and the wait for a slot."""
        return self.before + self.after


def parts_of(
    answered: Sequence[Answered], calls: Mapping[str, tuple[float, float]], keys: Sequence[str], slots: int
) -> list[Parts]:
    """The parts of each, in the order in which the engine began them.

    A slot is free for the n-th when, of all calls, n - `slots` have ended. `keys`: SHA-256 of each one's
    source. `calls`: beginning and end of the engine's call for each.
    """
    begun = sorted(answered, key=lambda each: calls[keys[each.number]][0])
    ends = sorted(calls[keys[each.number]][1] for each in answered)
    found = []
    for turn, each in enumerate(begun):
        began, ended = calls[keys[each.number]]
        free = ends[turn - slots] if turn >= slots else each.sent
        ready = min(began, max(each.sent, free))
        found.append(
            Parts(
                total=each.answered - each.sent,
                slot=ready - each.sent,
                engine=ended - began,
                before=began - ready,
                after=each.answered - ended,
            )
        )
    return found


def percentile(values: Sequence[float], share: float) -> float:
    """The value that `share` of them do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
