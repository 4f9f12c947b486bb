"""Verifies once more the best attempt of a sample that raced: its figure owes nothing to the selection.

The second verification stands beside the attempt's screening, with the run's own settings. So it is found
again by the attempt, and is made once, whatever interrupts the search.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import anyio.to_thread

from kernelproof.db.views import StoredAttempt
from kernelproof.runs.events import Event, Phase
from kernelproof.runs.files import write_attempt
from kernelproof.runs.leases import in_thread
from kernelproof.runs.stages import RETRIED, Judged, Stages
from kernelproof.runs.strategies import Result
from kernelproof.runs.stream import verify_persistently
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

    def __init__(self, stages: Stages) -> None:
        self._stages = stages
        self._redone: set[int] = set()
        """Attempts that were verified again because `again` asks for it."""

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
        settings = self._stages.settings
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
        store, owner = self._stages.store, self._stages.leases.owner
        while True:
            if verdict := await self._kept(attempt_id):
                return verdict
            claim = await in_thread(store.claim_stored, attempt_id, owner)
            if claim.granted:
                break
            if not wait:
                return None
            await self._stages.leases.freed(claim.key)
        if verdict := await self._kept(attempt_id):  # whoever held the lease before may have made it
            await in_thread(store.leases.give_back, owner, claim.key)
            return verdict
        return await self._made(await in_thread(store.load_attempt, attempt_id))

    async def _kept(self, attempt_id: int) -> Verification | None:
        """The one that is stored."""
        stored = await in_thread(self._stages.store.load_attempt, attempt_id)
        found = stored.verdict_for(self._stages.settings.verify)
        if found is None or found.verification.status in RETRIED:
            return None
        verdict = found.verification
        if verdict.status in self._stages.again and attempt_id not in self._redone:
            return None
        if stored.status is not verdict.status:  # it was killed in between
            await in_thread(self._stages.store.finish_attempt, attempt_id, verdict.status)
        self._tell_end(stored, verdict, kept=True)
        return verdict

    async def _made(self, stored: StoredAttempt) -> Verification:
        stages, source = self._stages, stored.source
        assert source is not None
        self._redone.add(stored.id)

        def on_stage(stage: str) -> None:
            self._tell(stored, Phase.JUDGING, note=stage)

        def work() -> Verification:
            settings = stages.settings.verify
            verdict = verify_persistently(stages.engine, source, stored.problem, settings, on_stage)
            stages.store.record_verification(stored.id, verdict, "again")
            return verdict

        on_stage("queued")
        verdict = await anyio.to_thread.run_sync(work, limiter=stages.verifications, abandon_on_cancel=True)
        if stages.generated is not None:
            facts = (stored.response, stored.extraction, verdict)
            await in_thread(write_attempt, stages.generated, stored.id, stored.key, *facts)
        await in_thread(stages.store.finish_attempt, stored.id, verdict.status, stages.leases.owner)
        self._tell_end(stored, verdict)
        return verdict

    def _tell_end(self, stored: StoredAttempt, verdict: Verification, *, kept: bool = False) -> None:
        facts = {"status": verdict.status, "verification": verdict, "kept": kept, "confirmed": True}
        self._tell(stored, Phase.ENDED, **facts)

    def _tell(self, stored: StoredAttempt, phase: Phase, **facts: object) -> None:
        model = self._stages.settings.model
        self._stages.on_event(Event(model, stored.key, phase, attempt_id=stored.id, **facts))  # type: ignore[arg-type]
