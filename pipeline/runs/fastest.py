"""The best attempts of a batch, from its events: of a sample that raced the one that was verified again."""

from __future__ import annotations

import math
from typing import TypeAlias

from kernelproof.runs.events import Event
from kernelproof.types import Pace, Status
from kernelproof.types.progress import FastAttempt

KEPT = 5
"""The number of best attempts that are kept."""
_Sample: TypeAlias = "tuple[str, str, str, int]"


class Fastest:
    """Screenings count as long as their sample is open, and until one of its attempts is verified again."""

    def __init__(self) -> None:
        self._kept: list[FastAttempt] = []
        self._of: dict[str, FastAttempt] = {}
        """The best attempt of each model that is no screening."""
        self._screened: dict[_Sample, FastAttempt] = {}
        """The best screening of each open sample."""

    def hear(self, event: Event) -> None:
        """An attempt ended as correct."""
        found = _fast(event)
        if found is None:
            return
        if found.screened:
            before = self._screened.get(_sample(event))
            if before is None or found.claimed > before.claimed:
                self._screened[_sample(event)] = found
            return
        if event.confirmed:
            self._screened.pop(_sample(event), None)
        best = self._of.get(found.model)
        if best is None or found.claimed > best.claimed:
            self._of[found.model] = found
        others = [one for one in self._kept if not _same(one, found)]
        self._kept = sorted([*others, found], key=lambda one: -one.claimed)[:KEPT]

    def over(self, event: Event) -> None:
        """A sample is over: its screenings count no more."""
        self._screened.pop(_sample(event), None)

    def best(self) -> tuple[FastAttempt, ...]:
        """The best of all models, `KEPT` of them at most."""
        return tuple(sorted([*self._kept, *self._screened.values()], key=lambda one: -one.claimed)[:KEPT])

    def of(self, model: str) -> FastAttempt | None:
        """A model's best."""
        screened = [one for one in self._screened.values() if one.model == model]
        kept = [self._of[model]] if model in self._of else []
        return max([*kept, *screened], key=lambda one: one.claimed, default=None)


def _sample(event: Event) -> _Sample:
    key = event.key
    return event.model, key.problem_id, key.problem_sha256, key.sample


def _fast(event: Event) -> FastAttempt | None:
    """None for what is not correct, or not timed."""
    found = event.verification.measurement if event.verification is not None else None
    if event.status is not Status.CORRECT or event.verification is None or found is None:
        return None
    low, high = found.speedup_interval.low, found.speedup_interval.high
    if not all(map(math.isfinite, (found.speedup, low, high, found.claimed))):
        return None
    return FastAttempt(
        model=event.model,
        problem_id=event.key.problem_id,
        attempt_id=event.attempt_id,
        sample=event.key.sample,
        turn=event.key.turn,
        speedup=found.speedup,
        low=low,
        high=high,
        pace=Pace(found.pace),
        claimed=found.claimed,
        screened=event.verification.settings.bar is not None,
    )


def _same(one: FastAttempt, other: FastAttempt) -> bool:
    facts = ("model", "problem_id", "sample", "turn")
    return all(getattr(one, fact) == getattr(other, fact) for fact in facts)
