"""Who waits: the first to come is served first, one that gives up or is stopped is no obstacle, and the time
that referees are busy is counted."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from kernelproof.verifier.engine.core_sharing import Cores, Fifo
from kernelproof.verifier.engine.referee_process import RefereeLost
from kernelproof.verifier.engine.referees import BusyTime
from kernelproof.verifier.engine.stop import Stop, Stopped, ended_later

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


def test_one_that_waits_goes_and_the_others_keep_their_turn() -> None:
    cores, went = Cores(1, 1), list[str]()
    stops = [Stop(), Stop(), Stop()]
    left = threading.Semaphore(0)

    def wait(number: int) -> None:
        try:
            with cores.building(stops[number]):
                went.append(f"{number} built")
        except Stopped:
            went.append(f"{number} stopped")
        left.release()

    threads = [threading.Thread(target=wait, args=(number,)) for number in range(3)]
    with cores.building():
        for number, thread in enumerate(threads):
            thread.start()
            while len(cores._builds) <= number:
                time.sleep(0.001)
        stops[1].ask()
        assert left.acquire(timeout=60) and went == ["1 stopped"]
        stops[1].ask()  # twice is once
    for thread in threads:
        thread.join(60)
    assert went == ["1 stopped", "0 built", "2 built"]


def test_asked_before_it_lets_nobody_begin() -> None:
    stop, cores = Stop(), Cores(1, 1)
    stop.ask()
    with pytest.raises(Stopped), cores.building(stop):
        pass
    with pytest.raises(Stopped), ended_later(stop, 0, lambda: None):
        pass
    with cores.building(), pytest.raises(Stopped), cores.measuring(stop):
        pass


def test_what_goes_on_too_long_is_ended_and_what_is_over_is_not() -> None:
    ended = threading.Event()
    stop = Stop()
    with ended_later(stop, 0, ended.set):
        stop.ask()
        assert ended.wait(60)
    over = Stop()
    calls: list[str] = []
    with ended_later(over, 1000, lambda: calls.append("ended")):
        over.ask()
    stopping = [thread for thread in threading.enumerate() if thread.name == "stopping"]
    for thread in stopping:
        thread.join(60)
    assert calls == []


def test_the_share_is_over_all_of_them_since_each_started() -> None:
    now = [0.0]
    busy = BusyTime(clock=lambda: now[0])
    assert busy.share is None
    now[0] = 10.0
    busy.started("a")
    busy.began("a")
    now[0] = 14.0
    assert busy.share == 1.0
    busy.ended("a")
    busy.started("b")
    now[0] = 20.0  # a is there for 10 s and was busy for 4; b is there for 6 and was never
    assert busy.share == pytest.approx(4 / 16)
    busy.started("a")  # another process takes its place
    busy.began("b")
    now[0] = 22.0
    assert busy.share == pytest.approx(6 / 20)
