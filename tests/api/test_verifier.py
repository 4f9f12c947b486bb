"""Verifier: everything comes as it is done, drawn as it is taken; and nothing stays behind."""

from __future__ import annotations

import asyncio
import importlib.util
import re
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import anyio
import psutil
import pytest

from kernelproof import Submission, Verifier
from kernelproof.api import Result
from kernelproof.errors import UsageError
from tests.api.processes import compilers, running
from tests.cli import material

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "python.md"
ENDLESS = 100_000_000


@dataclass(frozen=True)
class Mine:
    """A record of the caller's own."""

    source: str | Path
    problem: str | Path
    expected: str


EARLIER: set[int] = set()


@pytest.fixture(autouse=True)
def earlier() -> None:
    """What a fixture of the session has started, such as a referee for all tests, is not ours."""
    EARLIER.clear()
    EARLIER.update(child.pid for child in psutil.Process().children())


def left() -> list[str]:
    """What this test started and still runs after at most ten seconds."""
    deadline = time.monotonic() + 10
    while (names := list(running(EARLIER).values())) and time.monotonic() < deadline:
        time.sleep(0.05)
    return names


@pytest.mark.slow
def test_candidates_are_drawn_as_results_are_taken(place: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "right.py"
    file.write_text(material.right())
    cut = tmp_path / "cut.py"
    cut.write_text(material.right()[: material.right().index("PYBIND11_MODULE")])
    candidates = [
        Mine(file, "relu", "correct"),
        Mine(material.wrong(), "level1/1", "wrong_output"),
        Mine(material.right(), place["suite"] / "level1" / "1_relu.py", "correct"),
        Mine("no program", "relu", "no_code"),
        Mine(cut, "relu", "syntax_error"),
        Mine(cut.read_text(), "relu", "syntax_error"),
        Mine(material.right(), "relu", "correct"),
    ]
    drawn = 0

    async def source() -> AsyncIterator[Mine]:
        nonlocal drawn
        for candidate in candidates:
            drawn += 1
            yield candidate

    async def main() -> list[Result[Mine]]:
        taken: list[Result[Mine]] = []
        async with Verifier(**place, in_flight=2) as verifier:
            results = verifier.verify_many(source())
            assert drawn == 0
            async for result in results:
                taken.append(result)
                await anyio.sleep(0.05)
                assert drawn <= len(taken) + 2
            one = await verifier.verify(material.right(), "relu")
            assert (one.status, one.settings.size) == ("correct", "full")
        return taken

    taken = anyio.run(main)
    assert Counter(map(id, (result.candidate for result in taken))) == Counter(map(id, candidates))
    assert all(
        result.verification is not None and result.verification.status == result.candidate.expected
        for result in taken
    )
    assert left() == []


class Left(Exception):
    """What the block is left by."""


async def leave(way: str, verifier: Verifier) -> None:
    """Leaves a block with a compilation under way that would never end."""

    async def consume() -> None:
        endless = Submission(material.slow_to_compile(f"endless_{way}", ENDLESS), "relu")
        async for _ in verifier.verify_many([endless]):
            pass

    async with verifier, anyio.create_task_group() as group:
        task = asyncio.current_task()
        group.start_soon(consume)
        while not compilers():
            await anyio.sleep(0.02)
        if way == "exception":
            raise Left
        if way == "cancelled":
            group.cancel_scope.cancel()
        elif task is not None:
            task.cancel()
            await anyio.sleep(30)


@pytest.mark.clock
@pytest.mark.parametrize("way", ["exception", "cancelled", "asyncio"])
def test_left_in_the_middle_no_process_stays(place: dict[str, Any], way: str) -> None:
    began: list[float] = []

    async def main() -> None:
        try:
            await leave(way, Verifier(**place))
        finally:
            began.append(time.monotonic())

    if way == "exception":
        with pytest.raises(ExceptionGroup) as caught:  # the block's own task group wraps it, not ours
            asyncio.run(main())
        assert caught.group_contains(Left, depth=1)
    elif way == "asyncio":
        with pytest.raises(asyncio.CancelledError):
            asyncio.run(main())
    else:
        asyncio.run(main())
    assert time.monotonic() - began[0] < 6
    assert left() == []


def test_an_error_in_the_block_comes_out_as_it_is(place: dict[str, Any]) -> None:
    async def main() -> None:
        async with Verifier(**place) as verifier:
            async for _ in verifier.verify_many([Submission("no program", "relu")]):
                raise Left

    with pytest.raises(Left):
        anyio.run(main)


BAD: list[tuple[dict[str, Any], str]] = [
    ({"in_flight": 0}, "in_flight is a number of candidates, 1 or more, not 0"),
    ({"rigour": "quick"}, "there is no rigour; did you mean rigor?"),
    ({"trials": 0}, "trials must be 1 or more, not 0"),
    ({"suite": "gone"}, "gone does not exist"),
    ({"deadline_s": 0}, "deadline_s is a number of seconds, more than 0 and at most a year, not 0"),
    ({"run": "mine"}, "run='mine' names what is stored; give store, too"),
    ({"store": "mysql://host/name"}, "results are stored on PostgreSQL"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD)
def test_arguments_that_make_no_sense(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Verifier(**{"backend": "cpp", **arguments})


def test_outside_of_its_block_it_says_so(place: dict[str, Any]) -> None:
    async def main() -> None:
        verifier = Verifier(**place)
        with pytest.raises(UsageError, match="not open"):
            verifier.verify_many([])
        async with verifier:
            with pytest.raises(UsageError, match="open already"):
                await verifier.__aenter__()
        with pytest.raises(UsageError, match="not open"):
            await verifier.verify("", "relu")

    anyio.run(main)


def example(folder: Path) -> ModuleType:
    """The trainer of docs/guide/python.md."""
    section = PAGE.read_text().partition("## A reward for a trainer")[2]
    block = re.search(r"```python\n(.+?)```", section, re.DOTALL)
    assert block is not None
    (folder / "trainer.py").write_text(block[1])
    spec = importlib.util.spec_from_file_location("trainer", folder / "trainer.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["trainer"] = module
    spec.loader.exec_module(module)
    return module


class Model:
    """Knows one right and one wrong answer, and gives more of what was rewarded."""

    def __init__(self) -> None:
        self.answers = {material.fenced(material.right()): 0.0, material.fenced(material.wrong()): 0.0}
        self.asked = 0

    async def answer(self, problem: str) -> str:
        assert problem == "relu"
        self.asked += 1
        return [*self.answers, "I would rather not."][self.asked % 3]

    async def learn(self, batch: list[tuple[Any, float]]) -> None:
        for rollout, reward in batch:
            self.answers[rollout.source] = reward


@pytest.mark.slow
def test_the_trainer_of_the_page_runs(place: dict[str, Any], tmp_path: Path) -> None:
    model = Model()
    asyncio.run(example(tmp_path).train(model, ["relu"], steps=2, samples=3, **place))
    assert model.asked == 6
    assert list(model.answers.values()) == [1.0, 0.0, 0.0]
