"""Contestants in reserve come up beside a measurement, and are measured on the cores that are kept for it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch

from pipeline.nouns import CoreShares, VerifySettings
from pipeline.referee.seats import seat
from pipeline.referee.seats.host import Contestant, ContestantFailed
from pipeline.referee.seats.memory import SharedMemory
from pipeline.referee.seats.spares import AT_ONCE, LOOK_S, PAIR, Spares

MINE = sorted(os.sched_getaffinity(0))
KEPT = CoreShares(measured=tuple(MINE[:1]), others=tuple(MINE[1:]))
LIMIT = 2 << 30
CPU = torch.device("cpu")

two_cores = pytest.mark.skipif(len(MINE) < 2, reason="needs two cores: one to keep, one for the rest")


@pytest.fixture
def spares() -> Iterator[Spares]:
    made = Spares()
    yield made
    made.close()


def cores(contestant: Contestant) -> set[int]:
    """Where its process runs that answers: the last that was started."""
    return os.sched_getaffinity(max(contestant.pids()))


def variable(contestant: Contestant, name: str) -> str | None:
    """What that process was started with."""
    found = Path(f"/proc/{max(contestant.pids())}/environ").read_text().split("\0")
    return dict(item.split("=", 1) for item in found if item).get(name)


@two_cores
def test_it_comes_up_on_the_other_cores_and_moves_when_seated(spares: Spares) -> None:
    spares.share(KEPT)
    spares.refill((), LIMIT, unsafe=False, count=1)
    settings, device = VerifySettings(backend="cpp", threads=0), torch.device("cpu")
    memory = SharedMemory(device)
    with seat.start(spares, seat.no_builds, settings, device) as contestant:
        contestant.wait_ready()
        assert cores(contestant) == set(KEPT.others)
        assert variable(contestant, "OMP_NUM_THREADS") == variable(contestant, "OPENBLAS_NUM_THREADS") == "1"
        seat.greet(contestant, memory, (), settings, device)
        assert cores(contestant) == set(KEPT.measured)
    memory.close()


def test_without_kept_cores_it_runs_where_we_do(spares: Spares) -> None:
    with spares.take(seat.no_builds, (), LIMIT, unsafe=False) as contestant:
        contestant.wait_ready()
        assert cores(contestant) == set(MINE)
        assert variable(contestant, "OMP_NUM_THREADS") is None


@two_cores
def test_others_cores_end_those_that_wait(spares: Spares) -> None:
    spares.refill((), LIMIT, unsafe=False, count=spares.ahead)
    assert spares.ahead == PAIR
    (waiting, _) = spares._waiting
    spares.share(CoreShares())
    assert waiting.alive
    spares.share(KEPT)
    assert not waiting.alive and spares.ahead == 2 * PAIR


def test_with_room_there_are_more_of_them(spares: Spares) -> None:
    spares.share(CoreShares(measured=(0, 1), others=tuple(range(2, 16))))
    assert spares.ahead == 4 * PAIR


def hello(threads: int) -> dict[str, Any]:
    return {"op": "hello", "device": "cpu", "threads": threads, "flush_bytes": 0}


def asked(spares: Spares) -> list[Contestant]:
    return [spare for spare in spares._waiting if spare.prepared is not None]


def wait_until_asked(spares: Spares, count: int) -> None:
    while len(asked(spares)) < count:
        time.sleep(0.001)


def test_what_was_sent_ahead_is_answered_before_anything_else(spares: Spares) -> None:
    spares.refill((), LIMIT, unsafe=False, count=2)
    for spare in spares._waiting:
        spare.wait_ready()
    wanted = VerifySettings(backend="cpp", threads=2)
    spares.prepare(seat.hello(wanted, CPU))
    wait_until_asked(spares, 2)
    spares.settle()
    memory = SharedMemory(CPU)
    for settings in (wanted, VerifySettings(backend="cpp", threads=3)):  # as it was told ahead, and otherwise
        with seat.start(spares, seat.no_builds, settings, CPU) as contestant:
            assert contestant.prepared == seat.hello(wanted, CPU)
            seat.greet(contestant, memory, (), settings, CPU)
            with pytest.raises(ContestantFailed, match="NoneType"):  # the answers are in step
                contestant.ask({"op": "construct", "class": "Model", "arguments": [], "seed": 1}, seconds=30)
    memory.close()


def test_nobody_is_asked_while_others_do_not_answer_or_when_it_is_enough(spares: Spares) -> None:
    spares.refill((), LIMIT, unsafe=False, count=AT_ONCE + 1)
    for spare in spares._waiting:
        spare.wait_ready()
    *first, last = spares._waiting
    for spare in first:
        spare.pause()
    spares.prepare(hello(2))
    wait_until_asked(spares, AT_ONCE)
    time.sleep(10 * LOOK_S)
    assert last.prepared is None
    spares.enough()
    for spare in first:
        spare.resume()
    spares.settle()
    assert asked(spares) == first and all(spare.answered for spare in first)
    spares.prepare(hello(2))
    wait_until_asked(spares, AT_ONCE + 1)


def test_one_that_does_not_answer_can_be_ended(spares: Spares) -> None:
    spares.refill((), LIMIT, unsafe=False, count=2)
    for spare in spares._waiting:
        spare.wait_ready()
    first, second = spares._waiting
    first.pause()
    spares.prepare(hello(2))
    spares.close()
    assert not (first.alive or second.alive)


def test_one_that_cannot_do_what_was_sent_ahead_is_not_taken(spares: Spares) -> None:
    spares.refill((), LIMIT, unsafe=False, count=1)
    (waiting,) = spares._waiting
    waiting.wait_ready()
    spares.prepare(hello(2) | {"device": "cuda:99"})
    wait_until_asked(spares, 1)
    spares.settle()
    assert not spares._waiting and not waiting.alive
    with spares.take(seat.no_builds, (), LIMIT, unsafe=False) as contestant:
        contestant.wait_ready()
        assert contestant.prepared is None


def test_one_that_ended_is_not_taken(spares: Spares) -> None:
    spares.refill((), LIMIT, unsafe=False, count=2)
    first, second = spares._waiting
    for spare in (first, second):
        spare.wait_ready()
    first.close()
    spares.prepare(hello(2))
    with spares.take(seat.no_builds, (), LIMIT, unsafe=False) as contestant:
        assert contestant is second


def test_one_that_comes_up_is_not_waited_for(spares: Spares) -> None:
    spares.refill((), LIMIT, unsafe=False, count=1)
    (waiting,) = spares._waiting
    spares.prepare(hello(2))
    assert waiting.prepared is None


def test_one_thread_may_refill_while_another_takes(spares: Spares) -> None:
    with ThreadPoolExecutor(1) as pool:
        refilled = pool.submit(spares.refill, (), LIMIT, unsafe=False, count=3)
        taken = [spares.take(seat.no_builds, (), LIMIT, unsafe=False) for _ in range(3)]
        refilled.result()
    try:
        assert len({spare.pids()[0] for spare in (*taken, *spares._waiting)}) == 3 + len(spares._waiting)
        assert all(spare.alive for spare in (*taken, *spares._waiting))
    finally:
        for spare in taken:
            spare.close()
