"""Work on many items: so many in flight, drawn as results are taken, given as they come."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass
from math import inf
from typing import Generic, TypeVar

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from kernelproof.errors import UsageError

T = TypeVar("T")
R = TypeVar("R")


def in_threads(work: Callable[[T], R], count: int) -> Callable[[T], Awaitable[R]]:
    """`work` done in threads, `count` of them at most. One whose task is cancelled goes on, to nothing."""
    limiter = anyio.CapacityLimiter(count)

    async def one(item: T) -> R:
        return await anyio.to_thread.run_sync(work, item, limiter=limiter, abandon_on_cancel=True)

    return one


@dataclass(frozen=True)
class _Failed:
    """What a result is replaced by when drawing or working raised."""

    error: Exception


class Stream(Generic[T, R]):
    """The results of `work` on `items`, with their items, in the order of completion. An async iterator.

    An item is drawn only when fewer than `in_flight` are drawn whose results were not taken yet. An error
    that `items` or `work` raises is raised where results are taken, and ends the stream.
    """

    def __init__(
        self,
        items: Iterable[T] | AsyncIterable[T],
        work: Callable[[T], Awaitable[R]],
        group: TaskGroup,
        in_flight: int,
    ) -> None:
        """`work`: see `in_threads`. `group` is where the tasks live, and whose end is the stream's."""
        self._items, self._work, self._group = items, work, group
        self._places = anyio.Semaphore(in_flight)
        self._scope = anyio.CancelScope()
        # Unbounded, yet never longer than `in_flight`, and one for an error of `items`.
        self._give, self._take = anyio.create_memory_object_stream[tuple[T, R] | _Failed](inf)
        self._begun = self._closed = self._drawn = False

    def __aiter__(self) -> AsyncIterator[tuple[T, R]]:
        return self

    async def __anext__(self) -> tuple[T, R]:
        """The next result. Raises what drawing or working raised; UsageError when `group` ended before."""
        if not self._begun and not self._closed:
            self._begun = True
            self._group.start_soon(self._run)
        try:
            result = await self._take.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            if self._closed or self._drawn:
                raise StopAsyncIteration from None
            raise UsageError("closed before all results were taken") from None
        self._places.release()
        if isinstance(result, _Failed):
            self.close()
            raise result.error
        return result

    def close(self) -> None:
        """Draws no more and gives no more. The tasks that work are cancelled."""
        self._closed = True
        self._scope.cancel()
        self._take.close()

    async def _run(self) -> None:
        with self._scope, self._give:
            async with anyio.create_task_group() as group:
                try:
                    await self._draw(group)
                except Exception as error:
                    self._put(_Failed(error))
            self._drawn = True

    async def _draw(self, group: TaskGroup) -> None:
        if isinstance(self._items, AsyncIterable):
            waited = aiter(self._items)
            while True:
                await self._places.acquire()
                try:
                    item = await anext(waited)
                except StopAsyncIteration:
                    return
                group.start_soon(self._one, item)
        ready = iter(self._items)
        while True:
            await self._places.acquire()
            try:
                item = next(ready)
            except StopIteration:
                return
            group.start_soon(self._one, item)

    async def _one(self, item: T) -> None:
        try:
            result = await self._work(item)
        except Exception as error:
            self._put(_Failed(error))
        else:
            self._put((item, result))

    def _put(self, result: tuple[T, R] | _Failed) -> None:
        if not self._closed:
            self._give.send_nowait(result)
