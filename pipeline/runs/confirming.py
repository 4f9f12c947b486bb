"""Verifies once more the best attempt of a sample that raced: its figure owes nothing to the selection.

The second verification stands beside the attempt's screening, with the run's own settings. So it is found
again by the attempt, and is made once, whatever interrupts the search.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kernelproof.db.views import StoredAttempt
from kernelproof.jobs import RETRIED, Job
from kernelproof.jobs.leases import in_thread
from kernelproof.runs.events import Event, Phase
from kernelproof.runs.files import write_attempt
from kernelproof.runs.run_context import Judged, RunContext
from kernelproof.runs.strategies import Result
from kernelproof.types import Status, Verification

MOST = 3
"""So many of the best are verified again until one is correct."""


def ranked(judged: Iterable[Judged]) -> list[Judged]:
    """The correct attempts that were timed, the best first, by what their screenings claim."""
    timed = [(each.times, each) for each in judged if each.times is not None]
    timed.sort(key=lambda one: (-one[0].claimed, -one[0].speedup, one[1].id))
    return [each for _, each in timed]


def bar(judged: Iterable[Judged]) -> float:
    """The speedup that the best of these surely reaches; 0 where there is none."""
    return max((each.times.claimed for each in judged if each.times is not None), default=0.0)


class Confirming:
    """Verifies attempts as the run's settings say, each once."""

    def __init__(self, context: RunContext) -> None:
        self._context = context

    async def best(self, judged: Iterable[Judged], *, wait: bool) -> bool:
        """Confirms the best attempt, or the next one where it turns out not to be correct.

        False when another command is at work on it. With `wait` that command is waited for.
        """
        for each in ranked(judged)[:MOST]:
            verdict = await self.confirm(each.id, wait=wait)
            if verdict is None:
                return False
            if verdict.status is Status.CORRECT or verdict.status in RETRIED:
                return True
        return True

    async def enough(
        self, results: Sequence[Result], judged: Mapping[int, Judged], *, wait: bool
    ) -> str | None:
        """Why a sample is good enough, as the run's settings have it; empty when it is not.

        Where a screening reaches the share of the roofline, the verification that confirms it has to reach it
        as well. None when another command is at work on that. `judged`: the attempts by turn.
        """
        settings = self._context.settings
        for each in sorted(results, key=lambda each: each.roofline or 0.0, reverse=True):
            reached = each.roofline if each.correct and each.roofline is not None else 0.0
            if settings.good_enough is None or reached < settings.good_enough:
                continue
            if settings.race:
                verdict = await self.confirm(judged[each.turn].id, wait=wait)
                if verdict is None:
                    return None
                times = verdict.measurement if verdict.status is Status.CORRECT else None
                reached = times.roofline.fraction if times and times.roofline else 0.0
            if reached >= settings.good_enough:
                return f"good enough: {reached:.1%} of the roofline".replace("%", " %")
        return ""

    async def confirm(self, attempt_id: int, *, wait: bool) -> Verification | None:
        """The second verification of an attempt, made where there is none; None when another command is at
        work on the attempt, and is not waited for."""
        context = self._context
        stored = await in_thread(context.store.load_attempt, attempt_id)
        job = Job.of_attempt(
            *(stored, context.settings.verify), finish=True, since=context.began, again=context.again
        )

        def on_stage(stage: str) -> None:
            self._emit(stored, Phase.JUDGING, note=stage)

        verdict = await context.judge.submit(job, stored, on_stage, wait=wait)
        if verdict is None or verdict.verification is None:
            return None
        if context.generated is not None and not verdict.reused:
            facts = (stored.response, stored.extraction, verdict.verification)
            await in_thread(write_attempt, context.generated, stored.id, stored.key, *facts)
        self._emit_end(stored, verdict.verification, kept=verdict.reused)
        return verdict.verification

    def _emit_end(self, stored: StoredAttempt, verdict: Verification, *, kept: bool = False) -> None:
        facts = {"status": verdict.status, "verification": verdict, "kept": kept, "confirmed": True}
        self._emit(stored, Phase.ENDED, **facts)

    def _emit(self, stored: StoredAttempt, phase: Phase, **facts: object) -> None:
        model = self._context.settings.model
        self._context.on_event(Event(model, stored.key, phase, attempt_id=stored.id, **facts))  # type: ignore[arg-type]
