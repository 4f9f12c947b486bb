"""Who works while it is held is seen; who only waits, spins when it may, or wakes up late is not said to."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from kernelproof.verifier.sandbox import procfs, start
from kernelproof.verifier.sandbox.pausing import Holder
from tests.sandbox.test_pausing import BUSY, both_ways, job_of, wait_for


@pytest.mark.parametrize("halted", [False, True], ids=["paused", "halted before"])
def test_who_goes_on_while_held_is_seen(tmp_path: Path, halted: bool) -> None:
    """As if it had a way to have SIGCONT sent that the filter does not know: here we send it."""
    with start(job_of(BUSY, tmp_path)) as process:
        wait_for(tmp_path / "scratch" / "begun")
        if halted:
            process.halt()
        process.pause()
        for pid in process.pids():
            os.kill(pid, signal.SIGCONT)
        time.sleep(0.3)
        process.resume()
        held = process.held_still()
    assert held.holds == 1
    assert held.woken >= 1
    assert held.ran_ms > 20


def continue_for(seconds: float, pids: Iterable[int]) -> None:
    """What a helper outside would do."""
    for number in (signal.SIGCONT, signal.SIGSTOP):
        for pid in pids:
            os.kill(pid, number)
        time.sleep(seconds)


def test_time_that_comes_once_is_counted_and_is_no_work_yet(tmp_path: Path) -> None:
    """Late bookkeeping comes so: a thread's last tick is booked after the hold began."""
    with start(job_of(BUSY, tmp_path)) as process:
        wait_for(tmp_path / "scratch" / "begun")
        for turn in range(12):
            process.pause()
            if turn == 0:
                continue_for(0.1, process.pids())
            used = process.look()
            assert used > 1 if turn == 0 else used < 0.5
            process.resume()
            time.sleep(0.005)
        held = process.held_still()
    assert (held.holds, held.woken) == (12, 0)
    assert held.ran_ms > held.allowed_ms
    assert held.certain_ms < 0.5 and held.watched > 1


def test_who_goes_on_and_stops_again_in_every_hold_works(tmp_path: Path) -> None:
    with start(job_of(BUSY, tmp_path)) as process:
        wait_for(tmp_path / "scratch" / "begun")
        before = process.held_still()
        for _ in range(4):
            process.pause()
            continue_for(0.1, process.pids())
            process.pause()  # a second look, while it is paused
            process.resume()
        held = process.held_still()
    assert (before.holds, before.ran_ms, before.woken) == (0, 0.0, 0)
    assert (held.holds, held.woken) == (8, 0)
    assert held.ran_ms > held.certain_ms > held.allowed_ms


CONTINUED_BY_A_TIMER = """
import ctypes, platform, signal, struct, time

signal.signal(signal.SIGCONT, lambda *_: None)  # else the timer's signal is ignored, and not sent again
libc = ctypes.CDLL(None)
create, arm = {"x86_64": (222, 223), "aarch64": (107, 110)}[platform.machine()]
event, timer = ctypes.create_string_buffer(struct.pack("<qii48x", 0, signal.SIGCONT, 0)), ctypes.c_int()
assert libc.syscall(create, 1, event, ctypes.byref(timer)) == 0
print("begun", flush=True)
while True:  # a signal that waits for a core when SIGSTOP comes is lost, so it is armed anew, and sleeps
    libc.syscall(arm, timer, 0, struct.pack("<qqqq", 0, 5_000_000, 0, 5_000_000), None)
    sum(range(10000))
    time.sleep(0.002)
"""


def test_a_timer_that_continues_a_stopped_process_is_seen() -> None:
    """The kernel's own timer: no filter refuses it here, as if there were another way to it."""
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {CONTINUED_BY_A_TIMER!r}])"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as root:
        holder = Holder(root.pid, None)
        try:
            assert root.stdout is not None and root.stdout.readline() == "begun\n"
            for _ in range(20):
                holder.pause()
                time.sleep(0.02)
                holder.resume()
                time.sleep(0.01)
                if holder.report().woken:
                    break
        finally:
            for pid in procfs.descendants(root.pid):
                os.kill(pid, signal.SIGKILL)
    assert holder.report().woken


HONEST = """
import gc, os, sys, threading, time

kind, count = sys.argv[1], int(sys.argv[2])

def asleep():
    threading.Event().wait()

def dozing():
    while True:
        time.sleep(0.0003)

def spinning():  # as a pool that waits for work
    while True:
        until = time.monotonic() + 0.002
        while time.monotonic() < until:
            pass
        time.sleep(0.001)

def collecting():
    while True:
        cycles = [[] for _ in range(5000)]
        for cycle in cycles:
            cycle.append(cycle)
        del cycles, cycle
        gc.collect()

def child():
    if os.fork() == 0:
        time.sleep(600)

def interrupted():
    signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)

import signal
for _ in range(count):
    if kind in ("child", "interrupted"):
        globals()[kind]()
    else:
        threading.Thread(target=globals()[kind], daemon=True).start()
with open("begun", "w"):
    pass
while True:
    sum(range(2000))
    time.sleep(0.0005)
"""
HONEST_JOBS = [
    ("asleep", 2),
    ("asleep", 100),
    ("asleep", 250),
    ("dozing", 100),
    ("spinning", 7),
    ("collecting", 2),
    ("child", 20),
    ("interrupted", 1),
]


@pytest.mark.few(3)
@pytest.mark.parametrize("others", [0, 6], ids=["quiet", "loaded"])
@both_ways
@pytest.mark.parametrize(("kind", "count"), HONEST_JOBS, ids=lambda value: str(value))
def test_who_only_waits_spins_or_collects_is_not_said_to_work(
    tmp_path: Path, kind: str, count: int, pausable: bool, others: int
) -> None:
    job = job_of(HONEST, tmp_path, pausable=pausable)
    job = replace(job, argv=(*job.argv, kind, str(count)))
    spin = (sys.executable, "-c", "while True: pass")
    with ExitStack() as stack:
        for _ in range(others):
            stack.callback(stack.enter_context(subprocess.Popen(spin)).kill)
        process = stack.enter_context(start(job))
        wait_for(tmp_path / "scratch" / "begun")
        for _ in range(30):
            process.halt()
            process.resume()  # its threads still wake up when it is held again
            process.pause()
            time.sleep(0.005)
            process.resume()
        held = process.held_still()
    assert held.holds == 30 and not held.woken
    assert held.threads >= count
    assert held.certain_ms <= held.allowed_ms
