"""Stream: everything comes once, no more is drawn than may be in flight, errors come out."""

from __future__ import annotations

import threading
import time
from collections.abc import AsyncIterator, Iterator

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelproof.errors import MachineError, UsageError
from kernelproof.runs.stream import Stream, in_threads


class Source:
    """Numbers, and how many of them were drawn."""

    def __init__(self, count: int) -> None:
        self.count, self.drawn = count, 0

    def __iter__(self) -> Iterator[int]:
        for number in range(self.count):
            self.drawn += 1
            yield number

    async def waited(self) -> AsyncIterator[int]:
        for number in self:
            await anyio.sleep(0)
            yield number


@settings(max_examples=40, deadline=None)
@given(
    delays=st.lists(st.integers(0, 3), max_size=12),
    in_flight=st.integers(1, 5),
    waited=st.booleans(),
    pauses=st.booleans(),
)
def test_everything_comes_once_and_is_drawn_as_it_is_taken(
    delays: list[int], in_flight: int, waited: bool, pauses: bool
) -> None:
    source = Source(len(delays))
    lock, at_work, most = threading.Lock(), 0, 0

    def work(number: int) -> int:
        nonlocal at_work, most
        with lock:
            at_work += 1
            most = max(most, at_work)
        time.sleep(delays[number] / 2000)
        with lock:
            at_work -= 1
        return number * 7

    async def main() -> list[tuple[int, int]]:
        taken: list[tuple[int, int]] = []
        async with anyio.create_task_group() as group:
            stream = Stream(
                source.waited() if waited else source, in_threads(work, in_flight), group, in_flight
            )
            await anyio.sleep(0.001)
            assert source.drawn == 0
            async for result in stream:
                assert source.drawn <= len(taken) + in_flight
                taken.append(result)
                if pauses:
                    await anyio.sleep(0.002)
                    assert source.drawn <= len(taken) + in_flight
        return taken

    found = anyio.run(main)
    assert sorted(found) == [(number, number * 7) for number in range(len(delays))]
    assert most <= in_flight


def test_results_come_while_the_source_is_waited_for() -> None:
    async def source(taken: anyio.Event) -> AsyncIterator[int]:
        yield 1
        await taken.wait()  # for ever, if the first result waited for the second candidate
        yield 2

    async def main() -> list[int]:
        found, taken = [], anyio.Event()
        async with anyio.create_task_group() as group:
            async for number, _ in Stream(source(taken), in_threads(str, 3), group, 3):
                found.append(number)
                taken.set()
        return found

    assert anyio.run(main) == [1, 2]


def test_the_quick_overtake_the_slow() -> None:
    async def main() -> list[float]:
        async with anyio.create_task_group() as group:
            stream = Stream([0.6, 0.0, 0.2], in_threads(time.sleep, 3), group, 3)
            found = [seconds async for seconds, _ in stream]
        return found

    assert anyio.run(main) == [0.0, 0.2, 0.6]


def broken_source() -> Iterator[int]:
    yield 1
    raise UsageError("the source is broken")


def broken_work(number: int) -> int:
    raise MachineError("no compiler")


@pytest.mark.parametrize(
    ("items", "work", "kind"),
    [(broken_source(), str, UsageError), ([1, 2, 3], broken_work, MachineError)],
)
def test_errors_come_out_of_the_iterator_and_end_it(
    items: Iterator[int], work: object, kind: type[Exception]
) -> None:
    async def main() -> int:
        after = 0
        async with anyio.create_task_group() as group:
            stream = Stream(items, in_threads(work, 2), group, 2)  # type: ignore[arg-type, var-annotated]
            with pytest.raises(kind):
                async for _ in stream:
                    pass
            async for _ in stream:
                after += 1
        return after

    assert anyio.run(main) == 0


def test_closed_it_draws_no_more() -> None:
    source = Source(100)

    async def main() -> None:
        async with anyio.create_task_group() as group:
            stream = Stream(source, in_threads(str, 2), group, 2)
            await anext(stream)
            stream.close()
            with pytest.raises(StopAsyncIteration):
                await anext(stream)
            await anyio.sleep(0.02)

    anyio.run(main)
    assert source.drawn <= 3


def test_who_still_waits_when_the_group_ends_is_told() -> None:
    async def main() -> None:
        async with anyio.create_task_group() as outer:

            async def wait() -> None:
                with pytest.raises(UsageError, match="before all results were taken"):
                    await anext(stream)

            async with anyio.create_task_group() as inner:
                stream = Stream([0.2], in_threads(time.sleep, 1), inner, 1)
                outer.start_soon(wait)
                await anyio.sleep(0.05)
                inner.cancel_scope.cancel()

    anyio.run(main)
