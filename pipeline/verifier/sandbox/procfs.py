"""What the processes of a job use, and how long their threads wait for a core, read from /proc."""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_LEAST_PRIORITY = 19

Waits = Mapping[tuple[int, int], tuple[int, int]]
"""(process, thread) to nanoseconds (on a core, waiting for one), each since the thread began."""


def descendants(root: int) -> list[int]:
    """`root` and all processes below it that run now.

    From `/proc/PID/task/TID/children` where the kernel offers it, else from every process's parent.
    """
    found, todo = [], [root]
    by_parent = None if _lists_children() else _by_parent()
    while todo:
        pid = todo.pop()
        found.append(pid)
        todo += _children(pid) if by_parent is None else by_parent.get(pid, [])
    return found


@cache
def _lists_children() -> bool:
    return Path("/proc/self/task", str(os.getpid()), "children").exists()


def _children(pid: int) -> list[int]:
    children: list[int] = []
    tasks = f"/proc/{pid}/task"
    try:
        for task in os.listdir(tasks):  # noqa: PTH208
            children += map(int, read(f"{tasks}/{task}/children").split())
    except OSError:  # it ended while we looked
        pass
    return children


def read(path: str) -> bytes:
    """A whole file of /proc. Raises OSError where the process has ended.

    Such files are read around every timed block and five times a second of every process: a Path and a
    buffered file for each would cost more than all the reading, and hold the interpreter meanwhile.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = []
        while part := os.read(descriptor, 1 << 16):
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(descriptor)


def _by_parent() -> dict[int, list[int]]:
    table: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            fields = _stat(int(entry.name))
            if fields is not None:
                table.setdefault(int(fields[1]), []).append(int(entry.name))
    return table


def at_rest(pid: int | str) -> bool:
    """Whether a process's first thread is stopped, or has ended. `PID/task/TID`: whether that thread is."""
    fields = _stat(pid)
    return fields is None or fields[0] in (b"T", b"t", b"Z", b"X")


def threads_at_rest(pid: int) -> bool:
    """Whether all threads of a process are stopped, or have ended: some 15 us for each."""
    return all(map(at_rest, _threads(pid)))


def runs(pid: int) -> bool:
    """Whether a thread of a process is on a core, or waits for one: some 15 us for each."""
    return any(fields is not None and fields[0] == b"R" for fields in map(_stat, _threads(pid)))


def _threads(pid: int) -> list[str]:
    """`PID/task/TID` for each thread of a process; none when it has ended."""
    try:
        return [f"{pid}/task/{thread}" for thread in os.listdir(f"/proc/{pid}/task")]  # noqa: PTH208
    except OSError:
        return []


def spent_ns(pids: Iterable[int]) -> dict[int, int]:
    """Processor nanoseconds of each process that still is there, all its threads together, ended ones too.

    By each one's own clock, which any process may read (clock_getcpuclockid(3)): a microsecond, where a look
    at every thread's file takes some ten for each. A thread that runs right now may be behind by a tick.
    """
    found = {}
    for pid in pids:
        with contextlib.suppress(OSError):
            found[pid] = time.clock_gettime_ns((~pid << 3) | _CPUCLOCK_SCHED)
    return found


def thread_count(pids: Iterable[int]) -> int:
    """How many threads these processes have, as the links of their folders of threads say."""
    count = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            count += os.stat(f"/proc/{pid}/task").st_nlink - 2  # noqa: PTH116
    return count


_CPUCLOCK_SCHED = 2


def _stat(pid: int | str) -> list[bytes] | None:
    """The fields of /proc/PID/stat from `state` on (proc(5) numbers them from 3)."""
    try:
        text = read(f"/proc/{pid}/stat")
    except OSError:
        return None
    return text[text.rindex(b")") + 2 :].split()


@dataclass
class TreeUsage:
    """Sums over a tree, one `sample` after another."""

    root: int
    cpu_s: float = 0.0
    rss_bytes: int = 0
    peak_rss_bytes: int = 0
    _own_cpu: dict[tuple[int, bytes], int] = field(default_factory=dict)

    def sample(self) -> None:
        """Reads the tree once.

        Processor time is the larger of two lower bounds: that of living processes with the children they
        waited for, and that of every process ever seen (which includes those nobody waited for).
        """
        resident = shared = waited = 0
        files: dict[tuple[int, int], int] = {}
        for pid in descendants(self.root):
            fields = _stat(pid)
            if fields is None:
                continue
            user, system, children_user, children_system = (int(value) for value in fields[11:15])
            self._own_cpu[pid, fields[19]] = user + system
            waited += user + system + children_user + children_system
            private_part, shared_part = _resident(pid)
            resident += private_part
            shared += shared_part
            files.update(_memory_files(pid))
        self.cpu_s = max(self.cpu_s, max(waited, sum(self._own_cpu.values())) / _TICKS)
        # A memory file that is mapped is in both counts, one that is only open in the second alone.
        self.rss_bytes = resident + max(shared, sum(files.values()))
        self.peak_rss_bytes = max(self.peak_rss_bytes, self.rss_bytes)


def _resident(pid: int) -> tuple[int, int]:
    """Bytes resident: (anonymous and file-backed, shared memory)."""
    sizes = {b"RssAnon:": 0, b"RssFile:": 0, b"RssShmem:": 0}
    try:
        for line in read(f"/proc/{pid}/status").splitlines():
            name, _, rest = line.partition(b"\t")
            if name in sizes:
                sizes[name] = int(rest.split()[0]) * 1024
    except OSError:
        pass
    return sizes[b"RssAnon:"] + sizes[b"RssFile:"], sizes[b"RssShmem:"]


def _memory_files(pid: int) -> dict[tuple[int, int], int]:
    """(device, inode) → bytes allocated, of each memory file that the process holds open."""
    files, folder = {}, f"/proc/{pid}/fd"
    try:
        names = os.listdir(folder)  # noqa: PTH208
    except OSError:
        return {}
    for name in names:
        link = f"{folder}/{name}"
        try:
            if os.readlink(link).startswith("/memfd:"):  # noqa: PTH115
                status = os.stat(link)  # noqa: PTH116
                files[status.st_dev, status.st_ino] = status.st_blocks * 512
        except OSError:
            continue
    return files


def threads_of(uid: int) -> int:
    """How many threads the user's visible processes have."""
    count = 0
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if entry.stat().st_uid == uid:
                    count += len(list((entry / "task").iterdir()))
            except OSError:
                continue
    return count


def step_back(root: int, nice: int, *, killed_first: bool = False) -> None:
    """Lowers the priority of all processes from `root` down, and so of what they start (setpriority(2)).

    `nice`: by how much below this process's own, which may itself run under nice(1).
    `killed_first`: the kernel takes them first when memory runs out. The warden has seen to that by itself.
    """
    if not (nice or killed_first):
        return
    lowered = min(_LEAST_PRIORITY, os.getpriority(os.PRIO_PROCESS, 0) + nice)
    for pid in descendants(root):
        # Each may fail: the process ended, or may be changed by its own user only.
        if killed_first:
            with contextlib.suppress(OSError):
                Path(f"/proc/{pid}/oom_score_adj").write_text("1000")
        if nice:
            with contextlib.suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, pid, lowered)


def disk_usage(directory: Path, *, at_most_entries: int = 100_000) -> int | None:
    """Bytes allocated below `directory`, following no link.

    None when it holds more entries than that, or goes deeper than a path can say.
    """
    total = entries = 0
    todo = [os.fspath(directory)]
    while todo:
        try:
            with os.scandir(todo.pop()) as listing:
                for entry in listing:
                    entries += 1
                    if entries > at_most_entries:
                        return None
                    total += entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        todo.append(entry.path)
        except OSError as problem:  # removed, or closed to us, while we looked
            if problem.errno == errno.ENAMETOOLONG:
                return None
    return total


def read_waits(processes: Iterable[int]) -> Waits:
    """The threads of `processes` that live now, by /proc/PID/task/TID/schedstat (sched-stats.rst)."""
    found: dict[tuple[int, int], tuple[int, int]] = {}
    for pid in processes:
        for thread in _threads(pid):
            with contextlib.suppress(OSError, ValueError):
                ran, waited, *_ = read(f"/proc/{thread}/schedstat").split()
                found[pid, int(thread.rpartition("/")[2])] = int(ran), int(waited)
    return found


def waits_readable() -> bool:
    """Whether this kernel counts how long threads wait for a core, and lets us read it."""
    return any(ran for ran, _ in read_waits([os.getpid()]).values())


def cores_of(threads: Iterable[int]) -> int:
    """How many cores the threads may use together; a process stands for its first one."""
    cores: set[int] = set()
    for thread in threads:
        try:
            cores |= os.sched_getaffinity(thread)
        except OSError:
            continue
    return len(cores) or 1
