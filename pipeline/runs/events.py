"""What happens to the attempts of a batch, and the counts made of it for the display and `runs status`."""

from __future__ import annotations

import math
import re
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias

from kernelproof.report.plain import clean
from kernelproof.types import AttemptKey, Pace, Response, Status, Verification
from kernelproof.types.run import BatchProgress, FailureCount, FastAttempt, ModelProgress, TokenCounts


class Phase(StrEnum):
    ELSEWHERE = "elsewhere"
    """Another command is at work on the same question; this one waits for what comes of it."""
    ASKING = "asking"
    """The question waits for a free place at the model's server."""
    SENT = "sent"
    ANSWERING = "answering"
    WAITING = "waiting"
    """The server was busy or failed; the question is sent again later. `note` says why."""
    BATCHED = "batched"
    """The question is in a batch: collected, at the server, or answered and not yet read. `batch` and `note`
    say which and how far it is."""
    ANSWERED = "answered"
    JUDGING = "judging"
    """The candidate is with the engine; `note` is the engine's stage: queued, building, timing ..."""
    ENDED = "ended"
    """It ended with `status`."""
    OVER = "over"
    """The sample is over: no attempt of it follows in this command. `note` says why where its strategy, or
    `good_enough`, ended it before the turns were used up."""


@dataclass(frozen=True)
class Event:
    model: str
    key: AttemptKey
    phase: Phase
    note: str = ""
    batch: str = ""
    """BATCHED: the server's name of the batch; empty as long as it is collected."""
    tokens: int = 0
    """ANSWERING: tokens that came so far."""
    attempt_id: int | None = None
    response: Response | None = None
    """ANSWERED: the answer, with usage and cost."""
    reused: bool = False
    """ANSWERED: the answer was stored already; nothing was asked or paid."""
    status: Status | None = None
    """ENDED: how. `note` says why, where an answer was cut off or there was none."""
    verification: Verification | None = None
    """ENDED: the verification, where there was one."""
    confirmed: bool = False
    """ENDED: the verification is the second one, of the best attempt of a sample that raced."""
    kept: bool = False
    """ENDED: it had ended so before this command; nothing was done."""


OnEvent = Callable[[Event], None]
"""Called in the event loop and in threads, one event at a time for each attempt."""


KEPT = 5
_SampleName: TypeAlias = "tuple[str, str, str, int]"


class Fastest:
    """Screenings count as long as their sample is open, and until one of its attempts is verified again."""

    def __init__(self) -> None:
        self._kept: list[FastAttempt] = []
        self._of: dict[str, FastAttempt] = {}
        """The best attempt of each model that is no screening."""
        self._screened: dict[_SampleName, FastAttempt] = {}
        """The best screening of each open sample."""

    def hear(self, event: Event) -> None:
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
        screened = [one for one in self._screened.values() if one.model == model]
        kept = [self._of[model]] if model in self._of else []
        return max([*kept, *screened], key=lambda one: one.claimed, default=None)


def _sample(event: Event) -> _SampleName:
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


LONGEST = 300
MOST = 64


class Reasons:
    """What is said most often, of many texts, in bounded memory. Texts alike but for numbers are one.

    Counts by the algorithm of Misra and Gries: what makes up more than one part in `most` is never lost.
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._seen: dict[str, tuple[int, str, int | None]] = {}

    def add(self, text: str, attempt_id: int | None) -> None:
        """One more."""
        alike = re.sub(r"0x[0-9a-fA-F]+|[0-9a-f]{8,}|\d+", "#", text)
        count = self._seen.get(alike, (0,))[0]
        if not count and len(self._seen) >= self._most:
            self._seen = {
                key: (number - 1, said, newest)
                for key, (number, said, newest) in self._seen.items()
                if number > 1
            }
            return
        self._seen[alike] = (count + 1, text, attempt_id)

    @property
    def most_frequent(self) -> tuple[str, int | None]:
        """Its newest wording and attempt; nothing where none is known."""
        _, text, attempt_id = max(self._seen.values(), key=lambda one: one[0], default=(0, "", None))
        return text, attempt_id


def one_line(text: str) -> str:
    """One line of bounded length that no terminal obeys."""
    return clean(" ".join(text[: 4 * LONGEST].split()))[:LONGEST]


WINDOW_S = 10
"""Tokens a second are counted over so many seconds."""
FAILURES = 3
ENOUGH_SAMPLES = 3
"""Nothing is said of time left and cost at the end before so many samples are done."""

_STAGES = {"queued": "queued", "build": "building", "settling": "timing", "timing": "timing"}
"""Stages of the engine, by what the display calls them; all others are `checking`."""
_HEARD = (Phase.SENT, Phase.ANSWERING)
"""Phases in which the server owes a sign of life."""


@dataclass(slots=True)
class _Attempt:
    place: str | None = None
    """None: it is at no place, because it ended or has not begun."""
    phase: Phase | None = None
    tokens: int = 0
    heard: float = 0.0
    """When the server gave its last sign of life."""
    status: Status | None = None
    batch: str | None = None
    """The batch that its question is in, see `Event.batch`."""


@dataclass(slots=True)
class _SeenBatch:
    questions: int = 0
    note: str = ""


@dataclass(slots=True)
class _Sample:
    turns: dict[int, _Attempt] = field(default_factory=dict)
    worked: bool = False
    """Whether this command asked or judged anything of it."""
    was_asked: bool = False
    """Whether an answer to a question of this command came."""
    usd: float = 0.0


class _Sum:
    def __init__(self) -> None:
        self.value: Any = None

    def add(self, number: float | None) -> None:
        if number is not None and math.isfinite(number):
            self.value = number + (self.value or 0)


class _Model:
    def __init__(self, name: str) -> None:
        self.name = name
        self.samples = self.over = self.answered = self.reused = self.kept = 0
        self.open: dict[tuple[str, str, int], _Sample] = {}
        self.places: Counter[str] = Counter()
        self.statuses: Counter[Status] = Counter()
        self.waiting_for = ""
        self.batches: dict[str, _SeenBatch] = {}
        """By name; the one that is collected has none."""
        self.prompt, self.cached, self.completion, self.reasoning = _Sum(), _Sum(), _Sum(), _Sum()
        self.usd = _Sum()
        self.unpriced = self.uncounted = 0
        self.began: float | None = None
        """When this command first worked on a sample of it."""
        self.worked_over = self.asked_over = 0
        self.usd_over = 0.0
        self.came: deque[list[float]] = deque()
        """Second and the tokens that came in it."""


class Progress:
    """Counts events. Thread-safe. Reads no clock but the one it is given, in seconds, never set back."""

    def __init__(
        self, plan: Iterable[tuple[str, int, int]], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`plan`: name, samples of all problems, and most turns, of each model."""
        self._clock = clock
        self._began = clock()
        self._lock = threading.Lock()
        self._models: dict[str, _Model] = {}
        self._fastest = Fastest()
        self._reasons: dict[Status, Reasons] = {}
        for name, samples, _ in plan:
            self._model(name).samples += samples

    def on_event(self, event: Event) -> None:
        """Something happened to an attempt."""
        now = self._clock()
        with self._lock:
            model = self._models.get(event.model) or self._model(event.model)
            key = event.key
            name = (key.problem_id, key.problem_sha256, key.sample)
            if event.phase is Phase.OVER:
                self._fastest.over(event)
                _close(model, model.open.pop(name, None))
                return
            sample = model.open.get(name)
            if sample is None:
                sample = model.open[name] = _Sample()
            attempt = sample.turns.get(key.turn)
            if attempt is None:
                attempt = sample.turns[key.turn] = _Attempt()
            if event.phase is Phase.ANSWERING:
                self._stream(model, attempt, event.tokens, now)
            elif event.phase is Phase.ENDED:
                self._end(model, sample, attempt, event)
            elif event.phase is Phase.ANSWERED:
                _answer(model, sample, event)
            elif event.phase is Phase.WAITING:
                model.waiting_for = one_line(event.note)
            self._move(model, sample, attempt, event, now)

    def snapshot(self, busy_share: float | None = None) -> BatchProgress:
        """How far it is now. `busy_share`: part of their time in which referees judged."""
        now = self._clock()
        with self._lock:
            models = tuple(_seen(model, now, self._fastest.of(model.name)) for model in self._models.values())
            failures = [
                FailureCount(status=status, count=count, reason=said, attempt_id=attempt_id)
                for status, count in self._failed().most_common(FAILURES)
                for said, attempt_id in [self._reasons.setdefault(status, Reasons()).most_frequent]
            ]
            fastest = self._fastest.best()
        unfinished = [model.left_s for model in models if model.over < model.samples]
        known = [left for left in unfinished if left is not None]
        return BatchProgress(
            elapsed_s=now - self._began,
            models=models,
            fastest=fastest,
            failures=tuple(failures),
            busy_share=busy_share,
            left_s=max(known, default=0.0) if len(known) == len(unfinished) else None,
        )

    def _model(self, name: str) -> _Model:
        if name not in self._models:
            self._models[name] = _Model(name)
        return self._models[name]

    def _failed(self) -> Counter[Status]:
        total: Counter[Status] = Counter()
        for model in self._models.values():
            total.update(model.statuses)
        del total[Status.CORRECT]
        return +total

    def _move(self, model: _Model, sample: _Sample, attempt: _Attempt, event: Event, now: float) -> None:
        if event.phase in _HEARD:
            attempt.heard = now
        attempt.phase = event.phase
        if not event.kept and event.phase is not Phase.ELSEWHERE:
            sample.worked = True
            if model.began is None:
                model.began = now
        _into_batch(model, attempt, event)
        place = _place(event)
        if place != attempt.place:
            _leave(model, attempt)
            attempt.place = place
            if place is not None:
                model.places[place] += 1

    def _stream(self, model: _Model, attempt: _Attempt, tokens: int, now: float) -> None:
        """Tokens came; a question that was sent again starts anew."""
        more = tokens - attempt.tokens if tokens >= attempt.tokens else tokens
        attempt.tokens = tokens
        second = math.floor(now)
        if model.came and model.came[-1][0] == second:
            model.came[-1][1] += more
        else:
            model.came.append([second, more])
            while model.came[0][0] < second - WINDOW_S:
                model.came.popleft()

    def _end(self, model: _Model, sample: _Sample, attempt: _Attempt, event: Event) -> None:
        """The attempt ended; where that is told twice, the last word counts."""
        if event.status is None:
            return
        if attempt.status is not None:
            model.statuses[attempt.status] -= 1
        else:
            model.kept += event.kept
        attempt.status = event.status
        model.statuses[event.status] += 1
        if event.status is not Status.CORRECT:
            said = event.verification.reason if event.verification is not None else event.note
            if said:
                reasons = self._reasons.setdefault(event.status, Reasons())
                reasons.add(one_line(said), event.attempt_id)
        else:
            self._fastest.hear(event)


def _place(event: Event) -> str | None:
    """Where an event puts its attempt; None: it is done."""
    if event.phase is Phase.ENDED:
        return None
    if event.phase is Phase.JUDGING:
        return _STAGES.get(event.note, "checking")
    return "queued" if event.phase is Phase.ANSWERED else event.phase.value


def _leave(model: _Model, attempt: _Attempt) -> None:
    if attempt.place is not None:
        model.places[attempt.place] -= 1


def _into_batch(model: _Model, attempt: _Attempt, event: Event) -> None:
    """Counts the attempt in the batch that it is in now, and in no other one."""
    batch = event.batch if event.phase is Phase.BATCHED else None
    if batch != attempt.batch:
        _out_of_batch(model, attempt)
        attempt.batch = batch
        if batch is not None:
            model.batches.setdefault(batch, _SeenBatch()).questions += 1
    if batch is not None and event.note:
        model.batches[batch].note = one_line(event.note)


def _out_of_batch(model: _Model, attempt: _Attempt) -> None:
    if attempt.batch is None:
        return
    seen = model.batches[attempt.batch]
    seen.questions -= 1
    if not seen.questions:
        del model.batches[attempt.batch]
    attempt.batch = None


def _answer(model: _Model, sample: _Sample, event: Event) -> None:
    if event.reused or event.response is None:
        model.reused += event.reused
        return
    response, usage = event.response, event.response.usage
    model.answered += 1
    sample.was_asked = True
    if usage is None or usage.completion_tokens is None:
        model.uncounted += 1
    if usage is not None:
        model.prompt.add(usage.prompt_tokens)
        model.cached.add(usage.cached_tokens)
        model.completion.add(usage.completion_tokens)
        model.reasoning.add(usage.reasoning_tokens)
    if response.cost_usd is None:
        model.unpriced += 1
    else:
        model.usd.add(response.cost_usd)
        sample.usd += response.cost_usd


def _close(model: _Model, sample: _Sample | None) -> None:
    model.over += 1
    if sample is None:
        return
    for attempt in sample.turns.values():
        _leave(model, attempt)
        _out_of_batch(model, attempt)
    model.worked_over += sample.worked
    if sample.was_asked:
        model.asked_over += 1
        model.usd_over += sample.usd


def _seen(model: _Model, now: float, fastest: FastAttempt | None) -> ModelProgress:
    heard = [
        attempt
        for sample in model.open.values()
        for attempt in sample.turns.values()
        if attempt.phase in _HEARD
    ]
    answering = [attempt for attempt in heard if attempt.phase is Phase.ANSWERING]
    return ModelProgress(
        model=model.name,
        samples=model.samples,
        over=model.over,
        answered=model.answered,
        reused=model.reused,
        kept=model.kept,
        places={place: number for place, number in sorted(model.places.items()) if number},
        tokens_per_s=_rate(model, now) if answering else None,
        streamed=sum(attempt.tokens for attempt in answering),
        silence_s=max((max(0.0, now - attempt.heard) for attempt in heard), default=None),
        waiting_for=model.waiting_for if model.places[Phase.WAITING.value] else "",
        batches=tuple(seen.note for seen in model.batches.values() if seen.note),
        statuses={status: number for status, number in model.statuses.most_common() if number},
        fastest=fastest.speedup if fastest is not None else None,
        tokens=TokenCounts(
            prompt=model.prompt.value,
            cached=model.cached.value,
            completion=model.completion.value,
            reasoning=model.reasoning.value,
            unknown=model.uncounted,
        ),
        cost_usd=model.usd.value,
        unpriced=model.unpriced,
        projected_usd=_projected(model),
        left_s=_left(model, now),
    )


def _rate(model: _Model, now: float) -> float:
    """Tokens a second over the window, or over less where the first ones came later than its beginning."""
    came = [(second, tokens) for second, tokens in model.came if second >= now - WINDOW_S - 1]
    if not came:
        return 0.0
    return sum(tokens for _, tokens in came) / min(WINDOW_S + 1.0, max(1.0, now - came[0][0]))


def _projected(model: _Model) -> float | None:
    """The mean cost of the samples that are over, for those that are left, too."""
    if model.unpriced or not model.answered:
        return None
    left = max(0, model.samples - model.over)
    if not left:
        return float(model.usd.value)
    if model.asked_over < ENOUGH_SAMPLES:
        return None
    return float(max(model.usd.value, model.usd_over * (1 + left / model.asked_over)))


def _left(model: _Model, now: float) -> float | None:
    """Samples at work count as half done."""
    left = max(0, model.samples - model.over)
    if not left:
        return 0.0
    if model.began is None or model.worked_over < ENOUGH_SAMPLES:
        return None
    half = min(left, sum(sample.worked for sample in model.open.values())) / 2
    return (now - model.began) * (left - half) / (model.worked_over + half)
