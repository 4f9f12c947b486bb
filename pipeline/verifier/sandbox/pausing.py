"""Holding a job still from outside, letting it go on, and telling whether any of it ran meanwhile.

Where the job has a control group the kernel freezes it. Elsewhere every process gets SIGSTOP, which the
kernel undoes for any sender of SIGCONT, even a timer. `seccomp` refuses the calls that could do so, and in
any case the processor time of each process is read when all of it is at rest, and again before it goes on.

Time between two such readings is not yet work. A group counts as frozen while its threads still wake up from
the thaw before: each runs for some microseconds inside the kernel and sleeps again, on a loaded machine tens
of milliseconds later. And the time of a thread that is on a core is booked up to a tick late. Both are
bounded, however long the hold. So a job that shows more than `Held.allowed_ms` is watched: this hold is made
longer, and later ones begin when all of its threads have been at rest for a tick. What it uses in spite of
that is work (`Held.certain_ms`).
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import signal
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Self

from kernelproof.verifier.sandbox import procfs
from kernelproof.verifier.sandbox.model import Held

PATIENCE_S = 2.0
"""Most seconds until every process of a tree has stopped; a tree that grows faster is no honest job's."""
SETTLING_S = 0.002
"""Most seconds until two readings of a paused job's processor time agree."""
TICK_S = 0.01
"""The longest tick of Linux (CONFIG_HZ=100): a running thread's time is booked at least so often."""
WATCH_S = 0.5
"""Most seconds until a suspected job has been at rest for a tick. On two cores with four other programs the
last thread slept 35 ms after the freeze."""

_PREFIX = "kernelproof-job-"
_numbers = itertools.count()


class Holder:
    """Pauses and resumes one job. Calls come from one thread at a time."""

    def __init__(self, root: int, freezer: Freezer | None) -> None:
        """`root`: the process that all others descend from. It is ours (bwrap, or the warden) and must go
        on: it kills the tree if we die."""
        self._root, self._freezer = root, freezer
        self.held: frozenset[int] = frozenset()
        """The processes that are paused now."""
        self._holds = self._woken = self._threads = self._watched = 0
        self._ran_ns = self._settling_ns = self._certain_ns = 0
        self._spent: Mapping[int, int] | None = None
        """The last reading of each process's processor time in this hold; None where it is not looked."""
        self._this_ns = 0
        """What was booked since the first one."""
        self._suspected = self._at_rest = False
        """Whether it once showed too much; whether it was at rest for a tick when this hold began."""
        self._known: frozenset[int] = frozenset()
        self._halted: Mapping[int, int] | None = None
        """The processor time of each process in a `halt` that found all of the job at rest; None once it is
        held by `pause`, or goes on."""

    def report(self) -> Held:
        """What it did while it was paused, all holds together that are over or begun anew."""
        return Held(
            holds=self._holds,
            ran_ms=self._ran_ns / 1e6,
            woken=self._woken,
            threads=self._threads,
            settling_ms=self._settling_ns / 1e6,
            watched=self._watched,
            certain_ms=self._certain_ns / 1e6,
        )

    def pause(self, *, brief: bool = False) -> bool:
        """Stops all processes of the job, new ones too; False when some go on.

        `brief`: only those that were held last, if any were, and it is not looked whether they stay still.
        To find new ones takes some ten microseconds for each thread. `halt` does that when the clock has
        stopped, and a `pause` after it does not do it again.
        """
        if self._spent is not None:  # paused already: its processor time so far counts
            self._look()
        before, self._spent, self._this_ns, self._at_rest = self._spent or self._halted, None, 0, False
        found: Iterable[int] | None
        if self._freezer is not None:
            found = self._frozen()
        elif self._halted is not None and not self._awake():
            found = self.held
        else:
            found = self._stopped_again() if brief and self._known else self._stopped(before or ())
        self.held = self._known = frozenset(found or ())
        self._halted = None
        if found is not None and not brief:
            if self._is_watched():
                self._at_rest = self._rests()
            self._spent = self._settled(before)
        return found is not None

    def halt(self) -> int | None:
        """Stops all processes while a clock runs; when the last of it was at rest, by `perf_counter_ns`. None
        when some go on.

        Those that were held last are stopped first, which is quick. Processes that it has started since, or
        keeps from being stopped (a vfork(2) whose child still works), take time of the job's: the clock goes
        on until they are at rest too.
        """
        held, at = self.pause(brief=True), time.perf_counter_ns()
        if held and self._freezer is None:
            spent = procfs.spent_ns(self.held)
            if self._loose():
                self._known = frozenset()  # so all of it is looked for
                held, at = self.pause(brief=True), time.perf_counter_ns()
            self._halted = spent if held else None
        return at if held else None

    def look(self) -> float:
        """Looks whether it stayed still so far, for the last time before `resume`. That takes a while, so it
        is done before a clock is started. Returns the processor milliseconds that it used in this hold."""
        if self._spent is not None:
            self._look()
        self._spent = None
        return self._this_ns / 1e6

    def resume(self) -> None:
        """Lets it go on. Only a few calls of the kernel after a `look`, for a clock may run."""
        if self._spent is not None:
            self._look()
        if self._freezer is not None:
            self._freezer.thaw()
        else:
            for pid in self.held:
                _signal(pid, signal.SIGCONT)
        self.held, self._spent, self._halted, self._this_ns = frozenset(), None, None, 0

    def _look(self) -> None:
        grown, awake = self._grown(), self._awake()
        self._threads = max(self._threads, procfs.thread_count(self._present()))
        self._holds += 1
        if self._suspected:
            self._watched += self._at_rest
            self._certain_ns += grown if self._at_rest else 0
        elif awake or self._ran_ns / 1e6 > self.report().allowed_ms:
            self._suspected = True
            self._watched += 1
            self._rests()
            self._grown()
            awake = self._awake()  # a process that was killed is gone by now
        self._woken += awake

    def _present(self) -> frozenset[int]:
        return self.held | (self._freezer.pids() if self._freezer is not None else set())

    def _grown(self) -> int:
        """Nanoseconds that were booked since the last reading."""
        assert self._spent is not None
        before, self._spent = self._spent, procfs.spent_ns(self._present())
        grown = sum(used - before.get(pid, 0) for pid, used in self._spent.items())
        self._ran_ns += grown
        self._this_ns += grown
        return grown

    def _awake(self) -> int:
        """Processes that were stopped, and are not. The processor time alone may not show them yet."""
        return sum(not procfs.at_rest(pid) for pid in self.held) if self._freezer is None else 0

    def _settled(self, before: Mapping[int, int] | None) -> Mapping[int, int]:
        """The processor time of each held process, once two readings agree. `before`: the last one, where it
        was held already."""
        first = spent = procfs.spent_ns(self.held)
        until = time.monotonic() + SETTLING_S
        while spent != before and time.monotonic() < until:
            time.sleep(0.00005)
            before, spent = spent, procfs.spent_ns(self.held)
        self._settling_ns += sum(used - first.get(pid, 0) for pid, used in spent.items())
        return spent

    def _is_watched(self) -> bool:
        """Whether more evidence is wanted of a suspected job."""
        report = self.report()
        return self._suspected and not report.woken and report.certain_ms <= report.allowed_ms

    def _rests(self) -> bool:
        """Waits until all its threads are at rest for a tick. False when they are not in `WATCH_S`: what it
        used in the second half of that, if more than a tick, grows for as long as one watches."""
        began, late, used = time.monotonic(), 0, self._used_ns()
        while (waited := time.monotonic() - began) < WATCH_S:
            sleeping = not any(map(procfs.runs, self._present()))
            time.sleep(TICK_S)
            before, used = used, self._used_ns()
            if sleeping and used == before:
                return True
            late += used - before if waited > WATCH_S / 2 else 0
        self._certain_ns += late if late > TICK_S * 1e9 else 0
        return False

    def _used_ns(self) -> int:
        return sum(procfs.spent_ns(self._present()).values())

    def _frozen(self) -> set[int] | None:
        assert self._freezer is not None
        try:
            if self._freezer.freeze(time.monotonic() + PATIENCE_S):
                return self._freezer.pids()
        except OSError:  # the job is over, and its group removed
            return set()
        return None

    def _loose(self) -> bool:
        """Whether, after a brief pause by signals, something of the job may still run."""
        others = set(procfs.descendants(self._root)) - self.held - {self._root}
        return bool(others) or not all(map(procfs.threads_at_rest, self.held))

    def _stopped_again(self) -> frozenset[int] | None:
        for pid in self._known:
            _signal(pid, signal.SIGSTOP)
        return self._known if _rest(self._known, time.monotonic() + PATIENCE_S, procfs.at_rest) else None

    def _stopped(self, held: Iterable[int]) -> set[int] | None:
        """`held`: processes whose threads were all at rest when they were last looked at."""
        deadline = time.monotonic() + PATIENCE_S
        stopped = set(held)
        while time.monotonic() < deadline:
            new = set(procfs.descendants(self._root)) - stopped - {self._root}
            # A stopped process starts no other: when all that were there have stopped, no new one can come.
            # A process that another one continued meanwhile counts as new.
            new |= {pid for pid in stopped if not procfs.at_rest(pid)}
            if not new:
                return stopped
            for pid in new:
                _signal(pid, signal.SIGSTOP)
            if not _rest(new, deadline, procfs.threads_at_rest):
                return None
            stopped |= new
        return None


def _rest(pids: Iterable[int], deadline: float, at_rest: Callable[[int], bool]) -> bool:
    """Waits until all of these are `at_rest`; False when they are not at the deadline.

    A process counts as stopped when its first thread is. Others may be on their way: the processor time that
    they still use would look as if they had gone on.
    """
    for pid in pids:
        while not at_rest(pid):
            if time.monotonic() > deadline:
                return False
            time.sleep(0.0001)
    return True


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


class Freezer:
    """One job's control group, by which the kernel holds it still: cgroup v2's freezer (cgroup-v2.rst).

    A frozen process runs no instruction of its own until it is thawed, whatever signals reach it, and the
    processes that it starts are in the same group. It takes a writable cgroup v2 hierarchy, which containers
    seldom have. `close` removes the group, once nothing of the job is left.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._freeze, self._events = str(folder / "cgroup.freeze"), str(folder / "cgroup.events")

    @classmethod
    def of(cls, pids: Iterable[int]) -> Self | None:
        """A new group with these processes in it; None where there is none to be had."""
        parent = _own_group()
        if parent is None:
            return None
        folder = parent / f"{_PREFIX}{os.getpid()}-{next(_numbers)}"
        try:
            folder.mkdir()
            made = cls(folder)
        except OSError:
            return None
        try:
            for pid in pids:
                (folder / "cgroup.procs").write_text(str(pid))
        except OSError:
            made.close()
            return None
        return made

    def freeze(self, deadline: float) -> bool:
        """Holds all that is in the group; False when some of it still runs at the deadline (monotonic)."""
        _write(self._freeze, b"1")
        while b"frozen 1" not in procfs.read(self._events):
            if time.monotonic() > deadline:
                return False
            time.sleep(0.00005)
        return True

    def thaw(self) -> None:
        """Lets the group go on."""
        with contextlib.suppress(OSError):  # the job is over
            _write(self._freeze, b"0")

    def pids(self) -> set[int]:
        """The processes in the group now."""
        try:
            return set(map(int, procfs.read(str(self._folder / "cgroup.procs")).split()))
        except OSError:  # the job is over, and its group removed
            return set()

    def close(self) -> None:
        """Removes the group. A group that still has processes in it stays."""
        with contextlib.suppress(OSError):
            self._folder.rmdir()


def freezer_offered() -> bool:
    """Whether this process can make such groups here."""
    return _own_group() is not None


@functools.cache
def _own_group() -> Path | None:
    """The group of this process, if groups can be made and processes be moved within it: found by doing."""
    try:
        own = _own_folder()
        if own is None:
            return None
        _remove_leftovers(own)
        trial = own / f"{_PREFIX}{os.getpid()}-trial"
        trial.mkdir()
    except OSError:
        return None
    try:
        able = os.access(own / "cgroup.procs", os.W_OK) and (trial / "cgroup.freeze").exists()
        return own if able else None
    finally:
        trial.rmdir()


def _own_folder() -> Path | None:
    """Where this process's group lies, by /proc/self/cgroup and /proc/self/mountinfo (proc(5))."""
    lines = Path("/proc/self/cgroup").read_text().splitlines()
    group = next((line.removeprefix("0::") for line in lines if line.startswith("0::")), None)
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        if group is not None and after.split()[:1] == ["cgroup2"]:
            root, place = before.split()[3:5]
            if Path(group).is_relative_to(root):
                return Path(place) / Path(group).relative_to(root)
    return None


def _remove_leftovers(folder: Path) -> None:
    """Removes groups of harnesses that were killed before they could."""
    for old in folder.glob(f"{_PREFIX}*"):
        owner = old.name.removeprefix(_PREFIX).partition("-")[0]
        if not Path("/proc", owner).exists():
            with contextlib.suppress(OSError):
                old.rmdir()


def _write(path: str, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, data)
    finally:
        os.close(descriptor)
