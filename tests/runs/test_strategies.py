"""Strategies by themselves: what they propose, how they are found, and which run they belong to."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from kernelproof.db.store import open_store
from kernelproof.errors import UsageError
from kernelproof.runs.strategies import Proposal, Result, Rounds, Strategy, Task, find_strategy, strategy
from kernelproof.types import RunSettings, Status, VerifySettings
from tests.db import samples

TASK = Task(samples.problem(), "cpp", sample=0, turns=3)
FIRST = (Proposal(),)


def made(name: str) -> Strategy:
    return find_strategy(name)(TASK)


def told(searching: Strategy, status: Status, turn: int) -> None:
    searching.tell([Result(Proposal(), turn, status, None)])


def test_sample_asks_once() -> None:
    searching = made("sample")
    assert searching.ask() == FIRST
    told(searching, Status.NO_CODE, 1)
    assert searching.ask() == ()


def test_repair_builds_on_the_last_attempt_until_one_is_correct() -> None:
    searching = made("repair")
    assert searching.ask() == FIRST
    told(searching, Status.BUILD_ERROR, 1)
    assert searching.ask() == (Proposal(parent=1),)
    told(searching, Status.WRONG_OUTPUT, 2)
    assert searching.ask() == (Proposal(parent=2),)
    told(searching, Status.CORRECT, 3)
    assert searching.ask() == ()


class TwoThenThree:
    """Two proposals, then three on the last that was told of, for ever."""

    def __init__(self) -> None:
        self.told: list[list[int]] = []

    def ask(self) -> Sequence[Proposal]:
        return FIRST * 2 if not self.told else (Proposal(parent=self.told[-1][-1]),) * 3

    def tell(self, results: Sequence[Result]) -> None:
        self.told.append([result.turn for result in results])


def test_rounds_number_the_turns_and_end_with_the_last() -> None:
    searching = TwoThenThree()
    rounds = Rounds(searching, turns=6)
    seen = []
    while asked := rounds.ask():
        seen.append((asked, rounds.is_last))
        rounds.tell([Result(given, turn, Status.CORRECT, None) for turn, given in asked.items()])
    first, on_two = Proposal(), Proposal(parent=2)
    assert seen == [
        ({1: first, 2: first}, False),
        ({3: on_two, 4: on_two, 5: on_two}, False),
        ({6: Proposal(parent=5)}, True),
    ]
    assert searching.told == [[1, 2], [3, 4, 5], [6]]


def test_a_decorator_is_enough_in_the_same_process() -> None:
    @strategy("never")
    class Never:
        def __init__(self, task: Task) -> None: ...

        def ask(self) -> Sequence[Proposal]:
            return ()

        def tell(self, results: Sequence[Result]) -> None: ...

    assert made("never").ask() == ()


def test_an_unknown_strategy_is_told_with_those_that_there_are() -> None:
    with pytest.raises(UsageError, match=r"no strategy 'refien'; there are: .*refine, repair, sample"):
        find_strategy("refien")


def test_a_class_that_is_no_strategy_is_refused() -> None:
    with pytest.raises(UsageError, match=r"the strategy 'half'.*lacks tell"):

        @strategy("half")  # type: ignore[type-var]
        class Half:
            def __init__(self, task: Task) -> None: ...

            def ask(self) -> Sequence[Proposal]:
                return ()


OLD_KEYS = [
    ({"model": "m"}, "0e3666f9df8b44c7fceddcb75d7e049628e30454421cc83bba6298418870c481"),
    (
        {
            "model": "replay:demo",
            "template": "basic-v1",
            "template_sha256": "0" * 64,
            "turns": 3,
            "sampling": {"temperature": 0.2},
            "verify": VerifySettings(backend="cpp"),
        },
        "cc57ed1317888d4600ff44c674e5e4741ab647ca165ae2df0d842ea327cc00c3",
    ),
]
"""Settings and their keys as they were before a run had a strategy."""


@pytest.mark.parametrize("settings, key", OLD_KEYS)
def test_a_run_without_a_chosen_strategy_is_the_run_it_was_before(
    settings: dict[str, object], key: str
) -> None:
    run = RunSettings.model_validate(settings)
    assert run.key == key
    assert not {"strategy", "good_enough"} & set(run.model_dump(mode="json"))
    assert run.strategy_name == ("repair" if run.turns > 1 else "sample")


def test_a_chosen_strategy_is_stored_and_is_another_run(tmp_path: Path) -> None:
    chosen = samples.settings().model_copy(update={"strategy": "fork"})
    problem = samples.problem()
    with open_store(tmp_path / "a.sqlite") as store:
        store.add_problem(problem)
        before, after = store.begin_run(samples.settings()), store.begin_run(chosen)
        assert before != after and store.begin_run(chosen) == after
        stored = [
            store.load_attempt(store.begin_attempt(run, samples.key(problem))) for run in (before, after)
        ]
    assert [attempt.run.strategy for attempt in stored] == [None, "fork"]
    assert [attempt.alterations for attempt in stored] == [(), ()]
