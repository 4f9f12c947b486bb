"""The counts of a batch agree with its events however they come; rates, silence, time and cost at the end."""

from __future__ import annotations

import json
import tracemalloc
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.display import IN_FLIGHT, MODEL, events
from kernelproof.report.plain import screen
from kernelproof.report.progress import progress_screen, summary_line
from kernelproof.runs.events import MOST, WINDOW_S, Event, Phase, Progress, Reasons
from kernelproof.types import AttemptKey, Response, Status, Usage
from kernelproof.types.run import BatchProgress, ModelProgress

MODELS = ("openai:a", "openai:\x1b[2Jb\u202e" + "x" * 200)


def key(sample: int, turn: int = 1) -> AttemptKey:
    return AttemptKey(problem_id="level1/1", problem_sha256="0" * 64, sample=sample, turn=turn)


def one_way(model: str, sample: int, status: Status, *, priced: bool, again: bool) -> list[Event]:
    """All that happens to an attempt, from the question to its end."""
    usage = Usage(prompt_tokens=10, completion_tokens=20)
    answer = Response(text="x", usage=usage, cost_usd=0.5 if priced else None)
    events = [Event(model, key(sample), Phase.ASKING), Event(model, key(sample), Phase.SENT)]
    if again:
        events += [Event(model, key(sample), Phase.WAITING, note="busy"), *events]
    events.append(Event(model, key(sample), Phase.ANSWERING, tokens=7))
    if status is Status.PROVIDER_ERROR:
        ended = Event(model, key(sample), Phase.ENDED, status=status, note="HTTP 500")
        return [*events, ended, Event(model, key(sample), Phase.OVER)]
    events.append(Event(model, key(sample), Phase.ANSWERED, response=answer))
    events.append(Event(model, key(sample), Phase.JUDGING, note="build"))
    events.append(Event(model, key(sample), Phase.ENDED, status=status))
    return [*events, Event(model, key(sample), Phase.OVER)]


WAYS = st.lists(
    st.tuples(
        st.sampled_from(MODELS),
        st.sampled_from([Status.CORRECT, Status.NO_CODE, Status.PROVIDER_ERROR, Status.TIMEOUT]),
        st.booleans(),
        st.booleans(),
    ),
    max_size=30,
)


@given(ways=WAYS, data=st.data())
def test_the_counts_are_those_of_the_events(
    ways: list[tuple[str, Status, bool, bool]], data: st.DataObject
) -> None:
    progress = Progress([(model, 30, 1) for model in MODELS], clock=lambda: 5.0)
    queues = [
        one_way(model, number, status, priced=priced, again=again)
        for number, (model, status, priced, again) in enumerate(ways)
    ]
    while any(queues):
        chosen = data.draw(st.sampled_from([queue for queue in queues if queue]))
        progress.on_event(chosen.pop(0))
        whole = progress.snapshot().whole
        assert sum(whole.places.values()) <= len(ways)
        assert whole.over <= whole.ended <= len(ways)
    found = progress.snapshot()
    for model in found.models:
        own = [way for way in ways if way[0] == model.model]
        answered = [way for way in own if way[1] is not Status.PROVIDER_ERROR]
        assert model.places == {} and model.over == len(own)
        assert model.statuses == dict(Counter(way[1] for way in own))
        assert model.answered == len(answered)
        assert model.tokens.completion == (20 * len(answered) or None)
        paid = [way for way in answered if way[2]]
        assert model.cost_usd == (0.5 * len(paid) or None), "unknown is never zero"
        assert model.unpriced == len(answered) - len(paid)
    assert BatchProgress.model_validate(json.loads(json.dumps(found.as_json()))) == found


def test_nothing_of_a_hostile_name_reaches_the_screen(capsys: object) -> None:
    progress = Progress([(MODELS[1], 1, 1)])
    for event in one_way(MODELS[1], 0, Status.PROVIDER_ERROR, priced=False, again=True):
        progress.on_event(event)
    for width in (80, 140):
        console = screen()
        console.width = width
        with console.capture() as captured:
            console.print(progress_screen(progress.snapshot(), console))
        shown = captured.get()
        assert "\x1b[2J" not in shown and "\u202e" not in shown
        assert max(map(len, shown.splitlines())) <= width
    assert "\x1b" not in summary_line(progress.snapshot())


class Told:
    """A progress of one model, its clock, and short words for events."""

    def __init__(self, samples: int = 10) -> None:
        self.now = 100.0
        self.progress = Progress([("m", samples, 3)], clock=lambda: self.now)

    def tell(self, sample: int, phase: Phase, turn: int = 1, **facts: object) -> None:
        key = AttemptKey(problem_id="level1/1", problem_sha256="0" * 64, sample=sample, turn=turn)
        self.progress.on_event(Event("m", key, phase, **facts))  # type: ignore[arg-type]

    def answered(self, sample: int, cost: float | None) -> None:
        self.tell(sample, Phase.SENT)
        answer = Response(text="x", usage=Usage(completion_tokens=5), cost_usd=cost)
        self.tell(sample, Phase.ANSWERED, response=answer)

    def done(self, sample: int, cost: float | None = None) -> None:
        self.answered(sample, cost)
        self.tell(sample, Phase.ENDED, status=Status.NO_CODE)
        self.tell(sample, Phase.OVER)

    @property
    def model(self) -> ModelProgress:
        return self.progress.snapshot().models[0]


def test_a_batch_is_no_silence_and_says_how_far_it_is() -> None:
    told = Told()
    for sample in range(3):
        told.tell(sample, Phase.BATCHED, note="collected")
    assert told.model.batches == ("collected",) and told.model.places == {"batched": 3}
    for sample in range(2):
        told.tell(sample, Phase.BATCHED, note="b1: sent", batch="b1")
    told.tell(2, Phase.BATCHED, note="b2: sent", batch="b2")
    assert told.model.batches == ("b1: sent", "b2: sent")
    told.now += 7200
    told.tell(0, Phase.BATCHED, note="b1: 3 of 4", batch="b1")
    assert told.model.silence_s is None
    text = summary_line(told.progress.snapshot())
    assert "3 at the server; batch: b1: 3 of 4; batch: b2: sent" in text and "no sign" not in text
    told.tell(0, Phase.ENDED, status=Status.PROVIDER_ERROR, note="HTTP 500")
    assert told.model.batches == ("b1: 3 of 4", "b2: sent"), "another question is in b1"
    told.done(1)
    told.tell(2, Phase.SENT)
    assert told.model.batches == () and told.model.places == {"sent": 1}


def test_tokens_a_second_and_silence() -> None:
    told = Told()
    for sample in range(2):
        told.tell(sample, Phase.SENT)
    assert told.model.tokens_per_s is None
    for second in range(1, 21):
        told.now = 100.0 + second
        told.tell(0, Phase.ANSWERING, tokens=50 * second)
    assert told.model.tokens_per_s == pytest.approx(50, rel=0.15)
    assert told.model.streamed == 1000
    assert told.model.silence_s == 20, "the other question had no sign of life since it was sent"
    told.tell(1, Phase.ENDED, status=Status.PROVIDER_ERROR, note="HTTP 500")
    told.now += WINDOW_S + 2
    assert told.model.tokens_per_s == 0 and told.model.silence_s == WINDOW_S + 2
    told.tell(0, Phase.ENDED, status=Status.NO_CODE)
    assert told.model.tokens_per_s is None and told.model.silence_s is None


def test_a_question_that_is_sent_again_counts_its_tokens_anew() -> None:
    told = Told()
    told.tell(0, Phase.SENT)
    told.tell(0, Phase.ANSWERING, tokens=400)
    told.tell(0, Phase.WAITING, note="the connection broke")
    assert told.model.places == {"waiting": 1} and told.model.waiting_for == "the connection broke"
    told.tell(0, Phase.SENT)
    told.tell(0, Phase.ANSWERING, tokens=30)
    assert told.model.streamed == 30 and told.model.waiting_for == ""
    assert told.model.tokens_per_s == 430


def test_nothing_is_said_of_the_end_before_something_is_known() -> None:
    told = Told(samples=10)
    told.now += 10
    told.done(0, cost=2.0)
    told.done(1, cost=4.0)
    assert told.model.left_s is None and told.model.projected_usd is None
    told.now += 20
    told.done(2, cost=3.0)
    assert told.model.projected_usd == pytest.approx(30.0)
    assert told.model.left_s == pytest.approx(20 / 3 * 7)  # work began ten seconds after the command
    told.answered(3, cost=None)
    assert told.model.projected_usd is None, "an answer without a price makes the whole unknown"
    assert told.model.cost_usd == 9.0 and told.model.unpriced == 1


def test_what_had_ended_before_tells_nothing_of_the_time_left() -> None:
    told = Told(samples=10)
    for sample in range(5):
        told.tell(sample, Phase.ENDED, status=Status.CORRECT, kept=True)
        told.tell(sample, Phase.OVER)
    assert told.model.over == 5 and told.model.kept == 5 and told.model.left_s is None
    assert told.model.answered == 0 and told.model.cost_usd is None


def test_an_attempt_that_is_told_of_twice_counts_once() -> None:
    told = Told()
    for _ in range(2):  # a sample that waited for another command's turn 2 goes its way again
        told.tell(0, Phase.ENDED, status=Status.WRONG_OUTPUT, kept=True)
        told.tell(0, Phase.ELSEWHERE, turn=2)
    assert told.model.statuses == {Status.WRONG_OUTPUT: 1} and told.model.kept == 1
    assert told.model.places == {"elsewhere": 1}
    told.tell(0, Phase.ENDED, turn=2, status=Status.CORRECT)
    told.tell(0, Phase.ENDED, turn=1, status=Status.CORRECT)
    told.tell(0, Phase.OVER, turn=3)
    assert told.model.statuses == {Status.CORRECT: 2} and told.model.places == {} and told.model.over == 1


def test_a_sample_that_is_over_is_at_no_place() -> None:
    told = Told()
    for turn in (1, 2):
        told.tell(0, Phase.ASKING, turn=turn)
    told.tell(0, Phase.OVER)  # a limit was reached: nothing was asked
    assert told.model.places == {} and told.model.ended == 0 and told.model.over == 1


def test_reused_answers_cost_nothing() -> None:
    told = Told()
    told.tell(0, Phase.ANSWERED, response=Response(text="x", cost_usd=5.0), reused=True)
    assert told.model.reused == 1 and told.model.answered == 0 and told.model.cost_usd is None


def test_the_reason_said_most_often_survives_any_number_of_others() -> None:
    reasons = Reasons()
    for number in range(20 * MOST):
        reasons.add(f"only once: {chr(0x4E00 + number)}", number)
        if number % 8 == 0:
            reasons.add(f"HTTP 503 after {number} s", number)
    text, attempt_id = reasons.most_frequent
    assert text.startswith("HTTP 503 after ") and attempt_id == 20 * MOST - 8
    assert Reasons().most_frequent == ("", None)


@pytest.mark.ci
def test_memory_depends_on_what_is_in_flight_alone() -> None:
    """100,000 events leave no more than 10,000 do; benchmarks/display.py says how long they take."""
    kept = []
    for number in (4 * IN_FLIGHT, 100_000):
        progress = Progress([(MODEL, number, 1)])
        tracemalloc.start()
        for event in events(number):
            progress.on_event(event)
        kept.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()
        assert progress.snapshot().whole.places == {}
    assert kept[1] < kept[0] + 500_000
