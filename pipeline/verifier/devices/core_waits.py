"""How long the threads of processes wait for a core, as the kernel counts it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

Waits = Mapping[tuple[int, int], tuple[int, int]]
"""(process, thread) to nanoseconds (on a core, waiting for one), each since the thread began."""


def read_waits(processes: Iterable[int]) -> Waits:
    """The threads of `processes` that live now, by /proc/PID/task/TID/schedstat (sched-stats.rst)."""
    found: dict[tuple[int, int], tuple[int, int]] = {}
    for pid in processes:
        tasks = f"/proc/{pid}/task"
        try:
            threads = os.listdir(tasks)  # noqa: PTH208 - a Path for each thread costs as much as reading it
        except OSError:  # it has ended
            continue
        for thread in threads:
            try:
                descriptor = os.open(f"{tasks}/{thread}/schedstat", os.O_RDONLY | os.O_CLOEXEC)
                try:
                    fields = os.read(descriptor, 96).split()
                finally:
                    os.close(descriptor)
            except OSError:
                continue
            if len(fields) >= 2:
                found[pid, int(thread)] = int(fields[0]), int(fields[1])
    return found


def waits_readable() -> bool:
    """Whether this kernel counts how long threads wait for a core, and lets us read it."""
    return any(ran for ran, _ in read_waits([os.getpid()]).values())


def cores_of(processes: Iterable[int]) -> int:
    """How many cores the processes may use together."""
    cores: set[int] = set()
    for pid in processes:
        try:
            cores |= os.sched_getaffinity(pid)
        except OSError:
            continue
    return len(cores) or 1
