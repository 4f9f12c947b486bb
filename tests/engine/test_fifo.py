"""The first to come is served first, by a plain queue and by the cores; one that gives up is no obstacle."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from kernelproof.verifier.engine.core_sharing import Cores, Fifo
from kernelproof.verifier.engine.referee_process import RefereeLost

WAITERS = 12


def waiting(count: int, wait: Callable[[int], None], queued: Callable[[], int]) -> list[threading.Thread]:
    """So many threads that call `wait` with their number, each in the queue before the next comes."""
    threads = []
    for number in range(count):
        before = queued()
        thread = threading.Thread(target=wait, args=(number,))
        thread.start()
        threads.append(thread)
        deadline = time.monotonic() + 10
        while queued() == before and time.monotonic() < deadline:
            time.sleep(0.001)
    return threads


def test_they_are_let_through_in_the_order_they_came() -> None:
    changed, through = threading.Condition(), list[int]()
    queue, places = Fifo(changed), 0

    def wait(number: int) -> None:
        nonlocal places
        with changed:
            queue.wait_for(lambda: places > 0)
            places -= 1
            through.append(number)

    threads = waiting(WAITERS, wait, lambda: len(queue))
    assert len(queue) == WAITERS and through == []
    for served in (1, 5, WAITERS):  # one place, some at once, the rest
        with changed:
            places += served - len(through)
            changed.notify_all()
        while len(through) < served:
            time.sleep(0.001)
        assert through == list(range(served))
    for thread in threads:
        thread.join(10)
    assert len(queue) == 0


def test_who_is_refused_leaves_the_queue_to_the_others() -> None:
    changed, went = threading.Condition(), list[str]()
    queue, refused = Fifo(changed), False

    def ready() -> bool:
        if refused:
            raise RefereeLost("closed")
        return False

    def wait(number: int) -> None:
        with changed:
            try:
                queue.wait_for(ready)
            except RefereeLost as error:
                went.append(f"{number} {error}")

    threads = waiting(3, wait, lambda: len(queue))
    with changed:
        refused = True
        changed.notify_all()
    for thread in threads:
        thread.join(10)
    assert went == ["0 closed", "1 closed", "2 closed"] and len(queue) == 0


def test_builds_take_turns_and_a_measurement_comes_after_them_all() -> None:
    cores, done = Cores(2, 2), list[str]()
    gate = threading.Event()

    def build(number: int) -> None:
        with cores.building():
            gate.wait(10)
            done.append(f"build {number}")

    def measure(number: int) -> None:
        with cores.measuring():
            done.append(f"measurement {number}")

    first = [threading.Thread(target=build, args=(number,)) for number in (0, 1)]
    for thread in first:
        thread.start()
    while cores._building < 2:
        time.sleep(0.001)
    measurements = waiting(2, measure, lambda: len(cores._measurements))
    builds = waiting(4, lambda number: build(2 + number), lambda: len(cores._builds))
    gate.set()
    for thread in (*first, *builds, *measurements):
        thread.join(10)
    assert sorted(done[:6]) == [f"build {number}" for number in range(6)]
    assert done[6:] == ["measurement 0", "measurement 1"]


def test_more_are_built_at_the_same_time_once_one_has_ended() -> None:
    cores, ended = Cores(1, 3), threading.Semaphore(0)

    def build(_: int) -> None:
        with cores.building():
            assert ended.acquire(timeout=10)

    first = threading.Thread(target=build, args=(0,))
    first.start()
    while cores._building < 1:
        time.sleep(0.001)
    builds = waiting(4, build, lambda: len(cores._builds))
    assert cores._building == 1 and len(cores._builds) == 4
    ended.release()
    first.join(10)
    deadline = time.monotonic() + 10
    while (cores._building, len(cores._builds)) != (3, 1) and time.monotonic() < deadline:
        time.sleep(0.001)
    assert (cores._building, len(cores._builds)) == (3, 1)
    ended.release(4)
    for thread in builds:
        thread.join(10)
    assert cores._building == 0


def test_nobody_waits_for_cores_that_were_closed() -> None:
    cores, lost = Cores(1, 1), list[int]()

    def wait(number: int) -> None:
        with pytest.raises(RefereeLost), cores.building():
            pass
        lost.append(number)

    with cores.building():
        threads = waiting(3, wait, lambda: len(cores._builds))
        cores.close()
        for thread in threads:
            thread.join(10)
    assert lost == [0, 1, 2]
