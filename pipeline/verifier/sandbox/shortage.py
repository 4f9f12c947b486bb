"""Whether this machine ran out of memory: then a process that SIGKILL ended was taken for that.

The kernel counts what it ended for lack of memory (`oom_kill` in /proc/vmstat). Daemons such as earlyoom and
systemd-oomd act before it does, while little is left (`MemAvailable` in /proc/meminfo).
"""

from __future__ import annotations

import functools
import os
from contextlib import suppress
from pathlib import Path

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
