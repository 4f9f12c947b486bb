"""A paused job does nothing, children and threads included, until it is resumed; killing it still works."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from kernelproof.verifier.sandbox import Job, probe, python_paths, start

TICKING = """
import os, threading, time

def tick(name):
    while True:
        with open(name, "a") as file:
            file.write("x")
        time.sleep(0.005)

if os.fork() == 0:
    tick("child")
threading.Thread(target=tick, args=("thread",), daemon=True).start()
tick("main")
"""
NAMES = ("main", "thread", "child")


def sizes(scratch: Path) -> list[int]:
    return [(scratch / name).stat().st_size if (scratch / name).exists() else 0 for name in NAMES]


def wait_for_growth(scratch: Path, before: list[int]) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if all(now > then for now, then in zip(sizes(scratch), before, strict=True)):
            return
        time.sleep(0.01)
    pytest.fail(f"it does not run: {before} then, {sizes(scratch)} now")


def job_of(code: str, folder: Path, *, pausable: bool = False) -> Job:
    """`pausable`: it has a control group of its own, where there is one to be had."""
    scratch = folder / "scratch"
    scratch.mkdir()
    argv = (sys.executable, "-I", "-c", code)
    return Job(argv=argv, scratch=scratch, read_only=python_paths(), pausable=pausable)


def wait_for(file: Path) -> None:
    deadline = time.monotonic() + 20
    while not file.exists():
        assert time.monotonic() < deadline, f"no {file.name} came"
        time.sleep(0.01)


both_ways = pytest.mark.parametrize("pausable", [True, False], ids=["group", "signals"])


@both_ways
def test_nothing_of_a_paused_job_runs(tmp_path: Path, pausable: bool) -> None:
    job, scratch = job_of(TICKING, tmp_path, pausable=pausable), tmp_path / "scratch"
    with start(job) as process:
        wait_for_growth(scratch, [0, 0, 0])
        for _ in range(3):
            process.pause()
            held = sizes(scratch)
            time.sleep(0.1)
            assert sizes(scratch) == held
            process.resume()
            wait_for_growth(scratch, held)
        held_still = process.held_still()
        assert (held_still.holds, held_still.woken) == (3, 0)
        assert held_still.ran_ms < 0.1
        process.pause()
        outcome = process.kill()
    assert outcome.state == "killed"


RESTLESS = """
import os, signal, time

with open("main", "a") as file:
    file.write("x")
parent = os.getpid()
if os.fork() == 0:
    while True:  # wakes who was stopped, and has ever new children
        try:
            os.kill(parent, signal.SIGCONT)
        except ProcessLookupError:
            os._exit(0)
        if os.fork() == 0:
            time.sleep(0.01)
            os._exit(0)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass
while True:
    with open("thread", "a") as file:
        file.write("x")
"""


@both_ways
def test_a_job_that_wakes_itself_and_forks_is_held_or_killed(tmp_path: Path, pausable: bool) -> None:
    job, scratch = job_of(RESTLESS, tmp_path, pausable=pausable), tmp_path / "scratch"
    with start(job) as process:
        wait_for(scratch / "thread")
        process.pause()
        held = (scratch / "thread").stat().st_size
        time.sleep(0.2)
        assert (scratch / "thread").stat().st_size == held


BUSY = """
with open("begun", "w"):
    pass
while True:
    sum(range(1000))
"""


def test_a_group_of_its_own_is_not_let_go_on_by_a_signal(tmp_path: Path) -> None:
    if probe().layers["pause"] == "SIGSTOP":
        pytest.skip("no control group can be made here")
    with start(job_of(BUSY, tmp_path, pausable=True)) as process:
        wait_for(tmp_path / "scratch" / "begun")
        process.pause()
        for pid in process.pids():
            os.kill(pid, signal.SIGCONT)
        time.sleep(0.3)
        process.resume()
        held = process.held_still()
    assert held.ran_ms < 1


THREADS_WITHOUT_THE_FIRST = """
import ctypes, os, platform, threading

def work():
    with open("begun", "w"):
        pass
    while True:
        sum(range(1000))

threading.Thread(target=work).start()
ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[platform.machine()], 0)  # ends this thread alone
"""


@both_ways
def test_a_process_whose_first_thread_has_ended_is_held(tmp_path: Path, pausable: bool) -> None:
    with start(job_of(THREADS_WITHOUT_THE_FIRST, tmp_path, pausable=pausable)) as process:
        wait_for(tmp_path / "scratch" / "begun")
        for _ in range(10):
            process.pause()
            time.sleep(0.01)
            process.resume()
            time.sleep(0.01)
        held = process.held_still()
    assert (held.holds, held.woken) == (10, 0)
    assert held.ran_ms < 1


def test_nobody_looks_at_a_brief_pause(tmp_path: Path) -> None:
    with start(job_of(BUSY, tmp_path)) as process:
        process.halt()
        process.resume()
        assert process.held_still().holds == 0


LATE_CHILD = """
import os, time
from pathlib import Path

Path("ready").touch()
while not Path("go").exists():
    time.sleep(0.005)
if os.fork() == 0:
    while True:
        with open("child", "a") as file:
            file.write("x")
        time.sleep(0.005)
time.sleep(60)
"""


@both_ways
def test_what_was_started_since_the_last_hold_is_at_rest_too(tmp_path: Path, pausable: bool) -> None:
    scratch = tmp_path / "scratch"
    with start(job_of(LATE_CHILD, tmp_path, pausable=pausable)) as process:
        wait_for(scratch / "ready")
        process.pause()
        process.resume()
        (scratch / "go").touch()
        wait_for(scratch / "child")
        process.halt()
        held = (scratch / "child").stat().st_size
        time.sleep(0.1)
        assert (scratch / "child").stat().st_size == held
        process.resume()
        deadline = time.monotonic() + 20
        while (scratch / "child").stat().st_size == held:
            assert time.monotonic() < deadline
            time.sleep(0.01)


def test_who_was_let_go_on_from_outside_is_held_again_with_its_new_child(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    with start(job_of(LATE_CHILD, tmp_path)) as process:
        wait_for(scratch / "ready")
        process.pause()
        (scratch / "go").touch()
        for pid in process.pids():
            os.kill(pid, signal.SIGCONT)
        wait_for(scratch / "child")
        process.pause()
        held = (scratch / "child").stat().st_size
        time.sleep(0.1)
        assert (scratch / "child").stat().st_size == held


def test_who_was_let_go_on_between_halt_and_pause_is_held_again(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    with start(job_of(TICKING, tmp_path)) as process:
        wait_for_growth(scratch, [0, 0, 0])
        process.pause()
        process.resume()
        process.halt()
        held = sizes(scratch)
        for pid in process.pids():
            os.kill(pid, signal.SIGCONT)
        wait_for_growth(scratch, held)
        process.pause()
        held = sizes(scratch)
        time.sleep(0.1)
        assert sizes(scratch) == held


IN_VFORK = """
import os, time
from pathlib import Path

os.mkfifo("fifo")
Path("ready").touch()
while not Path("go").exists():
    time.sleep(0.005)
Path("gone").touch()
os.posix_spawn("/nowhere", ["nowhere"], {}, file_actions=[(os.POSIX_SPAWN_OPEN, 0, "fifo", os.O_RDONLY, 0)])
"""


def test_until_a_vfork_is_over_the_clock_goes_on(tmp_path: Path) -> None:
    """The child shares all memory and is not known yet. Its parent cannot be stopped before it ends."""
    scratch = tmp_path / "scratch"

    def end_it() -> None:
        time.sleep(0.5)
        (scratch / "fifo").write_bytes(b"")

    with start(job_of(IN_VFORK, tmp_path)) as process:
        wait_for(scratch / "ready")
        process.pause()
        process.resume()
        (scratch / "go").touch()
        wait_for(scratch / "gone")
        while not any(psutil.Process(pid).status() == psutil.STATUS_DISK_SLEEP for pid in process.pids()):
            time.sleep(0.01)
        began = time.perf_counter_ns()
        threading.Thread(target=end_it).start()
        at = process.halt()
    assert 0.4e9 < at - began < 1.9e9


def test_control_groups_are_removed(tmp_path: Path) -> None:
    with start(job_of(BUSY, tmp_path, pausable=True)) as process:
        groups = {Path(f"/proc/{pid}/cgroup").read_text() for pid in process.pids()}
        process.pause()
        process.kill()
    own = Path("/proc/self/cgroup").read_text()
    if probe().layers["pause"] == "SIGSTOP":
        assert groups == {own}
        return
    (group,) = (line for line in groups.pop().splitlines() if line.startswith("0::"))
    assert not groups and group not in own.splitlines()
    assert not list(Path("/sys/fs/cgroup").rglob(group.rpartition("/")[2]))
