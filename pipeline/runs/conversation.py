"""One sample of a run: ask, extract, verify, and ask again with the evidence, as the run's strategy says.

Everything is stored as soon as it exists, the answer before it is parsed: a conversation that was
interrupted anywhere goes on from what the store holds. An attempt is leased before it is asked for, so that
two commands at once share the work.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext

import anyio
import anyio.to_thread

from kernelproof.db.views import AttemptLease, StoredAttempt
from kernelproof.errors import UsageError
from kernelproof.extraction import extract, extract_plans, read_plans
from kernelproof.extraction.normalise import normalized_hash
from kernelproof.jobs import RETRIED, AppendTo, Job
from kernelproof.jobs.leases import in_thread
from kernelproof.prompting import Failure
from kernelproof.providers import cut_hint
from kernelproof.runs.events import Event, Phase
from kernelproof.runs.files import write_attempt
from kernelproof.runs.gain_scheduler import expected_gain
from kernelproof.runs.prompts import prompt_of, question_key, shown_program
from kernelproof.runs.run_context import Answered, AnswerSlot, Judged, RunContext
from kernelproof.runs.strategies import Proposal, Result, Rounds, Task
from kernelproof.types import AttemptKey, Extraction, Problem, Prompt, Response, Status, Verification
from kernelproof.wording import counted


def repeated(source: str, earlier: Iterable[Judged]) -> Judged | None:
    """The earlier attempt with this very program, else with one that differs in comments and blanks alone.

    The first of several; None where there is none.
    """
    with_program = [each for each in earlier if each.verification is not None and each.source is not None]
    same = next((each for each in with_program if each.source == source), None)
    if same is not None or not with_program:
        return same
    ours = normalized_hash(source)
    return next((each for each in with_program if each.normalized_hash == ours), None)


class Verdicts:
    """The verifications of a sample's programs, so that none is made twice.

    Two answers of one round may hold the same program: `alone` lets one be verified, and the other one waits.
    """

    def __init__(self) -> None:
        self._kept: dict[str, tuple[int, Verification]] = {}
        self._locks: defaultdict[str, anyio.Lock] = defaultdict(anyio.Lock)

    def alone(self, source: str) -> anyio.Lock:
        """To be held while this very program is looked up, verified and kept."""
        return self._locks[source]

    def keep(self, source: str, attempt_id: int, verdict: Verification) -> None:
        """Keeps the verification of a program; its first attempt stays the one that others repeat."""
        self._kept.setdefault(source, (attempt_id, verdict))

    def of(self, source: str) -> tuple[int, Verification] | None:
        """The attempt that this very program was verified for, and its verification; None before that."""
        return self._kept.get(source)


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


class Conversation:
    """The attempts at one sample of one problem. Its strategy says which, and the store which are done."""

    def __init__(self, context: RunContext, problem: Problem, sample: int) -> None:
        self._context, self._problem, self._sample = context, problem, sample
        verify = context.settings.verify
        self._settings = verify.as_screening(0.0) if context.settings.race else verify
        """The settings by which attempts are verified; where they race, each has a bar of its own."""
        self._confirming = Confirming(context)
        limit = context.client.provider.turns(problem.id, self._settings.backend, sample)
        self._last = min(context.settings.turns, limit or context.settings.turns)
        self._judged: dict[int, Judged] = {}
        """By turn: all that the strategy was told of."""
        self._verdicts = Verdicts()
        self._proposals: dict[int, Proposal] = {}
        """By turn: the strategy's proposals, the round that is at work included."""
        self._redone: set[int] = set()
        """Turns that were done again, as `again` asks."""
        self._elsewhere = False

    async def run(self, *, wait: bool) -> bool:
        """All attempts that are still to do. False when one is not done, because another command is at it.

        With `wait` it waits for that command. Raises MachineError when the store or this machine fails.
        """
        self._elsewhere, self._judged, self._verdicts = False, {}, Verdicts()
        scheduler = self._context.scheduler
        if scheduler is not None:
            scheduler.expect(self)
        try:
            over, note = await self._rounds(wait)
        finally:
            if scheduler is not None:
                scheduler.leave(self)
        ended = over or self._context.client.is_spent
        if self._context.settings.race and ended and not self._elsewhere:
            self._elsewhere = not await self._confirming.best(self._judged.values(), wait=wait)
        if not self._elsewhere:
            self._emit(self._key(self._last), Phase.OVER, note=note)
        return not self._elsewhere

    async def _rounds(self, wait: bool) -> tuple[bool, str]:
        """Asks the strategy, tries what it proposes, tells it the results; until it or the turns end.

        Returns whether the sample is over, and why, where that has to be said.
        """
        timed = self._settings.measure
        task = Task(self._problem, self._settings.backend, self._sample, self._last, timed)
        strategy = self._context.strategy(task)
        rounds = Rounds(strategy, self._last)
        while proposals := rounds.ask():
            if rounds.is_last and all(map(self._settled, proposals)) and not self._context.settings.race:
                self._emit_settled(proposals)
                return True, ""  # the turns are used up, and nothing of this round is left to do
            async with self._place(proposals):
                judged = await self._round(proposals, wait)
            if len(judged) < len(proposals):
                return False, ""  # the same command takes up what the provider or the machine failed at
            self._judged |= judged
            results = [self._result(number, proposal) for number, proposal in proposals.items()]
            rounds.tell(results)
            enough = await self._confirming.enough(results, self._judged, wait=wait)
            if enough is None:
                self._elsewhere = True
                return False, ""
            if enough:
                return True, enough
        return True, str(getattr(strategy, "note", ""))

    def _place(self, proposals: dict[int, Proposal]) -> AbstractAsyncContextManager[None]:
        """Waits for this sample's place among all, where questions are divided and one is to be asked."""
        scheduler = self._context.scheduler
        if scheduler is None or all(map(self._settled, proposals)):
            return nullcontext()
        return scheduler.place(self, _gain_of(each for _, each in sorted(self._judged.items())))

    async def _round(self, proposals: dict[int, Proposal], wait: bool) -> dict[int, Judged]:
        """Makes attempts at the same time; returns those that came to a judgement, by turn.

        Those that are done come first: what was found of their programs need not be found again.
        """
        judged: dict[int, Judged] = {}
        self._proposals |= proposals
        done = {turn: proposal for turn, proposal in proposals.items() if self._settled(turn)}

        async def attempt(turn: int, proposal: Proposal) -> None:
            if ended := await self._attempt(turn, proposal, wait):
                judged[turn] = ended

        for together in (done, {turn: each for turn, each in proposals.items() if turn not in done}):
            async with anyio.create_task_group() as group:
                for turn, proposal in together.items():
                    group.start_soon(attempt, turn, proposal)
        return judged

    async def _attempt(self, turn: int, proposal: Proposal, wait: bool) -> Judged | None:
        """One attempt, as far as it is not done; None when it came to no judgement."""
        parent = self._parent(proposal)
        prompt = await in_thread(prompt_of, self._context, self._problem, proposal, self._judged)
        if self._settled(turn) and (kept := await in_thread(self._stored, turn, prompt)):
            return kept
        if self._context.again and not self._chosen(turn):
            return None
        slot = AnswerSlot(self._context.answer_slots)
        try:
            answered = await self._answered(turn, prompt, parent, wait, slot)
            if answered is None or isinstance(answered, Judged):
                return answered
            return await self._judged_or_freed(answered, turn, prompt, parent)
        finally:
            slot.leave()

    async def _judged_or_freed(
        self, answered: Answered, turn: int, prompt: Prompt, parent: Judged | None
    ) -> Judged | None:
        try:
            return await self._judge(answered, turn, prompt, parent)
        except Exception:
            with anyio.CancelScope(shield=True):
                await self._give_back(answered.lease)
            raise

    async def _answered(
        self, turn: int, prompt: Prompt, parent: Judged | None, wait: bool, slot: AnswerSlot
    ) -> Answered | Judged | None:
        """The answer to an attempt that is leased now; its judgement, where another command made that; None
        where there is no answer.

        A place among the questions is taken before the lease, so that other commands may take a question
        that has no place here yet.
        """
        key, client = self._key(turn), self._context.client
        question = question_key(self._context.settings, key, prompt)
        while True:
            state = self._context.known.get(key)
            if not client.is_open and not (state and state.has_response):
                return None
            async with client.questions:
                lease = await in_thread(
                    self._context.store.lease_attempt,
                    *(self._context.run_id, key, prompt, parent.id if parent else None),
                    *(question, self._context.leases.owner, self._proposals[turn].plan),
                )
                if lease.granted:
                    return await self._response(lease, turn, prompt, slot)
            if not wait:
                self._elsewhere = True
                return None
            self._emit(key, Phase.ELSEWHERE, attempt_id=lease.state.id)
            await self._context.leases.freed(lease.key)

    async def _response(
        self, lease: AttemptLease, turn: int, prompt: Prompt, slot: AnswerSlot
    ) -> Answered | Judged | None:
        key = self._key(turn)
        self._context.known[key] = lease.state
        # The process that held the lease before may have done it.
        if self._settled(turn) and (kept := await in_thread(self._stored, turn, prompt)):
            await self._give_back(lease)
            return kept
        self._redone.add(turn)
        if not lease.state.has_response:
            response = await self._context.client.ask(self._problem, key, prompt, lease, slot.enter)
            return None if response is None else Answered(lease, None, response)
        await slot.enter()
        stored = await in_thread(self._context.store.load_attempt, lease.state.id)
        assert stored.response is not None
        self._emit(key, Phase.ANSWERED, attempt_id=stored.id, response=stored.response, reused=True)
        return Answered(lease, stored, stored.response)

    async def _give_back(self, lease: AttemptLease) -> None:
        await in_thread(self._context.store.leases.give_back, self._context.leases.owner, lease.key)

    def _settled(self, turn: int) -> bool:
        """Whether an attempt is done, and running the command again changes nothing."""
        state = self._context.known.get(self._key(turn))
        if state is None or state.status is None or self._chosen(turn):
            return False
        final = state.status is Status.PROVIDER_ERROR and not state.retriable
        return final or state.status not in RETRIED

    def _chosen(self, turn: int) -> bool:
        """Whether an attempt is to be done again because of how it ended."""
        state = self._context.known.get(self._key(turn))
        return state is not None and state.status in self._context.again and turn not in self._redone

    def _parent(self, proposal: Proposal) -> Judged | None:
        """The attempt that a proposal is built on. Raises UsageError for a turn that is not done, and for a
        plan that is not there."""
        for turn in proposal.shown:
            self._judged_at(turn)
        parent = None if proposal.parent is None else self._judged_at(proposal.parent)
        plans = parent.plans if parent else ()
        of_plans = parent is not None and parent.failure.status is Status.PLANS
        if (of_plans or proposal.plan is not None) and not 1 <= (proposal.plan or 0) <= len(plans):
            raise UsageError(
                f"the run's strategy asks for plan {proposal.plan} of turn {proposal.parent}, which holds "
                f"{counted(len(plans), 'plan')}"
            )
        return parent

    def _judged_at(self, turn: int) -> Judged:
        if turn not in self._judged:
            raise UsageError(f"the run's strategy builds on turn {turn}, of which it was not told")
        return self._judged[turn]

    def _result(self, turn: int, proposal: Proposal) -> Result:
        judged = self._judged[turn]
        turns = {each.id: number for number, each in self._judged.items()}
        if (made_from := turns.get(judged.parent_id or 0)) != proposal.parent:
            proposal = Proposal(made_from, plans=proposal.plans, plan=judged.plan)
        times = judged.verification.measurement if judged.verification else None
        return Result(
            proposal,
            turn,
            judged.failure.status,
            judged.verification,
            judged.source,
            interval=times.claimed_interval if times else None,
            roofline=times.roofline.fraction if times and times.roofline else None,
            plans=judged.plans,
        )

    def _key(self, turn: int) -> AttemptKey:
        return AttemptKey(
            problem_id=self._problem.id, problem_sha256=self._problem.sha256, sample=self._sample, turn=turn
        )

    def _stored(self, turn: int, prompt: Prompt) -> Judged | None:
        """A settled attempt as it lies in the store; None when what counts of it was changed since."""
        key = self._key(turn)
        stored = self._context.store.load_attempt(self._context.known[key].id)
        judged = self._judgement(stored, prompt)
        if judged is not None:
            self._emit(
                key,
                Phase.ENDED,
                attempt_id=judged.id,
                status=judged.failure.status,
                verification=judged.verification,
                kept=True,
            )
        return judged

    def _judgement(self, stored: StoredAttempt, prompt: Prompt) -> Judged | None:
        response, extraction = stored.response, stored.extraction
        if response is None or extraction is None:
            return None
        origin = (stored.parent_id, stored.plan)
        if extraction.candidate is None:
            return _without_program(stored.id, prompt, response, extraction, origin)
        verdict = stored.verdict_for(self._settings)
        if verdict is None or verdict.verification.status in RETRIED:
            return None
        verification, source = verdict.verification, extraction.candidate.source
        self._verdicts.keep(source, stored.id, verification)
        again = repeated(source, self._judged.values()) is not None
        failure = Failure.from_verification(verification, repeated=again)
        return Judged(stored.id, prompt, response, failure, verification, source, *origin)

    async def _judge(
        self, answered: Answered, turn: int, prompt: Prompt, parent: Judged | None
    ) -> Judged | None:
        """Takes an answered attempt to its end; None when it came to no judgement."""
        before, proposal = answered.before, self._proposals[turn]
        origin = (before.parent_id, before.plan) if before else (parent.id if parent else None, proposal.plan)
        attempt_id, key, response = answered.lease.state.id, self._key(turn), answered.response
        base = shown_program(proposal, self._judged)
        extraction = await (
            in_thread(extract_plans, response) if proposal.plans else in_thread(extract, response, base)
        )
        await in_thread(self._context.store.record_extraction, attempt_id, extraction)
        if extraction.candidate is None:
            await self._finish(attempt_id, key, extraction.why_none, response, extraction, None)
            return _without_program(attempt_id, prompt, response, extraction, origin)
        source = extraction.candidate.source
        same = await in_thread(repeated, source, self._judged.values())
        async with self._verdicts.alone(source):
            verdict = await self._verification(attempt_id, key, extraction, source, before)
        await self._finish(attempt_id, key, verdict.status, response, extraction, verdict)
        if verdict.status in RETRIED:
            return None
        failure = Failure.from_verification(verdict, repeated=same is not None)
        return Judged(attempt_id, prompt, response, failure, verdict, source, *origin)

    async def _verification(
        self,
        attempt_id: int,
        key: AttemptKey,
        extraction: Extraction,
        source: str,
        before: StoredAttempt | None,
    ) -> Verification:
        """The stored verification of an attempt, else that of the same program, else a new one."""
        stored = before.verdict_for(self._settings) if before else None
        verdict = stored.verification if stored and stored.verification.status not in RETRIED else None
        if verdict is None and (same := self._verdicts.of(source)):
            other_id, verdict = same
            await in_thread(self._context.store.record_verification, attempt_id, verdict, "first", other_id)
        elif verdict is None or verdict.status in self._context.again:
            verdict = await self._verify(attempt_id, key, extraction, again=stored is not None)
        if verdict.status not in RETRIED:
            self._verdicts.keep(source, attempt_id, verdict)
        return verdict

    async def _verify(
        self, attempt_id: int, key: AttemptKey, extraction: Extraction, *, again: bool
    ) -> Verification:
        def on_stage(stage: str) -> None:
            self._emit(key, Phase.JUDGING, note=stage, attempt_id=attempt_id)

        settings = self._settings
        if self._context.settings.race:
            settings = settings.as_screening(bar(self._judged.values()))

        on_stage("queued")
        job = Job(self._problem, extraction, settings, AppendTo(attempt_id, "again" if again else "first"))
        verdict = await self._context.judge.in_place(job, on_stage)
        assert verdict.verification is not None
        return verdict.verification

    async def _finish(
        self,
        attempt_id: int,
        key: AttemptKey,
        status: Status,
        response: Response,
        extraction: Extraction,
        verdict: Verification | None,
    ) -> None:
        """Stores how an attempt ended, and gives its lease back."""
        if self._context.generated is not None:
            await in_thread(
                write_attempt, self._context.generated, attempt_id, key, response, extraction, verdict
            )
        await in_thread(self._context.store.finish_attempt, attempt_id, status, self._context.leases.owner)
        why = cut_hint(response, self._context.settings.sampling) if status is Status.TRUNCATED else ""
        why = why or extraction.reason
        facts: dict[str, object] = {"status": status, "verification": verdict, "note": why}
        self._emit(key, Phase.ENDED, attempt_id=attempt_id, **facts)

    def _emit_settled(self, turns: dict[int, Proposal]) -> None:
        """Says how attempts ended that nothing is left to do of, without reading them."""
        for turn in turns:
            key = self._key(turn)
            state = self._context.known[key]
            self._emit(key, Phase.ENDED, attempt_id=state.id, status=state.status, kept=True)

    def _emit(self, key: AttemptKey, phase: Phase, **facts: object) -> None:
        self._context.on_event(Event(self._context.settings.model, key, phase, **facts))  # type: ignore[arg-type]


def _without_program(
    attempt_id: int,
    prompt: Prompt,
    response: Response,
    extraction: Extraction,
    origin: tuple[int | None, int | None],
) -> Judged:
    """An answer that holds no program, and the plans in it where plans were asked for."""
    plans = read_plans(response) if extraction.status is Status.PLANS else ()
    failure = Failure.from_extraction(extraction)
    return Judged(attempt_id, prompt, response, failure, None, None, *origin, plans=plans)


def _gain_of(judged: Iterable[Judged]) -> float:
    """The expected gain of a sample whose attempts, in the order of their turns, are these."""
    reached, roofline = [0.0], None
    for each in judged:
        if each.times is not None and each.times.claimed > max(reached):
            roofline = each.times.roofline.fraction if each.times.roofline else None
        reached.append(each.times.claimed if each.times is not None else 0.0)
    return expected_gain(reached[1:], roofline)
