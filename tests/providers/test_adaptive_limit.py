"""Fewer places after 429, more after answers, never more than allowed; a pause holds everybody."""

from __future__ import annotations

import random

import anyio
import anyio.lowlevel
import pytest
from anyio.abc import TaskGroup
from hypothesis import given
from hypothesis import strategies as st

from kernelproof.providers.pacing import AdaptiveLimit


@given(most=st.integers(1, 500), events=st.lists(st.sampled_from(["answered", "busy"]), max_size=200))
def test_the_places_stay_within_bounds(most: int, events: list[str]) -> None:
    now = 0.0
    limit = AdaptiveLimit(most, clock=lambda: now)
    for event in events:
        before = limit.allowed
        if event == "busy":
            limit.busy(sent_at=now, pause_s=0.0)
            assert limit.allowed == max(1, before // 2) or limit.allowed <= before
        else:
            limit.answered()
            assert before <= limit.allowed <= before + 1
        now += 1.0
        assert 1 <= limit.allowed <= most


def test_one_burst_halves_the_places_once() -> None:
    now = 10.0
    limit = AdaptiveLimit(64, clock=lambda: now)
    for _ in range(30):
        limit.busy(sent_at=5.0, pause_s=0.0)
    assert limit.allowed == 32
    now = 20.0
    limit.busy(sent_at=15.0, pause_s=0.0)
    assert limit.allowed == 16


def test_as_many_answers_as_places_give_one_more() -> None:
    limit = AdaptiveLimit(64)
    limit.busy(sent_at=0.0, pause_s=0.0)
    for _ in range(33):
        limit.answered()
    assert limit.allowed == 33


@pytest.mark.parametrize("most", [1, 3, 8])
def test_no_more_are_in_than_allowed(most: int) -> None:
    inside = highest = 0

    async def one(limit: AdaptiveLimit) -> None:
        nonlocal inside, highest
        async with limit.place():
            inside += 1
            highest = max(highest, inside)
            await anyio.sleep(0.001)
            inside -= 1

    async def all_of_them() -> None:
        limit = AdaptiveLimit(most)
        async with anyio.create_task_group() as group:
            for _ in range(50):
                group.start_soon(one, limit)
        assert limit.used == 0

    anyio.run(all_of_them)
    assert highest == most


def test_a_pause_holds_everybody() -> None:
    async def paused() -> float:
        limit = AdaptiveLimit(4)
        limit.busy(sent_at=anyio.current_time(), pause_s=0.3)
        began = anyio.current_time()
        async with limit.place():
            return anyio.current_time() - began

    assert anyio.run(paused) >= 0.29


def test_one_answer_lets_one_in_and_does_not_wake_all() -> None:
    woken = 0

    async def one(limit: AdaptiveLimit) -> None:
        nonlocal woken
        async with limit.place():
            woken += 1
            await anyio.sleep_forever()

    async def all_of_them() -> None:
        limit = AdaptiveLimit(1)
        async with anyio.create_task_group() as group:
            async with limit.place():
                for _ in range(100):
                    group.start_soon(one, limit)
                await anyio.wait_all_tasks_blocked()
                assert limit.is_full and woken == 0
            await anyio.wait_all_tasks_blocked()
            assert woken == 1
            group.cancel_scope.cancel()

    anyio.run(all_of_them)


def test_one_starts_in_each_turn_of_the_event_loop() -> None:
    starts: list[int] = []
    turn = 0

    async def count_turns() -> None:
        nonlocal turn
        while True:
            turn += 1
            await anyio.lowlevel.checkpoint()

    async def one(limit: AdaptiveLimit) -> None:
        async with limit.place():
            starts.append(turn)

    async def all_of_them() -> None:
        limit = AdaptiveLimit(200)
        async with anyio.create_task_group() as group:
            group.start_soon(count_turns)
            async with anyio.create_task_group() as asking:
                for _ in range(200):
                    asking.start_soon(one, limit)
            group.cancel_scope.cancel()

    anyio.run(all_of_them)
    assert len(set(starts)) == 200


class _Crowd:
    """Questions at a limit, each of which can be answered, refused or given up from outside."""

    def __init__(self, most: int) -> None:
        self.limit = AdaptiveLimit(most)
        self.waiting: dict[int, anyio.CancelScope] = {}
        self.inside: dict[int, tuple[float, anyio.Event]] = {}
        self._number = 0

    def ask(self, group: TaskGroup) -> None:
        self._number += 1
        self.waiting[self._number] = anyio.CancelScope()
        group.start_soon(self._one, self._number)

    async def _one(self, number: int) -> None:
        scope = self.waiting[number]
        with scope:
            try:
                async with self.limit.place() as taken:
                    del self.waiting[number]
                    over = anyio.Event()
                    self.inside[number] = taken, over
                    await over.wait()
            finally:
                self.waiting.pop(number, None)
                self.inside.pop(number, None)

    def end(self, which: int, pause_s: float | None) -> None:
        """One of those inside is answered; with `pause_s` it is told that the server is busy."""
        open_ = [each for each in self.inside.values() if not each[1].is_set()]
        if not open_:
            return
        taken, over = open_[which % len(open_)]
        if pause_s is None:
            self.limit.answered()
        else:
            self.limit.busy(taken, pause_s)
        over.set()

    def give_up(self, which: int) -> None:
        """One of those that wait is cancelled."""
        if self.waiting:
            sorted(self.waiting.items())[which % len(self.waiting)][1].cancel()

    async def settled(self) -> None:
        """Returns as soon as nobody waits or no place is free."""
        while self.waiting and self.limit.used < self.limit.allowed:
            await anyio.sleep(0.0005)


_STEPS = st.one_of(
    st.tuples(st.just("ask"), st.just(0)),
    st.tuples(st.just("answer"), st.integers(0, 9)),
    st.tuples(st.just("busy"), st.integers(0, 9)),
    st.tuples(st.just("give up"), st.integers(0, 9)),
    st.tuples(st.just("run"), st.integers(0, 3)),
    st.tuples(st.just("settle"), st.just(0)),
)


@given(most=st.integers(1, 3), steps=st.lists(_STEPS, max_size=40), seed=st.randoms(use_true_random=False))
def test_nobody_waits_while_places_are_free(
    most: int, steps: list[tuple[str, int]], seed: random.Random
) -> None:
    """Whatever the order in which questions come, are answered, are refused, and are given up."""

    async def all_of_them() -> None:
        crowd = _Crowd(most)
        async with anyio.create_task_group() as group:
            with anyio.fail_after(5):
                for _ in range(most + 4):
                    crowd.ask(group)
                for step, which in steps:
                    if step == "ask":
                        crowd.ask(group)
                    elif step == "run":
                        await anyio.sleep(which * 0.0005)
                    elif step == "settle":
                        await crowd.settled()
                    elif step == "give up":
                        crowd.give_up(which)
                    else:
                        crowd.end(which, seed.choice([0.0, 0.001, 0.004]) if step == "busy" else None)
                    await anyio.sleep(0)
                while crowd.waiting or crowd.inside:
                    await crowd.settled()
                    crowd.end(0, None)
                    await anyio.sleep(0)
        assert crowd.limit.used == 0

    anyio.run(all_of_them)
