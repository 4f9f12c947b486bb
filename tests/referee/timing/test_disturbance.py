"""A block that others disturbed is recognised; one that was left alone, or disturbed itself, is not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import psutil
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kernelproof.verifier.referee.timing import disturbance
from kernelproof.verifier.referee.timing.disturbance import (
    GpuReading,
    Repeats,
    Watch,
    lost_to_others,
    newcomers,
    slowed_down,
    spent,
)
from kernelproof.verifier.sandbox.procfs import cores_of, waits_readable
from tests.referee.corpus import members
from tests.referee.court import Court

CPU, GPU = torch.device("cpu"), torch.device("cuda", 0)
SPIN = (
    "import os, sys\nos.sched_setaffinity(0, {int(sys.argv[1])})\nprint('up', flush=True)\nwhile True: pass"
)
SLEEP = "import time\nprint('up', flush=True)\ntime.sleep(1000)"
MS = 1_000_000

schedstat = pytest.mark.skipif(not waits_readable(), reason="this kernel counts no waits")


@contextmanager
def process(source: str, *arguments: object) -> Iterator[int]:
    with subprocess.Popen(
        [sys.executable, "-c", source, *map(str, arguments)], stdout=subprocess.PIPE, text=True
    ) as started:
        assert started.stdout is not None and started.stdout.readline() == "up\n"
        try:
            yield started.pid
        finally:
            started.kill()


@schedstat
def test_a_program_on_the_same_core_disturbs() -> None:
    core = min(os.sched_getaffinity(0))
    with process(SPIN, core) as mine, process(SPIN, core):
        watch = Watch(CPU, lambda: [mine])
        watch.before()
        time.sleep(0.5)
        found = watch.after()
    assert found is not None and found.startswith("other programs kept it waiting for a core")


@schedstat
def test_a_process_that_wants_no_core_is_not_disturbed() -> None:
    with process(SLEEP) as mine:
        while psutil.Process(mine).status() != psutil.STATUS_SLEEPING:
            time.sleep(0.01)
        watch = Watch(CPU, lambda: [mine])
        watch.before()
        time.sleep(0.2)
        assert watch.after() is None
    assert watch.notes == ()


def test_vanishing_processes_are_survived() -> None:
    with process(SLEEP) as mine:
        watch = Watch(CPU, lambda: [mine, 1 << 22])
        watch.before()
    assert watch.after() is None
    watch.before()
    assert watch.after() is None


def test_cores_are_those_that_the_processes_may_use() -> None:
    with process(SPIN, min(os.sched_getaffinity(0))) as mine:
        assert cores_of([mine]) == 1
        assert cores_of([mine, os.getpid()]) == len(os.sched_getaffinity(0))
    assert cores_of([]) == 1


def test_two_threads_of_ours_on_one_core_wait_for_each_other() -> None:
    ran, waited = spent({}, {(1, 1): (50 * MS, 50 * MS), (1, 2): (50 * MS, 50 * MS)})
    assert lost_to_others(ran, waited, 100 * MS, 1) == 0


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is one core")
def test_cores_of_a_process_that_sleeps_are_not_those_of_the_ones_that_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As a sandbox's first process, which is on no core of its own. Two threads of a candidate that made the
    clock stand still waited for each other throughout, so that all of its block counted as waiting."""
    core, idle = min(os.sched_getaffinity(0)), os.getpid()
    with process(SPIN, core) as one, process(SPIN, core) as other:
        after = {(one, one): (50 * MS, 50 * MS), (one, other): (50 * MS, 49 * MS), (idle, idle): (0, 9 * MS)}
        readings, times = iter([{}, after]), iter([0, 100 * MS])
        monkeypatch.setattr(disturbance, "read_waits", lambda _: next(readings))
        monkeypatch.setattr(disturbance, "time", SimpleNamespace(monotonic_ns=times.__next__))
        watch = Watch(CPU, lambda: [idle, one])
        watch.before()
        assert watch.after() is None
    assert watch.waited_ms == 50


def test_a_foreign_program_beside_them_takes_what_they_did_not_run() -> None:
    third = 33 * MS
    waits = {(1, thread): (third, 2 * third) for thread in (1, 2)}
    assert lost_to_others(*spent({}, waits), 3 * third, 1) == third


def test_only_the_block_counts_and_what_began_within_it() -> None:
    before = {(1, 1): (900 * MS, 700 * MS), (1, 2): (5 * MS, 5 * MS)}
    after = {(1, 1): (930 * MS, 704 * MS), (1, 3): (10 * MS, 2 * MS)}
    assert spent(before, after) == (40 * MS, 6 * MS)
    assert lost_to_others(40 * MS, 6 * MS, 100 * MS, 4) == 6 * MS


def test_threads_that_were_only_woken_delay_nothing() -> None:
    idle = {(1, thread): (MS // 50, 3 * MS) for thread in range(2, 10)}
    ran, waited = spent({}, {(1, 1): (20 * MS, MS), **idle})
    assert (ran, waited) == (20 * MS + 8 * (MS // 50), MS)


times = st.integers(0, 10**12)
waits = st.dictionaries(st.tuples(st.integers(1, 5), st.integers(1, 5)), st.tuples(times, times))


@given(waits, waits, times, st.integers(1, 64))
def test_no_more_than_was_waited_and_no_more_than_was_left_to_take(
    before: dict[tuple[int, int], tuple[int, int]],
    after: dict[tuple[int, int], tuple[int, int]],
    wall: int,
    cores: int,
) -> None:
    ran, waited = spent(before, after)
    found = lost_to_others(ran, waited, wall, cores)
    assert 0 <= found <= waited <= sum(each for _, each in after.values())
    assert found + min(ran, cores * wall) <= cores * wall
    assert spent(after, after) == (0, 0)


QUIET = GpuReading(sm_mhz=1980, reasons=0, users=frozenset({1, 2}))


@pytest.mark.parametrize("bit", [0x08, 0x20, 0x40, 0x80])
@pytest.mark.parametrize("at_start", [True, False])
def test_every_real_slowdown_counts_at_either_end(bit: int, at_start: bool) -> None:
    slow = GpuReading(sm_mhz=1980, reasons=bit | 0x04)
    found = slowed_down(slow, QUIET, 0) if at_start else slowed_down(QUIET, slow, 0)
    assert found is not None and "slowed down" in found


@pytest.mark.parametrize(
    ("then", "now", "best", "reasons", "disturbed"),
    [
        (1980, 1790, 0, 0, False),
        (1980, 1780, 0, 0, True),
        (345, 1780, 1980, 0, True),
        (345, 1980, 1980, 0, False),
        (1980, 1200, 0, 0x04, False),
        (1980, 345, 0, 0x01, False),
        (1980, 1200, 0, 0x02, True),
    ],
)
def test_a_lower_clock_counts_unless_the_work_explains_it(
    then: int, now: int, best: int, reasons: int, disturbed: bool
) -> None:
    found = slowed_down(GpuReading(sm_mhz=then, reasons=0), GpuReading(sm_mhz=now, reasons=reasons), best)
    assert (found is not None) is disturbed


def test_what_the_driver_does_not_tell_disturbs_nothing() -> None:
    assert slowed_down(GpuReading(), GpuReading(), 0) is None
    assert slowed_down(QUIET, GpuReading(), 1980) is None
    assert newcomers(None, frozenset({1})) is None
    assert newcomers(frozenset({1}), None) is None


@pytest.mark.parametrize("ahead", [False, True])
def test_a_watch_compares_with_the_round_before_and_with_the_best(ahead: bool) -> None:
    readings = [
        QUIET,  # at the start
        GpuReading(sm_mhz=1970, reasons=0x04, users=frozenset({1})),  # a good round
        GpuReading(sm_mhz=345, reasons=0x01, users=frozenset({1, 2})),  # another, before which it idled
        GpuReading(sm_mhz=1500, reasons=0, users=frozenset({1, 2})),  # slower than in the first
        GpuReading(sm_mhz=1980, reasons=0, users=frozenset({1, 2, 77})),  # somebody came
        QUIET,  # and left
        GpuReading(),  # the driver says nothing any more
    ]
    watch = Watch(GPU, tuple, iter(readings).__next__)
    found, joined = [], []
    for _ in range(6):
        watch.before()
        assert watch.after() is None
        if ahead:
            watch.ask_gpu()
        found.append(watch.gpu_trouble())
        joined.append(watch.joined)
    assert joined == [False, False, False, True, False, False]  # the candidate may have started that one
    assert [each is None for each in found] == [True, True, False, False, True, True]
    assert found[2] == "the GPU's clock fell from 1970 to 1500 MHz"
    assert found[3] == "another process came to use the GPU: 77"
    power_cap, silence = watch.notes[-2:]
    assert "power cap" in power_cap and "driver does not tell" in silence
    assert watch.power_capped == 1


def test_an_answer_that_comes_late_counts_for_the_round_in_which_it_comes() -> None:
    unlocked, questions = threading.Event(), list[None]()

    def read() -> GpuReading:
        questions.append(None)
        if len(questions) > 1:  # the first is at the start
            unlocked.wait(60)
        return GpuReading(sm_mhz=1980 if len(questions) == 1 else 1500, reasons=0)

    watch = Watch(GPU, tuple, read)
    watch.before()
    watch.ask_gpu()
    assert watch.gpu_trouble(patient=False) is None, "it waited"
    watch.ask_gpu()
    assert len(questions) == 2, "the driver was asked again before it had answered"
    unlocked.set()
    assert watch.gpu_trouble() == "the GPU's clock fell from 1980 to 1500 MHz"
    assert watch.gpu_trouble() is None and len(questions) == 3, "the answer was used twice"


def test_who_waits_is_told_of_what_came_after_a_late_answer() -> None:
    unlocked = threading.Event()
    readings = iter((QUIET, QUIET, GpuReading(sm_mhz=1500, reasons=0)))

    def read() -> GpuReading:
        reading = next(readings)
        if reading is QUIET:
            unlocked.wait(60)
        return reading

    watch = Watch(GPU, tuple, read)
    unlocked.set()
    watch.before()
    unlocked.clear()
    watch.ask_gpu()
    assert watch.gpu_trouble(patient=False) is None
    watch.ask_gpu()  # after another round, in which the clock fell
    unlocked.set()
    assert watch.gpu_trouble() == "the GPU's clock fell from 1980 to 1500 MHz"


@schedstat
def test_what_lies_around_the_block_dilutes_nothing() -> None:
    core = min(os.sched_getaffinity(0))
    with process(SPIN, core) as mine, process(SPIN, core):
        os.kill(mine, signal.SIGSTOP)
        watch = Watch(CPU, lambda: [mine])
        watch.before()
        time.sleep(1.0)
        os.kill(mine, signal.SIGCONT)
        time.sleep(0.05)
        os.kill(mine, signal.SIGSTOP)
        time.sleep(1.0)
        assert watch.after() is not None


@pytest.mark.ci
def test_the_record_says_how_many_blocks_were_kept_repeated_and_capped(court: Court) -> None:
    right = next(member for member in members("cpu") if member.id == "honest/relu_where")
    verdict = court.judge(right.request)
    (check,) = (check for check in verdict.checks if check.name == "undisturbed")
    assert verdict.measurement is not None
    assert check.figures["kept"] == len(verdict.measurement.calls)
    assert check.figures["repeated"] == len(verdict.measurement.disturbed)
    assert check.figures["power_capped"] == 0 and "power cap" not in check.seen
    assert waits_readable() or "not seen" in check.seen


def test_a_candidate_that_waits_when_it_likes_chooses_no_rounds() -> None:
    repeats, kept, thrown = Repeats(), 0, 0
    for number in range(60):  # every third goes badly, and then it has its own threads wait
        if repeats.allowed({False} if number % 3 == 0 else (), thrown, kept) and number % 3 == 0:
            thrown += 1
        else:
            kept += 1
    assert thrown == 1


def test_on_a_loaded_machine_rounds_are_repeated_for_either_side() -> None:
    repeats = Repeats()
    assert [
        repeats.allowed(waited, 0, 9) for waited in ({True}, {False}, {False}, {False}, {True, False})
    ] == [
        True,
        True,
        True,
        False,
        True,
    ]
    assert repeats.allowed({False}, 0, 9)
    assert not repeats.allowed({True}, 5, 9)  # one for every three that are kept, and two
