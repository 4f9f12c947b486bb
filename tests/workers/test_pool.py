"""Contestants in reserve come up beside a measurement, on cores of their own; what ends behind a verdict."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch

from kernelproof.types import CoreShares, Status, VerifySettings
from kernelproof.verifier.referee import sides
from kernelproof.verifier.workers.client import Contestant, ContestantFailed
from kernelproof.verifier.workers.pool import AT_ONCE, LOOK_S, MOST_RESETS, PAIR, DeferredCleanup, WarmPool
from tests.referee.corpus import members
from tests.referee.court import Court

MINE = sorted(os.sched_getaffinity(0))
KEPT = CoreShares(measured=tuple(MINE[:1]), others=tuple(MINE[1:]))
LIMIT = 2 << 30
CPU = torch.device("cpu")

two_cores = pytest.mark.skipif(len(MINE) < 2, reason="needs two cores: one to keep, one for the rest")


@pytest.fixture
def warm_pool() -> Iterator[WarmPool]:
    made = WarmPool()
    yield made
    made.close()


def cores(contestant: Contestant) -> set[int]:
    """Where its process runs that answers: the last that was started."""
    return os.sched_getaffinity(_newest(contestant))


def _newest(contestant: Contestant) -> int:
    """By the time of its start: the kernel's numbers begin anew once they are used up."""
    return max(contestant.pids(), key=lambda pid: (psutil.Process(pid).create_time(), pid))


def variable(contestant: Contestant, name: str) -> str | None:
    """What that process was started with."""
    found = Path(f"/proc/{_newest(contestant)}/environ").read_text().split("\0")
    return dict(item.split("=", 1) for item in found if item).get(name)


@two_cores
def test_it_comes_up_on_the_other_cores_and_moves_when_it_gets_its_device(warm_pool: WarmPool) -> None:
    warm_pool.share(KEPT)
    warm_pool.refill((), LIMIT, unsafe=False, count=1)
    settings, device = VerifySettings(backend="cpp", threads=0), torch.device("cpu")
    with sides.start(warm_pool, sides.no_builds, settings, device) as contestant:
        contestant.wait_ready()
        assert cores(contestant) == set(KEPT.others)
        assert variable(contestant, "OMP_NUM_THREADS") == variable(contestant, "OPENBLAS_NUM_THREADS") == "1"
        sides.come_up(contestant, settings, device)
        assert cores(contestant) == set(KEPT.measured)


def test_without_kept_cores_it_runs_where_we_do(warm_pool: WarmPool) -> None:
    with warm_pool.take(sides.no_builds, (), LIMIT, unsafe=False) as contestant:
        contestant.wait_ready()
        assert cores(contestant) == set(MINE)
        assert variable(contestant, "OMP_NUM_THREADS") is None


@two_cores
def test_others_cores_end_those_that_wait(warm_pool: WarmPool) -> None:
    warm_pool.refill((), LIMIT, unsafe=False, count=warm_pool.ahead)
    assert warm_pool.ahead == PAIR
    (waiting, _) = warm_pool._waiting
    warm_pool.share(CoreShares())
    assert waiting.alive
    warm_pool.share(KEPT)
    assert not waiting.alive and warm_pool.ahead == 2 * PAIR and warm_pool.ahead_unmeasured == 2


def test_with_room_there_are_more_of_them(warm_pool: WarmPool) -> None:
    warm_pool.share(CoreShares(measured=(0, 1), others=tuple(range(2, 16))))
    assert warm_pool.ahead == 4 * PAIR


def hello(threads: int) -> dict[str, Any]:
    return {"op": "hello", "device": "cpu", "threads": threads, "flush_bytes": 0}


def in_reserve(warm_pool: WarmPool, count: int) -> list[Contestant]:
    """So many that are up."""
    warm_pool.refill((), LIMIT, unsafe=False, count=count)
    for spare in warm_pool._waiting:
        spare.wait_ready()
    return list(warm_pool._waiting)


def prepare(warm_pool: WarmPool, request: dict[str, Any]) -> None:
    warm_pool.prepare(request, (), unsafe=False)


def asked(warm_pool: WarmPool) -> list[Contestant]:
    return [spare for spare in warm_pool._waiting if spare.prepared is not None]


def wait_until_asked(warm_pool: WarmPool, count: int) -> None:
    while len(asked(warm_pool)) < count:
        time.sleep(0.001)


def test_what_was_sent_ahead_is_answered_before_anything_else(warm_pool: WarmPool) -> None:
    in_reserve(warm_pool, 2)
    wanted = VerifySettings(backend="cpp", threads=2)
    prepare(warm_pool, sides.hello(wanted, CPU))
    wait_until_asked(warm_pool, 2)
    warm_pool.settle()
    for settings in (wanted, VerifySettings(backend="cpp", threads=3)):  # as it was told ahead, and otherwise
        with sides.start(warm_pool, sides.no_builds, settings, CPU) as contestant:
            assert contestant.prepared == sides.hello(wanted, CPU)
            sides.come_up(contestant, settings, CPU)
            with pytest.raises(ContestantFailed, match="NoneType"):  # the answers are in step
                contestant.ask({"op": "construct", "class": "Model", "arguments": [], "seed": 1}, seconds=30)


@pytest.mark.ci
def test_nobody_is_asked_while_others_do_not_answer_or_when_it_is_enough(warm_pool: WarmPool) -> None:
    *first, last = in_reserve(warm_pool, AT_ONCE + 1)
    for spare in first:
        spare.pause()
    prepare(warm_pool, hello(2))
    wait_until_asked(warm_pool, AT_ONCE)
    time.sleep(10 * LOOK_S)
    assert last.prepared is None
    warm_pool.enough()
    for spare in first:
        spare.resume()
    warm_pool.settle()
    assert asked(warm_pool) == first and all(spare.answered for spare in first)
    prepare(warm_pool, hello(2))
    wait_until_asked(warm_pool, AT_ONCE + 1)


@pytest.mark.ci
def test_what_is_under_way_is_waited_for_and_what_is_asked_later_is_not(warm_pool: WarmPool) -> None:
    first, second = in_reserve(warm_pool, 2)
    first.pause()
    prepare(warm_pool, hello(2))
    wait_until_asked(warm_pool, 1)
    over = threading.Thread(target=warm_pool.under_way())
    over.start()
    over.join(10 * LOOK_S)
    assert over.is_alive()
    second.pause()
    first.resume()
    wait_until_asked(warm_pool, 2)
    over.join(10)
    assert first.answered and not (over.is_alive() or second.answered)
    second.resume()


def test_none_is_asked_before_it_may_begin_and_no_second_when_it_is_nearly_enough(
    warm_pool: WarmPool,
) -> None:
    in_reserve(warm_pool, 2)
    may_begin = threading.Event()
    warm_pool.prepare(hello(2), (), unsafe=False, may_begin=may_begin.is_set)
    warm_pool.nearly_enough()
    time.sleep(10 * LOOK_S)
    assert not asked(warm_pool)
    may_begin.set()
    wait_until_asked(warm_pool, 1)
    asked(warm_pool)[0].wait_ready()
    time.sleep(10 * LOOK_S)
    assert asked(warm_pool) == warm_pool._waiting[:1]
    prepare(warm_pool, hello(2))
    wait_until_asked(warm_pool, 2)


@pytest.mark.ci
def test_one_that_does_not_answer_can_be_ended(warm_pool: WarmPool) -> None:
    first, second = in_reserve(warm_pool, 2)
    first.pause()
    prepare(warm_pool, hello(2))
    warm_pool.close()
    assert not (first.alive or second.alive)


@pytest.mark.ci
def test_one_that_cannot_do_what_was_sent_ahead_is_not_taken(warm_pool: WarmPool) -> None:
    (waiting,) = in_reserve(warm_pool, 1)
    prepare(warm_pool, hello(2) | {"device": "cuda:99"})
    wait_until_asked(warm_pool, 1)
    warm_pool.settle()
    assert not warm_pool._waiting and not waiting.alive
    with warm_pool.take(sides.no_builds, (), LIMIT, unsafe=False) as contestant:
        contestant.wait_ready()
        assert contestant.prepared is None


@pytest.mark.ci
def test_when_one_fails_no_further_one_is_asked_and_the_next_candidate_takes_a_right_one(
    warm_pool: WarmPool,
) -> None:
    first, second, _ = in_reserve(warm_pool, 3)
    second.prepare(hello(2) | {"device": "cuda:99"})  # as if in a verification that ended early
    prepare(warm_pool, hello(2) | {"device": "cuda:99"})
    while first.alive:
        time.sleep(0.001)
    warm_pool.enough()
    assert asked(warm_pool) == [second]
    while not second.answered:
        time.sleep(0.001)
    settings = VerifySettings(backend="cpp", threads=2)
    with sides.start(warm_pool, sides.no_builds, settings, CPU) as contestant:
        sides.come_up(contestant, settings, CPU)
        assert not second.alive and contestant.alive


def test_none_of_another_kind_is_asked(warm_pool: WarmPool) -> None:
    in_reserve(warm_pool, 1)
    warm_pool.prepare(hello(2), (0,), unsafe=False)
    time.sleep(10 * LOOK_S)
    assert not asked(warm_pool)


@pytest.mark.ci
def test_one_that_ended_is_not_taken(warm_pool: WarmPool) -> None:
    first, second = in_reserve(warm_pool, 2)
    first.close()
    prepare(warm_pool, hello(2))
    with warm_pool.take(sides.no_builds, (), LIMIT, unsafe=False) as contestant:
        assert contestant is second


def test_one_that_comes_up_is_not_waited_for(warm_pool: WarmPool) -> None:
    warm_pool.refill((), LIMIT, unsafe=False, count=1)
    (waiting,) = warm_pool._waiting
    prepare(warm_pool, hello(2))
    assert waiting.prepared is None


def test_one_thread_may_refill_while_another_takes(warm_pool: WarmPool) -> None:
    with ThreadPoolExecutor(1) as pool:
        refilled = pool.submit(warm_pool.refill, (), LIMIT, unsafe=False, count=3)
        taken = [warm_pool.take(sides.no_builds, (), LIMIT, unsafe=False) for _ in range(3)]
        refilled.result()
    try:
        assert len({spare.pids()[0] for spare in (*taken, *warm_pool._waiting)}) == 3 + len(
            warm_pool._waiting
        )
        assert all(spare.alive for spare in (*taken, *warm_pool._waiting))
    finally:
        for spare in taken:
            spare.close()


RIGHT = next(member for member in members("cpu") if member.id == "honest/relu_where")


def test_one_after_the_other_and_the_caller_goes_on() -> None:
    behind, gate, ended = DeferredCleanup(), threading.Event(), list[int]()

    def end(number: int) -> None:
        gate.wait(10)
        ended.append(number)

    for number in range(5):
        behind.later(lambda number=number: end(number), 100)
    assert ended == [] and behind.nbytes == 500
    gate.set()
    behind.wait()
    assert ended == [0, 1, 2, 3, 4] and behind.nbytes == 0
    behind.wait()


def test_what_goes_wrong_is_told_to_who_waits() -> None:
    behind = DeferredCleanup()
    behind.later(lambda: time.sleep(-1))
    with pytest.raises(ValueError, match="sleep"):
        behind.wait()
    behind.later(lambda: None)
    behind.wait()


@pytest.mark.slow
def test_nothing_is_left_of_a_verification_with_one_behind_it(court: Court) -> None:
    untimed = RIGHT.settings.model_copy(update={"measure": False})
    request = replace(RIGHT, settings=untimed).request
    for ahead in (True, True, False):
        assert court.judge(request, ahead=ahead).status is Status.CORRECT
    assert court.left_over() == []


def put_back(warm_pool: WarmPool) -> Contestant:
    """A baseline's process that is free again."""
    baseline = warm_pool.take(sides.no_builds, (), LIMIT, unsafe=False)
    sides.come_up(baseline, VerifySettings(backend="cpp"), CPU)
    warm_pool.put_back(baseline, (), 60, unsafe=False)
    return baseline


def test_a_process_that_was_put_back_is_taken_once(warm_pool: WarmPool) -> None:
    used = put_back(warm_pool)
    assert warm_pool.take_used((), LIMIT, unsafe=False) is used
    assert warm_pool.take_used((), LIMIT, unsafe=False) is None
    used.close()


def test_it_ends_with_the_pool_and_where_others_are_wanted(warm_pool: WarmPool) -> None:
    used = put_back(warm_pool)
    assert warm_pool.take_used((), LIMIT, unsafe=True) is None and not used.alive
    used = put_back(warm_pool)
    warm_pool.close()
    assert not used.alive


def test_one_that_has_ended_or_was_reset_too_often_is_not_taken(warm_pool: WarmPool) -> None:
    ended = put_back(warm_pool)
    ended._process.kill("a test")
    assert warm_pool.take_used((), LIMIT, unsafe=False) is None
    warm_pool.put_back(ended, (), 60, unsafe=False)
    assert warm_pool.take_used((), LIMIT, unsafe=False) is None
    often = put_back(warm_pool)
    for _ in range(MOST_RESETS - 1):
        assert warm_pool.take_used((), LIMIT, unsafe=False) is often
        warm_pool.put_back(often, (), 60, unsafe=False)
    assert not often.alive
