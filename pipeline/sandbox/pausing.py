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
    sent: set[int] = set()
    while time.monotonic() < deadline:
        below = [pid for pid in procfs.descendants(root) if pid != root]
        for pid in below:
            if pid not in sent:
                _signal(pid, signal.SIGSTOP)
                sent.add(pid)
        # A stopped process starts no other: when all that exist have stopped, no new one can come.
        if all(procfs.at_rest(pid) for pid in below) and sent.issuperset(_below(root)):
            return sent
        time.sleep(0.0002)
    return None


def resume(stopped: set[int]) -> None:
    """Lets the processes that `pause` stopped go on: a few signals, no search, so that it takes no time."""
    for pid in stopped:
        _signal(pid, signal.SIGCONT)


def _below(root: int) -> set[int]:
    return set(procfs.descendants(root)) - {root}


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)
