"""Holding a job still from outside, and letting it go on: nothing of it runs while it is paused."""

from __future__ import annotations

import contextlib
import os
import signal
import time

from pipeline.sandbox import procfs

PATIENCE_S = 2.0
"""Most seconds until every process of a tree has stopped; a tree that grows faster is no honest job's."""


def pause(root: int) -> set[int] | None:
    """Stops all processes below `root`, new ones too, and returns them; None when some go on.

    `root` itself is ours (bwrap, or the warden) and must go on: it kills the tree if we die.
    """
    deadline = time.monotonic() + PATIENCE_S
    stopped: set[int] = set()
    while time.monotonic() < deadline:
        new = set(procfs.descendants(root)) - stopped - {root}
        # A stopped process starts no other: when all that were there have stopped, no new one can come.
        # One that another let go on meanwhile is no different from a new one.
        new |= {pid for pid in stopped if not procfs.at_rest(pid)}
        if not new:
            return stopped
        for pid in new:
            _signal(pid, signal.SIGSTOP)
        while not all(map(procfs.at_rest, new)):
            if time.monotonic() > deadline:
                return None
            time.sleep(0.0001)
        stopped |= new
    return None


def resume(stopped: set[int]) -> None:
    """Lets the processes that `pause` stopped go on: a few signals, no search, so that it takes no time."""
    for pid in stopped:
        _signal(pid, signal.SIGCONT)


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)
