"""The batch endpoint: each question gets its own answer or error, and none is handed over twice."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import TaskGroup

from kernelproof.db.store import open_store
from kernelproof.errors import ProviderError, ProviderFatal, UsageError
from kernelproof.providers import (
    AskEvent,
    BatchJournal,
    KeepsBatches,
    ProviderOptions,
    Question,
    open_provider,
)
from kernelproof.types import Response
from tests.batchserver import BatchServer, serve
from tests.providers.questions import question

Outcome = Response | ProviderError | ProviderFatal


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernelproof.providers.server_batches.WINDOW_S", 0.2)
    monkeypatch.setattr("kernelproof.providers.server_batches.FIRST_POLL_S", 0.05)


def asked(number: int, tell: Any = lambda _: None) -> Question:
    told = question(sample=number)
    return Question(told.problem_id, "cpp", number, 1, told.prompt, f"{number:064x}", tell)


def ask(
    server: BatchServer,
    numbers: Sequence[int],
    *,
    model: str = "good",
    journal: BatchJournal | None = None,
    give_up_at: str | None = None,
    tell: Any = lambda _: None,
    **options: Any,
) -> dict[int, Outcome]:
    """The results of so many questions at once. All are given up when a note about one holds `give_up_at`."""
    outcomes: dict[int, Outcome] = {}

    async def one(provider: Any, number: int, group: TaskGroup) -> None:
        def heard(event: AskEvent) -> None:
            tell(event)
            if give_up_at is not None and give_up_at in event.note:
                group.cancel_scope.cancel()

        try:
            outcomes[number] = await provider.ask(asked(number, heard))
        except (ProviderError, ProviderFatal) as error:
            outcomes[number] = error

    async def run() -> None:
        chosen = {"base_url": server.url, "max_retries": 1, "server_batch": True, **options}
        provider = open_provider(f"openai:{model}", ProviderOptions(**chosen))
        if journal is not None:
            assert isinstance(provider, KeepsBatches)
            provider.keep_batches(journal)
        async with anyio.create_task_group() as group:
            for number in numbers:
                group.start_soon(one, provider, number, group)
        await provider.aclose()

    anyio.run(run)
    return outcomes


def answers_in_order(found: dict[int, Outcome]) -> list[Response]:
    return [answer for _, answer in sorted(found.items()) if isinstance(answer, Response)]


@pytest.mark.parametrize("endpoint", ["chat", "responses"])
def test_questions_are_one_batch_and_each_gets_its_answer(endpoint: str) -> None:
    events: list[AskEvent] = []
    with serve(seconds=0.3) as server:
        found = ask(
            server, range(50), endpoint=endpoint, sampling={"max_completion_tokens": 99}, tell=events.append
        )
        assert len(server.batches) == 1 and set(server.asked.values()) == {1} and len(server.asked) == 50
        assert all("stream" not in body for body in server.bodies)
        limit = "max_completion_tokens" if endpoint == "chat" else "max_output_tokens"
        assert {body[limit] for body in server.bodies} == {99}
    answers = [answer for answer in found.values() if isinstance(answer, Response)]
    assert len(answers) == 50
    # The request ids count the questions; the answers came in another order, and were matched.
    assert {number: answer.request_id for number, answer in enumerate(answers_in_order(found))} == {
        number: f"req_{number}" for number in range(50)
    }
    usages = {(a.usage.prompt_tokens, a.usage.completion_tokens) for a in answers if a.usage}
    assert {answer.text for answer in answers} == {"no code today"} and usages == {(100, 50)}
    assert {event.kind for event in events} == {"batched", "arrived"}
    time = r"(\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d"
    expected = (
        rf"questions are collected, handed over by {time} UTC",
        rf"50 questions, since {time} UTC: batch_0",
        rf"0 of 50 answered, since {time}, next look {time} UTC, in_progress: batch_0",
        r"answers are here, read as they can be judged, completed: batch_0",
    )
    said = list(dict.fromkeys(event.note for event in events if event.batch or event.kind == "batched"))
    assert all(any(re.fullmatch(each, note) for note in said) for each in expected), said
    assert all(any(re.fullmatch(each, note) for each in expected) for note in said), said
    assert {event.batch for event in events} == {"", "batch_0"}


def test_a_batch_holds_no_more_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernelproof.providers.server_batches.MAX_QUESTIONS", 20)
    with serve() as server:
        found = ask(server, range(50))
        assert sorted(len(batch["lines"]) for batch in server.batches.values()) == [10, 20, 20]
    assert all(isinstance(answer, Response) for answer in found.values())
    monkeypatch.setattr("kernelproof.providers.server_batches.MAX_BYTES", 2000)
    with serve() as server:
        ask(server, range(50))
        sizes = [len(data) for name, data in server.files.items() if b'"method"' in data]
        assert len(sizes) > 5 and max(sizes) < 2500


def test_each_error_is_that_of_its_question() -> None:
    with serve() as server:
        found = ask(server, range(30), model="some-fail")
    for number in range(30):
        outcome = found[number]
        if number % 3 == 0:
            assert isinstance(outcome, Response)
        else:
            assert isinstance(outcome, ProviderError)
            said, retriable = (("it broke (HTTP 500)", True), ("not to my taste (HTTP 400)", False))[
                number % 3 - 1
            ]
            assert said in str(outcome) and outcome.retriable is retriable


def test_a_prompt_that_cannot_fit_is_in_no_batch() -> None:
    with serve() as server:
        (error,) = ask(server, [0], context_length=2).values()
        assert isinstance(error, ProviderError) and "context of 2 tokens" in str(error)
        assert server.requests == []


@pytest.mark.parametrize(
    ("model", "answers", "says"),
    [
        ("expires", 5, "before the completion window expired"),
        ("too-much", 0, "failed: Enqueued token limit reached"),
    ],
)
def test_what_a_batch_leaves_unanswered_may_be_asked_again(
    tmp_path: Path, model: str, answers: int, says: str
) -> None:
    with serve() as server, open_store(tmp_path / "db.sqlite") as store:
        found = ask(server, range(10), model=model, journal=store.server_batches)
        errors = [error for error in found.values() if isinstance(error, ProviderError)]
        assert len(errors) == 10 - answers and all(error.retriable for error in errors)
        assert all(says in str(error) for error in errors)
        left = store.server_batches.open_batches(f"openai:{model}", server.url)
        assert sum(len(batch.keys) for batch in left) == answers  # they are not stored yet
        again = [number for number, outcome in found.items() if isinstance(outcome, ProviderError)]
        ask(server, again, model=model, journal=store.server_batches)
        assert len(server.batches) == 2 and len(server.batches["batch_1"]["lines"]) == 10 - answers


def test_another_process_waits_for_the_batch_of_one_that_is_gone(tmp_path: Path) -> None:
    with serve(seconds=1.5) as server, open_store(tmp_path / "db.sqlite") as store:
        assert ask(server, range(10), journal=store.server_batches, give_up_at="in_progress") == {}
        assert len(server.batches) == 1
        found = ask(server, range(12), journal=store.server_batches)
        assert len(found) == 12 and all(isinstance(answer, Response) for answer in found.values())
        assert [len(batch["lines"]) for batch in server.batches.values()] == [10, 2]
        assert set(server.asked.values()) == {1}


def test_a_batch_whose_making_was_not_heard_of_is_found(tmp_path: Path) -> None:
    with serve(loses=["POST /v1/batches"]) as server, open_store(tmp_path / "db.sqlite") as store:
        ask(server, range(3), model="before")  # another batch, which is none of ours
        server.loses.append("POST /v1/batches")
        found = ask(server, range(5), journal=store.server_batches)
        assert len(found) == 5 and all(isinstance(answer, Response) for answer in found.values())
        assert len(server.batches) == 2
        # The same, and the process ends before it can look.
        server.loses.append("POST /v1/batches")
        found = ask(server, range(10, 15), journal=store.server_batches, max_retries=0)
        assert all(isinstance(error, ProviderError) and error.retriable for error in found.values())
        assert len(server.batches) == 3
        found = ask(server, range(10, 15), journal=store.server_batches)
        assert len(found) == 5 and all(isinstance(answer, Response) for answer in found.values())
        assert len(server.batches) == 3 and {server.asked[f"{n:064x}"] for n in range(10, 15)} == {1}


def test_a_batch_that_was_never_made_or_is_gone_is_made_anew(tmp_path: Path) -> None:
    with serve() as server, open_store(tmp_path / "db.sqlite") as store:
        journal = store.server_batches
        keys = [f"{n:064x}" for n in range(3)]
        journal.submitted("openai:good", server.url, "?never-made", keys[:2])
        journal.submitted("openai:good", server.url, "batch_gone", keys[2:])
        journal.submitted("openai:other", server.url, "batch_other", keys)
        journal.submitted("openai:good", None, "batch_elsewhere", keys)
        found = ask(server, range(3), journal=journal)
        assert all(isinstance(answer, Response) for answer in found.values())
        assert set(server.asked.values()) == {1} and len(server.asked) == 3
        assert len(journal.open_batches("openai:other", server.url)) == 1


def test_a_server_that_is_down_for_a_while_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernelproof.providers.server.backoff", lambda _: 0.05)
    with serve(seconds=0.5) as server:

        def down(event: AskEvent) -> None:
            if "in_progress" in event.note and not server.down:
                server.down = True
                threading.Timer(1.0, setattr, (server, "down", False)).start()
            said.append(event.note)

        said: list[str] = []
        found = ask(server, range(3), tell=down)
        assert all(isinstance(answer, Response) for answer in found.values())
        assert server.requests.count("GET /v1/batches/batch_0") > 5 and len(server.batches) == 1
    assert any(
        re.search("no look at the server, since .*, next look .* UTC, .*down .HTTP 503.: batch_0", note)
        for note in said
    ), said


def test_a_question_that_is_given_up_before_the_batch_is_not_handed_over() -> None:
    with serve() as server:

        async def run() -> None:
            options = ProviderOptions(base_url=server.url, server_batch=True)
            provider = open_provider("openai:good", options)
            async with anyio.create_task_group() as group:
                group.start_soon(provider.ask, asked(1))
                with anyio.move_on_after(0.1):
                    await provider.ask(asked(0))
            await provider.aclose()

        anyio.run(run)
        assert list(server.asked) == [f"{1:064x}"]


def ask_one_after_the_other(
    server: BatchServer, numbers: Sequence[int], pause_s: float, more_to_come: Callable[[int], bool]
) -> None:
    """So many seconds lie between a question and the next; each asks `more_to_come` with the number of those
    that were asked."""
    begun = 0

    def coming() -> bool:
        return more_to_come(begun)

    async def run() -> None:
        nonlocal begun
        provider = open_provider("openai:good", ProviderOptions(base_url=server.url, server_batch=True))
        async with anyio.create_task_group() as group:
            for number in numbers:
                told = replace(asked(number), more_to_come=coming)
                group.start_soon(provider.ask, told)
                begun += 1
                await anyio.sleep(pause_s)
        await provider.aclose()

    anyio.run(run)


def test_questions_that_follow_while_answers_are_judged_are_one_batch() -> None:
    with serve() as server:
        ask_one_after_the_other(server, range(4), 0.3, lambda asked: asked < 4)
        assert [len(batch["lines"]) for batch in server.batches.values()] == [4]
    with serve() as server:
        ask_one_after_the_other(server, range(4), 0.5, lambda _: False)
        assert len(server.batches) > 1


def test_a_batch_is_handed_over_in_the_end_though_more_may_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernelproof.providers.server_batches.LONGEST_S", 0.6)
    with serve() as server:
        ask_one_after_the_other(server, range(8), 0.2, lambda _: True)
        sizes = [len(batch["lines"]) for batch in server.batches.values()]
        assert sum(sizes) == 8 and len(sizes) > 1


def test_answers_are_read_only_as_fast_as_they_are_taken() -> None:
    inside = most = 0
    with serve() as server:

        async def run() -> None:
            limiter = anyio.CapacityLimiter(3)
            provider = open_provider("openai:good", ProviderOptions(base_url=server.url, server_batch=True))

            async def one(number: int) -> None:
                nonlocal inside, most
                told, token = asked(number), object()

                async def room() -> None:
                    nonlocal inside, most
                    await limiter.acquire_on_behalf_of(token)
                    inside += 1
                    most = max(most, inside)

                await provider.ask(
                    Question(told.problem_id, "cpp", number, 1, told.prompt, told.key, told.tell, room)
                )
                await anyio.sleep(0.01)
                inside -= 1
                limiter.release_on_behalf_of(token)

            async with anyio.create_task_group() as group:
                for number in range(20):
                    group.start_soon(one, number)
            await provider.aclose()

        anyio.run(run)
    assert most == 3


def test_what_has_no_batch_endpoint_says_so() -> None:
    with pytest.raises(UsageError, match="no batch endpoint; leave out --batch"):
        open_provider("replay:demo", ProviderOptions(server_batch=True))
    with serve() as server:
        server.url = server.url.removesuffix("/v1")
        (outcome,) = ask(server, [0]).values()
        assert isinstance(outcome, ProviderFatal) and "leave out --batch" in str(outcome)
