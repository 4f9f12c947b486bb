"""What a batch's figures say: rates, silence, time left, cost at the end, and attempts told of twice."""

from __future__ import annotations

import tracemalloc

import pytest

from benchmarks.display import IN_FLIGHT, MODEL, events
from kernelproof.report.progress import summary_line
from kernelproof.runs.events import MOST, WINDOW_S, Event, Phase, Progress, Reasons
from kernelproof.types import AttemptKey, Response, Status, Usage
from kernelproof.types.run import ModelProgress


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
