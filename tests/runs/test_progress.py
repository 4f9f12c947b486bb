"""The counts of a batch always agree with its events, however these come."""

from __future__ import annotations

import json
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from kernelproof.report.plain import screen
from kernelproof.report.progress import progress_screen, summary_line
from kernelproof.runs.events import Event, Phase, Progress
from kernelproof.types import AttemptKey, Response, Status, Usage
from kernelproof.types.run import BatchProgress

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
