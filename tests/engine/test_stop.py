"""Stop: a thread that waits, compiles or is judged ends when its caller asks for it, and no other does."""

from __future__ import annotations

import threading
import time

import pytest

from kernelproof.verifier.engine.core_sharing import Cores
from kernelproof.verifier.engine.stop import Stop, Stopped, ended_later


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
