"""Those who wait for an evaluation learn that it has ended, whenever they came."""

from __future__ import annotations

from collections.abc import Sequence

import anyio
import pytest

from kernelproof.db.evaluations import Evaluations, Submitted
from kernelproof.db.store import Store
from kernelproof.service import state
from kernelproof.service.state import Watch
from kernelproof.types import VerifySettings
from tests.db import samples

LONG_S = 60.0
"""Nobody waits as long, unless something is wrong."""


def submitted(store: Store, count: int) -> list[str]:
    one = Submitted(
        problem=samples.problem(1),
        text="text",
        settings=VerifySettings(backend="cpp"),
        request_sha256="0" * 64,
    )
    return [each.id for each in store.service.evaluations.submit("c", [one] * count, most=100)]


def watched(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The evaluations that each look at the store asks for, in their order."""
    asked, look = list[list[str]](), Evaluations.ended

    def noted(evaluations: Evaluations, numbers: Sequence[str]) -> set[str]:
        asked.append(list(numbers))
        return look(evaluations, numbers)

    monkeypatch.setattr(Evaluations, "ended", noted)
    monkeypatch.setattr(state, "LOOK_S", LONG_S)  # no look but those that something asked for
    return asked


def test_one_that_had_ended_before_anybody_waited_is_asked_for_alone(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    *open_ones, over = submitted(store, 4)
    store.service.evaluations.cancel(over)
    asked = watched(monkeypatch)

    async def main() -> None:
        watch = Watch(store)
        async with anyio.create_task_group() as group:
            for number in open_ones:
                group.start_soon(watch.ended, number, LONG_S)
            group.start_soon(watch.run)
            with anyio.fail_after(LONG_S / 2):
                while not asked:
                    await anyio.sleep(0.01)
                await watch.ended(over, LONG_S)
            assert watch.waiting == len(open_ones)
            group.cancel_scope.cancel()

    anyio.run(main)
    assert sorted(asked[0]) == sorted(open_ones) and asked[1] == [over]


def test_one_that_ends_while_many_wait_wakes_its_own_waiters(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, other = submitted(store, 2)
    asked = watched(monkeypatch)

    async def main() -> None:
        watch, woken = Watch(store), []

        async def wait(name: str, number: str) -> None:
            await watch.ended(number, LONG_S)
            woken.append(name)

        async with anyio.create_task_group() as group:
            for name, number in (("a", first), ("b", first), ("c", other)):
                group.start_soon(wait, name, number)
            group.start_soon(watch.run)
            with anyio.fail_after(LONG_S / 2):
                while not asked:
                    await anyio.sleep(0.01)
                store.service.evaluations.cancel(first)
                while len(woken) < 2:
                    await anyio.sleep(0.01)
            assert sorted(woken) == ["a", "b"] and watch.waiting == 1
            watch.end()
            with anyio.fail_after(LONG_S / 2):
                while len(woken) < 3:
                    await anyio.sleep(0.01)
            group.cancel_scope.cancel()

    anyio.run(main)
