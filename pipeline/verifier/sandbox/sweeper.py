"""Waits for the end of one harness, and kills what of its sandboxes is left then.

Run as a script, with the standard library alone: `python -I -S sweeper.py MARK`, with a lifeline as stdin.
MARK is a line that stands in the environment of every bwrap process of that harness. It detaches itself at
once, so that it outlives whatever kills the harness and all its children.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from pathlib import Path

LOOKS, PAUSE_S = 3, 0.2
"""The sweeper looks until it has found nothing so many times, so long apart: a process that was being started
appears later."""
GIVEN_UP_AFTER_S = 60.0


def sweep(mark: bytes) -> bool:
    """Kills the processes that started with the mark and have become no program with another environment.

    Whether there were any.
    """
    found = False
    for entry in os.listdir("/proc"):  # noqa: PTH208 - no pathlib for what is read this often
        if entry.isdigit():
            with contextlib.suppress(OSError):  # it ended, or is another user's
                # Opened first: so the process whose mark is read is the process that is killed.
                descriptor = os.pidfd_open(int(entry))
                try:
                    if mark in Path(f"/proc/{entry}/environ").read_bytes().split(b"\0"):
                        found = True
                        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
                finally:
                    os.close(descriptor)
    return found


def main() -> None:
    mark = os.fsencode(sys.argv[1])
    if os.fork():
        os._exit(0)
    os.setsid()
    while os.read(0, 1):
        pass
    until, quiet = time.monotonic() + GIVEN_UP_AFTER_S, 0
    while quiet < LOOKS and time.monotonic() < until:
        quiet = 0 if sweep(mark) else quiet + 1
        time.sleep(PAUSE_S)


if __name__ == "__main__":
    main()
