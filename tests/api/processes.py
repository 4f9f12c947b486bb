"""The processes that run below this one, some of which end while they are looked at."""

from __future__ import annotations

from collections.abc import Collection

import psutil


def running(besides: Collection[int] = ()) -> dict[int, str]:
    """Names of the processes that this one started, and of all below them, by number.

    `besides`: children of this process that do not count, nor does what is below them.
    """
    found: dict[int, str] = {}
    for child in psutil.Process().children():
        if child.pid not in besides:
            for process in (child, *_below(child)):
                _look(process, found)
    return found


def _below(process: psutil.Process) -> list[psutil.Process]:
    try:
        return list(process.children(recursive=True))
    except psutil.NoSuchProcess:
        return []


def _look(process: psutil.Process, found: dict[int, str]) -> None:
    try:
        if process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
            found[process.pid] = process.name()
    except psutil.NoSuchProcess:
        pass


def compilers() -> list[int]:
    """The C++ compilers that run for this process."""
    return [pid for pid, name in running().items() if name == "cc1plus"]
