"""Jobs that end together: an owner can end all its jobs at once from any thread."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from kernelproof.errors import SandboxError
from kernelproof.verifier.sandbox.model import Job, Outcome
from kernelproof.verifier.sandbox.process import Process, start

MOST_NICE = 10
"""A step is about a tenth of the time on a shared core: the tenth job gets a ninth of the time that the first
gets."""


class Group:
    """Starts jobs, and with `close` kills those that still run. Thread-safe."""

    def __init__(self, cores: tuple[int, ...] = (), *, in_turn: bool = False) -> None:
        """`cores`: the processors of every job in it; none named: as in `Job`.

        `in_turn`: a job gives way to all of other groups, and to those of its own group that run already. So
        the first of many jobs ends as early as it can, and all of them together no later.
        """
        self._cores, self._in_turn = cores, in_turn
        self._lock = threading.Lock()
        # A running process is kept alive by the thread that watches it.
        self._processes: weakref.WeakSet[Process] = weakref.WeakSet()
        self._closed = False
        self._parts = threading.local()

    @property
    def closed(self) -> bool:
        """Whether `close` was called: a thread that waits in order to start a job may give up."""
        return any(group._closed for group in self._with_part())

    @contextmanager
    def part(self) -> Iterator[Group]:
        """The jobs that this thread starts within the block are those of the given group, too: `close` of
        that one ends them alone, and this thread starts no more of them. Blocks do not nest."""
        self._parts.now = Group()
        try:
            yield self._parts.now
        finally:
            del self._parts.now

    def start(self, job: Job, *, unsafe: bool = False) -> Process:
        """As `kernelproof.verifier.sandbox.start`; raises `SandboxError` also when the group is closed."""
        self._require_open()
        process = start(replace(job, cores=self._cores, nice=self._nice()), unsafe=unsafe)
        for group in self._with_part():
            with group._lock:
                group._processes.add(process)
        if self.closed:  # while it was starting
            process.kill("closed")
            self._require_open()
        return process

    def run(self, job: Job, *, unsafe: bool = False) -> Outcome:
        """Starts a job and waits for its end. Raises as `start` does."""
        with self.start(job, unsafe=unsafe) as process:
            outcome = process.wait(None)
        assert outcome is not None
        return outcome

    def close(self) -> None:
        """Kills every running job, returns when all are gone, and refuses further ones."""
        self._closed = True
        with self._lock:
            running = list(self._processes)
        for process in running:
            process.kill("closed")

    def _nice(self) -> int:
        if not self._in_turn:
            return 0
        with self._lock:
            running = sum(process.wait(0) is None for process in self._processes)
        return min(MOST_NICE, 1 + running)

    def _with_part(self) -> tuple[Group, ...]:
        part: Group | None = getattr(self._parts, "now", None)
        return (self,) if part is None else (self, part)

    def _require_open(self) -> None:
        if self.closed:
            raise SandboxError("no job is started any more: the work was ended")
