"""Holding a job still from outside, letting it go on, and telling whether any of it ran meanwhile.

Where the job has a control group the kernel freezes it. Elsewhere every process gets SIGSTOP, which the
kernel undoes for any sender of SIGCONT, even a timer. `seccomp` refuses the calls that could do so, and in
any case the processor time of each process is read when all of it is at rest, and again before it goes on.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterable, Mapping

from kernelproof.sandbox import procfs
from kernelproof.sandbox.freezer import Freezer

PATIENCE_S = 2.0
"""Most seconds until every process of a tree has stopped; a tree that grows faster is no honest job's."""


class Holder:
    """Pauses and resumes one job. Calls come from one thread at a time."""

    def __init__(self, root: int, freezer: Freezer | None) -> None:
        """`root`: the process that all others descend from. It is ours (bwrap, or the warden) and must go
        on: it kills the tree if we die."""
        self._root, self._freezer = root, freezer
        self.held: frozenset[int] = frozenset()
        """The processes that are paused now."""
        self.holds = 0
        """How often it was looked whether it stayed still."""
        self.ran_ns = 0
        """Processor nanoseconds that it used while it was paused, all times together."""
        self.threads = 0
        """The most threads that it had then."""
        self.woken = 0
        """How often a process was found awake that had been stopped."""
        self._spent: Mapping[int, int] | None = None
        self._known: frozenset[int] = frozenset()

    def pause(self, *, brief: bool = False) -> bool:
        """Stops all processes of the job, new ones too; False when some go on.

        `brief`: only those that were held last, and it is not looked whether they stay still. To find new
        ones takes some ten microseconds for each thread. `halt` does that when the clock has stopped.
        """
        if self._spent is not None:  # paused already: its processor time so far counts
            self._look()
        found: Iterable[int] | None
        if self._freezer is not None:
            found = self._frozen()
        else:
            found = self._stopped_again() if brief and self._known else self._stopped()
        self.held = self._known = frozenset(found or ())
        self._spent = None if found is None or brief else procfs.spent_ns(self.held)
        return found is not None

    def halt(self) -> int | None:
        """Stops all processes while a clock runs; when the last of it was at rest, by `perf_counter_ns`. None
        when some go on.

        Those that were held last are stopped first, which is quick. Processes that it has started since, or
        keeps from being stopped (a vfork(2) whose child still works), take time of the job's: the clock goes
        on until they are at rest too.
        """
        held, at = self.pause(brief=True), time.perf_counter_ns()
        if held and self._loose():
            held, at = self.pause(), time.perf_counter_ns()
        return at if held else None

    def look(self) -> None:
        """Looks whether it stayed still so far, for the last time before `resume`. That takes a while, so it
        is done before a clock is started."""
        if self._spent is not None:
            self._look()
        self._spent = None

    def resume(self) -> None:
        """Lets it go on. Only a few calls of the kernel after a `look`, for a clock may run."""
        if self._spent is not None:
            self._look()
        if self._freezer is not None:
            self._freezer.thaw()
        else:
            for pid in self.held:
                _signal(pid, signal.SIGCONT)
        self.held, self._spent = frozenset(), None

    def _look(self) -> None:
        assert self._spent is not None
        now = self.held | (self._freezer.pids() if self._freezer is not None else set())
        spent = procfs.spent_ns(now)
        self.ran_ns += sum(used - self._spent.get(pid, 0) for pid, used in spent.items())
        # The kernel brings a running thread's time up to date a few hundred times a second only.
        if self._freezer is None:
            self.woken += sum(not procfs.at_rest(pid) for pid in self._spent)
        self.threads = max(self.threads, procfs.thread_count(now))
        self.holds += 1
        self._spent = spent

    def _frozen(self) -> set[int] | None:
        assert self._freezer is not None
        try:
            if self._freezer.freeze(time.monotonic() + PATIENCE_S):
                return self._freezer.pids()
        except OSError:  # the job is over, and its group removed
            return set()
        return None

    def _loose(self) -> bool:
        """Whether, after a brief pause, something of the job may still run."""
        if self._freezer is not None:
            return False
        others = set(procfs.descendants(self._root)) - self.held - {self._root}
        return bool(others) or not all(map(procfs.threads_at_rest, self.held))

    def _stopped_again(self) -> frozenset[int] | None:
        for pid in self._known:
            _signal(pid, signal.SIGSTOP)
        return self._known if _rest(self._known, time.monotonic() + PATIENCE_S, procfs.at_rest) else None

    def _stopped(self) -> set[int] | None:
        deadline = time.monotonic() + PATIENCE_S
        stopped: set[int] = set()
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
