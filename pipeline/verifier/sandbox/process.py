"""Starting a job, watching it, and ending it with proof. `Group` ends all jobs of one owner at once, from
any thread.

A process that SIGKILL ended was taken for lack of memory where this machine ran out of it (`Shortage`). The
kernel counts what it ended for that reason (`oom_kill` in /proc/vmstat). Daemons such as earlyoom and
systemd-oomd act before it does, while little is left (`MemAvailable` in /proc/meminfo).
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import select
import signal
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from kernelproof.errors import SandboxError
from kernelproof.verifier.sandbox import procfs
from kernelproof.verifier.sandbox.model import Confinement, Held, Job, Outcome, State
from kernelproof.verifier.sandbox.pausing import PATIENCE_S, Holder
from kernelproof.verifier.sandbox.probe import launch, probe
from kernelproof.verifier.sandbox.tree import Tree


@contextmanager
def on_cores(cores: Sequence[int]) -> Iterator[None]:
    """This thread keeps to these cores meanwhile; none named: it goes where it may."""
    before = os.sched_getaffinity(0)
    with suppress(OSError):  # taken from us meanwhile
        os.sched_setaffinity(0, cores or before)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


SCARCE = 0.1
"""The part of the machine's memory that is left when daemons begin to kill."""
LARGE = 0.5
"""A job that held more than this part of the memory there is has itself to blame."""


class Shortage:
    """A shortage from now on."""

    def __init__(self) -> None:
        self._before, self._scarce = _numbers("/proc/vmstat").get("oom_kill"), False

    def look(self) -> None:
        """Notes whether little is left right now."""
        left = _numbers("/proc/meminfo")
        self._scarce |= left.get("MemAvailable:", 1) < SCARCE * left.get("MemTotal:", 0)

    @property
    def seen(self) -> bool:
        """Whether little was left at a look, or the kernel has ended something since."""
        return self._scarce or _numbers("/proc/vmstat").get("oom_kill") != self._before


@functools.cache
def machine_bytes() -> int:
    """The memory that all processes here may have together: the machine's, or its control group's."""
    found = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, kinds, group = line.split(":", 2)
        top = "/sys/fs/cgroup/memory" if kinds == "memory" else "/sys/fs/cgroup"
        for folder in (top, top + group):  # in a container its own group is the top
            for name in ("memory.max", "memory.limit_in_bytes"):
                with suppress(OSError, ValueError):  # not this one, or `max`
                    found.append(int(Path(folder, name).read_text()))
    return min(found)


def _numbers(file: str) -> dict[str, int]:
    try:
        lines = Path(file).read_text().splitlines()
    except OSError:
        return {}
    return {words[0]: int(words[1]) for line in lines if len(words := line.split()) > 1}


WATCH_S = 0.2
"""How often the tree's processor time and memory are read."""
SCRATCH_WATCH_S = 1.0
"""How often the disk space under the scratch directory is read."""
GRACE_S = 10.0
"""How long a killed tree may take to be gone before it is called unkillable."""
FLOOD = 64
"""A stream that gives this many times `Limits.output_bytes` ends the job."""

_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|[\]PX^_].*?(?:\x07|\x1b\\|\Z)"  # OSC and other strings: window titles, links
    r"|[ -/]*[0-~])",  # two- and three-character sequences
    re.DOTALL,
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def plain_text(raw: bytes) -> str:
    """Text that is safe to print: escape sequences, control and direction characters removed."""
    text = raw.decode("utf-8", errors="replace").replace("\r\n", "\n")
    return _CONTROLS.sub("", _ESCAPES.sub("", text))


class Process:
    """A job that was started. Leaving the `with` block kills it. Methods may be called from any thread."""

    def __init__(self, job: Job, confinement: Confinement, tree: Tree) -> None:
        self.job = job
        self.confinement = confinement
        self.pid = tree.root
        """The process outside that stands for the whole tree."""
        self._memory_bytes = job.limits.memory_bytes
        self._tree = tree
        self._usage = procfs.TreeUsage(tree.root)
        self._output = {tree.stdout: bytearray(), tree.stderr: bytearray()}
        self._flowed = dict.fromkeys(self._output, 0)
        self._shortage = Shortage()
        self._kill_reason: str | None = None
        self._holder = Holder(tree.root, tree.freezer)
        self._wake_read, self._wake_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._outcome: Outcome | None = None
        self._started = time.monotonic()
        threading.Thread(target=self._monitor, name=f"sandbox-{self.pid}", daemon=True).start()

    def wait(self, timeout: float | None = None) -> Outcome | None:
        """The outcome, or None when the job still runs after `timeout` seconds."""
        self._done.wait(timeout)
        return self._outcome

    def allow_memory(self, nbytes: int) -> None:
        """Sets another limit on the memory of the tree: for a job whose work is known after its start."""
        self._memory_bytes = nbytes

    def output(self) -> tuple[str, str]:
        """What it has written so far to stdout and stderr, as in `Outcome`."""
        stdout, stderr = (plain_text(bytes(data)) for data in self._output.values())
        return stdout, stderr

    def pids(self) -> tuple[int, ...]:
        """The job's processes now; without a search while it is paused."""
        if self._holder.held:
            return tuple(self._holder.held)
        return tuple(pid for pid in procfs.descendants(self.pid) if pid != self.pid)

    def pause(self) -> None:
        """Holds every process of the job still; one that cannot be held is killed."""
        if not self._done.is_set() and not self._holder.pause():
            self._kill_restless()

    def halt(self) -> int:
        """The same while a clock runs. Returns when the last of the job was at rest, by `perf_counter_ns`.

        An honest job is at rest as soon as the processes are that were held last; the search for others
        comes after that. Whether it stays still is not looked at (`held_still`).
        """
        at = None if self._done.is_set() else self._holder.halt()
        if at is None:
            if not self._done.is_set():
                self._kill_restless()
            return time.perf_counter_ns()
        return at

    def _kill_restless(self) -> None:
        self.kill(f"it could not be held still within {PATIENCE_S:g} s")

    def look(self) -> float:
        """Looks whether a paused job stayed still, so that `resume` is quick. Returns the processor
        milliseconds that it used since it was last paused."""
        return self._holder.look()

    def resume(self) -> None:
        """Lets a paused job go on."""
        self._holder.resume()

    def held_still(self) -> Held:
        """What it did while it was paused, all times together that are over or begun anew."""
        return self._holder.report()

    def kill(self, reason: str = "killed") -> Outcome:
        """Ends the whole tree and returns the outcome: of the job itself where it ended before."""
        with self._lock:
            if not self._done.is_set():
                self._kill_reason = self._kill_reason or reason
                with contextlib.suppress(BlockingIOError):
                    os.write(self._wake_write, b"k")
        self._done.wait()
        assert self._outcome is not None
        return self._outcome

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill("no longer needed")

    def _monitor(self) -> None:
        try:
            state, reason = self._watch()
        except Exception as problem:  # whatever happens to the watch, nothing may go on unwatched
            state, reason = "killed", f"the watch failed: {problem!r}"
        try:
            self._outcome = self._finish(state, reason)
        except Exception as problem:  # then nothing is proven
            self._outcome = self._unproven(repr(problem))
        with self._lock:
            os.close(self._wake_read)
            os.close(self._wake_write)
            self._done.set()

    def _unproven(self, reason: str) -> Outcome:
        wall_s, usage = time.monotonic() - self._started, self._usage
        return Outcome(
            state="unkillable",
            exit_code=None,
            signal=None,
            stdout="",
            stderr="",
            wall_s=wall_s,
            cpu_s=usage.cpu_s,
            peak_rss_bytes=usage.peak_rss_bytes,
            kill_ms=0.0,
            reason=reason,
        )

    def _watch(self) -> tuple[State | None, str]:
        """Until the job ends or must end: (None, "") when it ended itself, else the state and why."""
        limits, poll = self.job.limits, select.poll()
        for descriptor in (*self._output, self._wake_read, self._tree.exit_fd):
            poll.register(descriptor, select.POLLIN)
        next_watch = self._started
        next_scratch = self._started + SCRATCH_WATCH_S
        while True:
            now = time.monotonic()
            until = [next_watch] + ([self._started + limits.wall_s] if limits.wall_s is not None else [])
            ready = {descriptor for descriptor, _ in poll.poll(max(0.0, min(until) - now) * 1000 + 1)}
            for descriptor in ready & self._output.keys():
                if not self._drain(descriptor):
                    poll.unregister(descriptor)
                if self._flowed[descriptor] > FLOOD * limits.output_bytes:
                    return "output", f"more than {FLOOD * limits.output_bytes} bytes of output"
            if self._tree.exit_fd in ready:
                return None, ""
            if self._wake_read in ready:
                return "killed", self._kill_reason or "killed"
            now = time.monotonic()
            if limits.wall_s is not None and now - self._started >= limits.wall_s:
                return "timeout", f"longer than {limits.wall_s:g} s"
            if now >= next_watch:
                next_watch = now + WATCH_S
                self._usage.sample()
                self._shortage.look()
                if self._usage.rss_bytes > self._memory_bytes:
                    return "memory", self._too_much()
                if self._usage.cpu_s > limits.cpu_s:
                    return "cpu", f"more than {limits.cpu_s:g} s of processor time"
            if now >= next_scratch:
                next_scratch = now + SCRATCH_WATCH_S
                used = procfs.disk_usage(self.job.scratch)
                if used is None or used > limits.scratch_bytes:
                    return "output", f"more than {limits.scratch_bytes} bytes or too many files in scratch"

    def _drain(self, descriptor: int) -> bool:
        """Reads what is there, keeps what fits; False at the end of the stream."""
        try:
            data = os.read(descriptor, 1 << 16)
        except BlockingIOError:
            return True
        kept = self._output[descriptor]
        kept += data[: max(0, self.job.limits.output_bytes - len(kept))]
        self._flowed[descriptor] += len(data)
        return bool(data)

    def _finish(self, state: State | None, reason: str) -> Outcome:
        began = time.monotonic()
        if state in ("killed", "timeout"):  # a job that needs ever more memory is slow as well
            self._usage.sample()
            if self._usage.rss_bytes > self._memory_bytes:
                state, reason = "memory", self._too_much()
        ended = self._tree.end(GRACE_S)
        kill_ms = (time.monotonic() - began) * 1000 if state is not None else 0.0
        for descriptor in self._output:  # what was still in the pipes; nobody can write any more
            while self._flowed[descriptor] <= FLOOD * self.job.limits.output_bytes:
                before = self._flowed[descriptor]
                self._drain(descriptor)
                if self._flowed[descriptor] == before:
                    break
        stdout, stderr = self.output()
        self._tree.close()
        exit_code, number = ended.exit_code, ended.signal
        shortage = self._shortage.seen
        used_it_up = shortage and self._usage.peak_rss_bytes > LARGE * machine_bytes()
        if ended.left:
            state, reason = "unkillable", f"still running: {', '.join(map(str, ended.left))}"
        elif state is None and (number == signal.SIGXCPU or self._usage.cpu_s > self.job.limits.cpu_s):
            state, reason = "cpu", f"more than {self.job.limits.cpu_s:g} s of processor time"
        elif state is None and number == signal.SIGKILL and used_it_up:
            held = self._usage.peak_rss_bytes
            state, reason = "memory", f"{held} bytes of memory, and this machine had no more"
        elif state is None and number == signal.SIGKILL:  # nothing inside can send it, and we did not
            why = ": the machine ran out of memory" if shortage else ""
            state, reason = "lost", f"killed from outside by SIGKILL{why}"
        elif state is None:
            state = "crash" if number is not None else "ok" if exit_code == 0 else "error"
        return Outcome(
            state=state,
            exit_code=exit_code,
            signal=_signal_name(number),
            stdout=stdout,
            stderr=stderr,
            wall_s=began - self._started,
            cpu_s=max(self._usage.cpu_s, ended.cpu_s),
            peak_rss_bytes=self._usage.peak_rss_bytes,
            kill_ms=kill_ms,
            reason=reason,
            shortage=shortage,
            used_it_up=used_it_up,
        )

    def _too_much(self) -> str:
        return f"{self._usage.rss_bytes} bytes of memory, {self._memory_bytes} allowed"


def _signal_name(number: int | None) -> str | None:
    if number is None:
        return None
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"


def start(job: Job, *, unsafe: bool = False) -> Process:
    """Starts a job in the strongest tier that this machine offers.

    Returns once the job is confined and let go. Raises `SandboxError` when no tier (above D, unless
    `unsafe`) works here, or when this job's paths, devices or limits cannot be had.
    """
    confinement = probe(unsafe=unsafe)
    return Process(job, confinement, launch(job, confinement.tier))


def run(job: Job, *, unsafe: bool = False) -> Outcome:
    """Starts a job and waits for its end. Raises as `start` does."""
    with start(job, unsafe=unsafe) as process:
        outcome = process.wait(None)
    assert outcome is not None
    return outcome


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
